"""Test runners by their command lines: what an argv comes down to, what may be asked of each. Pure."""
