"""Test output becomes records: formats, places in the user's code, verdicts, and what is shown of them."""
