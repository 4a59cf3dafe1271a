"""Starts the stand-in of hrt_model_exec on a test board, misbehaving as the board was told to."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from support.vendor import board
from support.vendor.files import Network

TOLD = Path("/etc/stand-in.json")


def main() -> int:
    """One call of the tool."""
    told = json.loads(TOLD.read_text())
    os.environ.update(told["environment"])
    ahead = datetime.timedelta(seconds=told["ahead_seconds"])
    infer = board.COMMANDS["infer"]

    class Clock(datetime.datetime):
        """The board's."""

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Clock:
            return super().now(tz) + ahead

    def slow(asked: argparse.Namespace, networks: Sequence[Network]) -> None:
        begun = time.monotonic()
        while time.monotonic() - begun < json.loads(TOLD.read_text())["slow_seconds"]:
            time.sleep(0.02)
        infer(asked, networks)

    datetime.datetime = Clock  # type: ignore[misc]
    board.COMMANDS["infer"] = slow
    sys.argv[0] = "hrt_model_exec"
    return board.main()


if __name__ == "__main__":
    sys.exit(main())
