"""What driftgate keeps on disk and how it gets there."""
