"""Programs of others, run to their end: what they print."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path


def printed(command: Sequence[str], *, folder: str | Path, seconds: float) -> tuple[str, int]:
    """What a command prints on both streams, and its exit code.

    Runs in `folder` with nothing to read. Raises OSError where it cannot be started, subprocess.TimeoutExpired where
    it does not end in time; by then it and all that it started are ended.
    """
    program, *arguments = command
    if os.sep in program:
        program = str(Path(program).absolute())  # it starts from our folder, not from the one it runs in
    child = subprocess.Popen(
        [program, *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said, _ = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        raise
    return said.decode("utf-8", "replace"), child.returncode
