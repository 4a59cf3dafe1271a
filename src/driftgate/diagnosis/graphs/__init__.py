"""Causes in a graph: an attribute, a constant, weights or a fused part that computes something else."""
