"""Writes what a tool says, to its console and to its log file, each in its own form (toolchain facts §1.4, §2.4)."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TextIO

COLOURS = {"INFO": "92", "WARNING": "93", "ERROR": "91"}


class Journal:
    """One run of a tool; its log is appended to, as the tools do."""

    def __init__(self, log: Path, console: TextIO, *, source: str) -> None:
        self.log, self._console, self._source = log, console, source
        self._lines: list[str] = []

    def say(self, text: str, level: str = "INFO", *, at: int = 276) -> None:
        """One message; lines behind its first one stand without a prefix."""
        time = f"{datetime.datetime.now():%Y-%m-%d %H:%M:%S,%f}"[:-3]
        print(f"{time} \x1b[{COLOURS[level]}m{level}\x1b[0m {text}", file=self._console)
        self._lines.append(f"{time} file: {self._source}.py func: {self._source} line No: {at} {text}\n")

    def raw(self, text: str) -> None:
        """What does not go through the tool's logger: on the console only."""
        print(text, file=self._console)

    def written(self) -> Path:
        """The log file, with all that was said since."""
        with self.log.open("a", encoding="utf-8") as log:
            log.writelines(self._lines)
        self._lines.clear()
        self._console.flush()
        return self.log
