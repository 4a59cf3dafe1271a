"""Golden files: what a report must be, to the byte; `DRIFTGATE_GOLDEN=write` writes them anew for review."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden"


def golden(name: str, made: str) -> str:
    """The text that the file of that name holds."""
    file = FOLDER / name
    if os.environ.get("DRIFTGATE_GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(made, encoding="utf-8", newline="\n")
    return file.read_text(encoding="utf-8")
