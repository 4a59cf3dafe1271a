"""Causes in how outputs are read: order of outputs and axes, padding, type of the numbers, scale, missing tail."""
