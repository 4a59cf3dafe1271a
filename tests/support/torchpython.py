"""An interpreter with PyTorch for tests: DRIFTGATE_TORCH_PYTHON, or this one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

VARIABLE = "DRIFTGATE_TORCH_PYTHON"


def torch_python() -> str:
    """Its path; skips the test if there is none, but fails it where CI is set."""
    python = os.environ.get(VARIABLE, sys.executable)
    found = subprocess.run([python, "-c", "import torch"], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    if found.returncode == 0:
        return python
    reason = f"{python} has no torch; set {VARIABLE} to an interpreter that has"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
