"""Detection: what a repository already says about how it runs, read and never guessed."""
