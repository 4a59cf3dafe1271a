"""The Chinese catalogue as it is kept: code → sentence."""

from __future__ import annotations

import catalogue

CHINESE = {str(entry.context): str(entry.string) for entry in catalogue.read() if entry.id}
