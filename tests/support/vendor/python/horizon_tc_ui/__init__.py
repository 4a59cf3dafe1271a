"""STAND-IN for the vendor's package of this name, for tests only; see support/vendor."""

__version__ = "3.5.16+stand-in"
