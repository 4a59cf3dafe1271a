"""Foreign text made harmless on its way out: one module for each format it goes into."""
