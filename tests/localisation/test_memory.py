"""The memory of a whole process that compares a text detector node by node: half a gigabyte of tensors a picture."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.field import peak
from support.field.quantize import optimise
from support.field.wheels import RAPIDOCR_DETECTOR, members

MIB = 1 << 20
LIMIT = 700 * MIB
SECONDS = 300


@pytest.fixture(scope="session")
def forms(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The detector as shipped, and optimised."""
    (shipped,) = members(RAPIDOCR_DETECTOR).values()
    return shipped, optimise(shipped, tmp_path_factory.mktemp("detector") / "optimised.onnx", "basic")


def investigated(forms: tuple[Path, Path], *, size: tuple[int, int], samples: int, memory: int) -> dict[str, int]:
    command = [sys.executable, peak.__file__, *map(str, (*forms, *size, samples, memory))]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS
    )
    told: dict[str, int] = json.loads(done.stdout)
    return told


def test_a_detector_with_half_a_gigabyte_of_tensors_fits_700_mib(forms: tuple[Path, Path]) -> None:
    told = investigated(forms, size=(480, 640), samples=2, memory=128 * MIB)
    assert told["pairs"] > 300
    assert told["peak"] < LIMIT


def test_memory_does_not_grow_with_the_samples(forms: tuple[Path, Path]) -> None:
    few, many = (investigated(forms, size=(160, 160), samples=n, memory=32 * MIB) for n in (8, 64))
    assert many["pairs"] == few["pairs"] > 300
    assert many["peak"] <= 1.1 * few["peak"]
