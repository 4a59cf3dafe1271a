"""The action under `act`: real workflows, no network to GitHub, no containers."""
