"""Scores: `record` one sample, `summarise` the records; never an accumulating `update`."""
