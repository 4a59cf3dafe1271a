"""What the vendor's tools write, read as values."""
