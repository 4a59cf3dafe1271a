"""Two versions of results held against each other."""
