"""Runs of tasks: containers of their own, logs, reports, results and history."""
