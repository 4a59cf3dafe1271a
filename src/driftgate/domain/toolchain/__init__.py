"""What the vendor's tools say, as the readers of `vendor` give it.

None, or an empty tuple where nothing can be counted: the file does not say it, as excerpts often do not.
"""
