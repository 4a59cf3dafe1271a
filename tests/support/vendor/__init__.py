"""STAND-INS for the vendor's closed tools, for tests only: documented calls and outputs over a real int8 engine.

Nothing here was made by the vendor or copied from its tools; what they do is written after toolchain facts.
"""
