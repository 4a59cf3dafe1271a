"""STAND-IN for the vendor's package of this name, for tests only; see support/vendor."""

__version__ = "3.1.2+stand-in"
