"""What keeps a bay's reach and its secrets in bounds: approvals, secrets, scrubbing."""
