"""driftgate.yaml: one section an owner, every problem with its line, all of them together."""
