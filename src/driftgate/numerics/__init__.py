"""Numbers about two tensors: pure functions, float64 throughout."""
