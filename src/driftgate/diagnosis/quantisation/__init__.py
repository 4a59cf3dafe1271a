"""Causes in quantisation: ranges from calibration, single tensors, weights, overflow, and ordinary rounding."""
