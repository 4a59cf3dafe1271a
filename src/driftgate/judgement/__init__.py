"""Judging: pure functions of facts and policy."""
