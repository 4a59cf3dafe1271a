"""Faults planted in whole chains of the vendor's tools (STAND-INs): each fails at its row, with its finding."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.chains import Array, Chain, confirmed, only, outcomes

ROW = 96  # bytes, of 18 int32 on a J6M


def sheared(plane: Array, pitch: int) -> Array:
    """A plane that was copied tightly into a buffer with a pitch, as the board then reads it."""
    _, height, width, channels = plane.shape
    held = np.zeros(height * pitch, np.uint8)
    held[: plane.size] = plane.reshape(-1)
    return held.reshape(height, pitch)[:, : width * channels].reshape(plane.shape)


def through(feeds: list[dict[str, Array]], change: Any) -> list[dict[str, Array]]:
    return [{name: change(name, value) for name, value in one.items()} for one in feeds]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda name, value: sheared(value, 64), "nv12-stride-padding"),
        (lambda name, value: value[..., ::-1] if name.endswith("_uv") else value, "nv12-uv-order"),
    ],
    ids=["stride", "uv-order"],
)
def test_planes_that_the_board_reads_otherwise(change: Any, code: str, tmp_path: Path) -> None:
    chain = Chain(tmp_path, ("J6P",)).made()
    chain.on_the_board(through(chain.feeds(), change))
    judgement = only(chain.check(code=1))
    assert judgement.first_failure == "bc-hbm"
    assert outcomes(judgement)["float-int8"] == "passed"
    assert code in confirmed(judgement)


def test_runtime_samples_with_chroma_in_the_other_order(tmp_path: Path) -> None:
    chain = Chain(tmp_path, ("J6P",)).made()
    feeds = through(chain.feeds(), lambda name, value: value[..., ::-1] if name.endswith("_uv") else value)
    stacked: dict[str, Any] = {name: np.concatenate([one[name] for one in feeds]) for name in feeds[0]}
    np.savez(tmp_path / "runtime.npz", **stacked)
    chain.subject["samples"] = {"raw": "eval.npz", "runtime": "runtime.npz", "block": 2}
    judgement = only(chain.check(code=1))
    assert judgement.first_failure == "float-int8"
    assert "nv12-uv-order" in confirmed(judgement)


def test_an_int32_tail_that_nobody_dequantises(tmp_path: Path) -> None:
    chain = Chain(tmp_path, ("J6M",)).made(remove=("Dequantize",))
    chain.on_the_board(chain.feeds())
    dumps = sorted((tmp_path / "dumps").iterdir())
    shape = (6, 18, 18)
    raw = []
    for sample in dumps:
        (path,) = sample.glob("model_infer_output_0_*.bin")
        padded = np.frombuffer(path.read_bytes()[: 6 * 18 * ROW], np.int32).reshape(6, 18, ROW // 4)
        raw.append(padded[..., :18].reshape(shape))
    np.savez(tmp_path / "integers.npz", heat=np.stack(raw))
    chain.artifacts["hbm"] = "integers.npz"
    chain.subject["outputs"] = {"scores": None}
    judgement = only(chain.check(code=1))
    assert judgement.first_failure == "bc-hbm"
    assert "tail-int32-undequantized" in confirmed(judgement)


def test_a_bc_from_before_convert_in_the_place_of_the_quantised_one(tmp_path: Path) -> None:
    chain = Chain(tmp_path, ("J6M",), "featuremap").made(debug=True)
    chain.artifacts["quantized"] = str(chain.output() / "net_ptq_model.bc")
    judgement = only(chain.check(code=1))
    assert judgement.first_failure == "float-int8"
    assert "stale-artifact" in confirmed(judgement)


def test_a_bc_of_another_network(tmp_path: Path) -> None:
    chain = Chain(tmp_path, ("J6M",)).made()
    other = chain.build("J6M", seed=5, folder="other")
    shutil.copy(other / "net_quantized_model.bc", chain.output() / "net_quantized_model.bc")
    judgement = only(chain.check(code=1))
    assert judgement.first_failure == "float-int8"
    assert "stale-artifact" in {finding.code for finding in judgement.findings}


def test_a_build_for_another_march(tmp_path: Path) -> None:
    chain = Chain(tmp_path, ("J6M",)).made(march="nash-p")
    judgement = only(chain.check(code=1))
    assert judgement.first_failure == "float-int8"
    assert "march-mismatch" in confirmed(judgement)


def test_an_hbm_of_another_march_than_its_bc(tmp_path: Path) -> None:
    chain = Chain(tmp_path, ("J6M",)).made()
    other = chain.build("J6M", folder="other", march="nash-p")
    shutil.copy(other / "net.hbm", chain.output() / "net.hbm")
    judgement = only(chain.check(code=1))
    assert outcomes(judgement)["float-int8"] == "passed"
    assert judgement.first_failure == "bc-hbm"
    assert "march-mismatch" in confirmed(judgement)


@pytest.mark.parametrize(
    ("version", "code"), [("4.9.7", "toolchain-version-mismatch"), (None, "stale-artifact")], ids=["other", "same"]
)
def test_an_hbm_of_an_earlier_build(version: str | None, code: str, tmp_path: Path) -> None:
    """The network was trained further since; that the .hbm was written first shows, or its toolchain does."""
    chain = Chain(tmp_path, ("J6M",)).made()
    earlier = chain.build("J6M", seed=5, folder="earlier", **({"hbdk": version} if version else {}))
    shutil.copy(earlier / "net.hbm", chain.output() / "net.hbm")
    written = (chain.output() / "net_quantized_model.bc").stat().st_mtime - 86400
    os.utime(chain.output() / "net.hbm", (written, written))
    judgement = only(chain.check(code=1))
    assert outcomes(judgement)["float-int8"] == "passed"
    assert judgement.first_failure == "bc-hbm"
    assert code in confirmed(judgement)


@pytest.mark.parametrize(("inside", "code"), [(True, 0), (False, 1)], ids=["inside", "tail"])
def test_float_operators_waive_equality_inside_and_not_at_the_tail(inside: bool, code: int, tmp_path: Path) -> None:
    """The .hbm is off by more than five decimals and less than a cosine shows."""
    chain = Chain(tmp_path, ("J6M",), "featuremap").made()
    table = chain.output() / "net_node_info.csv"
    lines = table.read_text().splitlines()
    at = 1 if inside else len(lines) - 1
    cells = lines[at].split(",")
    lines[at] = ",".join([*cells[:6], "f32"])
    table.write_text("\n".join(lines) + "\n")
    chain.on_the_board(chain.feeds())
    for path in (tmp_path / "dumps").rglob("model_infer_output_*.bin"):
        values = np.frombuffer(path.read_bytes(), np.float32).copy()
        values[np.isfinite(values)] += np.float32(2e-5)
        path.write_bytes(values.tobytes())
    judgement = only(chain.check(code=code))
    assert outcomes(judgement)["bc-hbm"] == ("passed" if inside else "failed")
