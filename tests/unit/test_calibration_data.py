"""The data a network was calibrated with: read by input, held against what is evaluated, and used to explain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftgate.errors import SampleError
from driftgate.storage.calibration import CalibrationFolders
from driftgate.storage.document import read_results
from support.commandline import call
from support.models import tiny
from support.project import Project, biased, inputs


def folder(root: Path, name: str, arrays: list[np.ndarray]) -> Path:
    made = root / name
    made.mkdir(parents=True)
    for number, array in enumerate(arrays):
        np.save(made / f"{number:03}.npy", array)
    return made


def test_several_inputs_go_together_in_the_order_of_their_files(tmp_path: Path) -> None:
    x = folder(tmp_path, "x", [np.full((1, 3), n, np.float32) for n in range(3)])
    y = folder(tmp_path, "y", [np.full((1,), n, np.uint8) for n in range(3)])
    data = CalibrationFolders({"x": x, "y": y})
    assert data.ids == ("000", "001", "002")
    assert {name: float(value.reshape(-1)[0]) for name, value in data.read("002").items()} == {"x": 2.0, "y": 2.0}


def test_folders_that_do_not_go_together_are_said(tmp_path: Path) -> None:
    x = folder(tmp_path, "x", [np.zeros(1)] * 2)
    y = folder(tmp_path, "y", [np.zeros(1)] * 3)
    with pytest.raises(SampleError, match="x: 2, y: 3"):
        CalibrationFolders({"x": x, "y": y})
    with pytest.raises(SampleError, match=r"no \.npy file"):
        CalibrationFolders({"x": folder(tmp_path, "z", [])})
    with pytest.raises(SampleError, match="nowhere"):
        CalibrationFolders({"x": tmp_path / "nowhere"})
    (x / "000.npy").write_bytes(b"not numpy")
    np.save(x / "001.npy", np.array([None]))
    data = CalibrationFolders({"x": x})
    for sample in data.ids:
        with pytest.raises(SampleError, match="no array of numbers"):
            data.read(sample)


def project(root: Path, calibration: list[np.ndarray], **samples: Any) -> Project:
    made = Project(root)
    folder(root, "calibration", calibration)
    made.subject = {
        "artifacts": {"onnx": made.onnx("net.onnx", tiny()), "calibrated": made.onnx("calibrated.onnx", biased(0.01))},
        "samples": {"raw": made.npz("eval.npz", x=inputs(6)), "calibration": {"x": "calibration"}, **samples},
    }
    return made


@pytest.mark.parametrize("overlap", [0, 2])
def test_samples_that_calibrated_the_network_are_said(overlap: int, tmp_path: Path) -> None:
    others = [inputs(1, seed=seed + 50) for seed in range(4)]
    made = project(tmp_path, [inputs(6)[n : n + 1] for n in range(overlap)] + others)
    assert call("check", "-c", made.write(), "--out", tmp_path / "out").code == 0
    (facts,) = read_results(tmp_path / "out").facts
    notes = [note for run in facts.runs if run.stage == "calibrated" for note in run.notes]
    counts = [dict(note.params)["count"] for note in notes if note.code == "evaluated-on-calibration"]
    assert counts == ([overlap] if overlap else [])


def test_a_calibration_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    made = project(tmp_path, [inputs(1)])
    made.subject["samples"]["calibration"] = {"x": "nowhere"}
    told = call("check", "-c", made.write(), "--out", tmp_path / "out")
    assert told.code == 2
    assert "nowhere" in told.err
