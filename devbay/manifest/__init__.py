"""`devbay.yaml`: models, rules, capabilities, interpolation, JSON Schema, and the one load path."""
