"""devbay: a running, isolated instance of a repository for every branch."""

__version__ = "0.1.0"
