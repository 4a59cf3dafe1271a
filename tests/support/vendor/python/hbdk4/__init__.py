"""STAND-IN for the vendor's package of this name, for tests only; see support/vendor."""
