"""A board: how it is reached, locked, fed and read."""
