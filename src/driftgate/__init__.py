"""driftgate: finds the first stage at which a network stops being itself on its way to a Journey 6 board."""

__version__ = "0.1.0"
