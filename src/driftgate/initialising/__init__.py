"""A driftgate.yaml to start from, for a folder in which hb_compile has worked."""
