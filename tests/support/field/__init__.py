"""Builders of the field tests: networks and data that nobody here made, fetched when a test runs."""
