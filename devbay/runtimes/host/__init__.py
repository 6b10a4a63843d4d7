"""The host runtime: bays as supervised processes of this machine, where there is no container engine."""
