"""Faults planted in random networks, written down as evidence folders; nothing here knows how they are explained."""
