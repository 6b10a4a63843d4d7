"""The command line: arguments in, rendering out; the work is done by the daemon."""
