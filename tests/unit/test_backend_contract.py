"""Every backend that needs no further stack passes the one contract suite (torch: see tests/field)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.backends.recorded import RecordedBackend
from driftgate.sessions import Artifact
from support.contract import BackendContract, Case, moved
from support.fakebackend import FakeBackend
from support.models import BIAS, WEIGHT, answer, hidden, save, tiny

X = np.array([[1.0, -2.0, 0.5]], np.float32)


def _damaged(folder: Path, suffix: str) -> Path:
    path = folder / f"damaged{suffix}"
    path.write_bytes(b"PK\x03\x04 no more of it")
    return path


def _copy(path: Path, folder: Path) -> Path:
    folder.mkdir()
    target = folder / f"renamed{path.suffix}"
    if path.is_dir():
        shutil.copytree(path, target)
    else:
        shutil.copy(path, target)
    return target


def onnxruntime_case(folder: Path) -> Case:
    path = save(tiny(), folder / "net.onnx")
    artifact = Artifact("onnx", "onnxruntime", path)
    return Case(
        backend=OnnxRuntimeBackend(),
        artifact=artifact,
        feeds={"x": X},
        expected={"y": answer(X)},
        tap="h",
        tapped={"y": answer(X), "h": hidden(X)},
        touch=lambda: onnx.save(tiny("rows"), path),
        copied=moved(artifact, _copy(path, folder / "copy")),
        missing=moved(artifact, folder / "missing.onnx"),
        damaged=moved(artifact, _damaged(folder, ".onnx")),
    )


def recorded_case(folder: Path) -> Case:
    path = folder / "recording"
    (path / "0000").mkdir(parents=True)
    np.save(path / "0000" / "y.npy", answer(X))
    np.save(path / "0000" / "h.npy", hidden(X))
    (path / "signature.json").write_text('{"outputs": {"y": {}}}')
    artifact = Artifact("hbm", "recorded", path)
    return Case(
        backend=RecordedBackend(),
        artifact=artifact,
        feeds={"x": X},
        expected={"y": answer(X)},
        tap="h",
        tapped={"y": answer(X), "h": hidden(X)},
        touch=lambda: np.save(path / "0000" / "y.npy", answer(X) + 1),
        copied=moved(artifact, _copy(path, folder / "copy")),
        missing=moved(artifact, folder / "missing"),
        damaged=moved(artifact, _damaged(folder, ".npz")),
    )


def foreign_case(folder: Path) -> Case:
    path = folder / "weights.npz"
    np.savez(path, weight=WEIGHT, bias=BIAS)
    artifact = Artifact("pytorch", "fake", path)
    return Case(
        backend=FakeBackend(),
        artifact=artifact,
        feeds={"x": X},
        expected={"y": answer(X)},
        tap="h",
        tapped={"y": answer(X), "h": hidden(X)},
        touch=lambda: np.savez(path, weight=WEIGHT, bias=BIAS + 1),
        copied=moved(artifact, _copy(path, folder / "copy")),
        missing=moved(artifact, folder / "missing.npz"),
        damaged=moved(artifact, _damaged(folder, ".npz")),
    )


CASES: dict[str, Callable[[Path], Case]] = {
    "onnxruntime": onnxruntime_case,
    "recorded": recorded_case,
    "foreign": foreign_case,
}


class TestContract(BackendContract):
    """The suite, once for each of CASES."""

    @pytest.fixture(params=sorted(CASES))
    def case(self, request: pytest.FixtureRequest, tmp_path: Path) -> Case:
        return CASES[request.param](tmp_path)
