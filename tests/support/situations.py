"""Situations of the evidence itself: results of two machines, networks beside a board, and documents that somebody has
changed since they were written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Policy
from driftgate.domain.results import Results
from driftgate.judgement.judge import judge
from driftgate.storage.document import encode_results
from driftgate.storage.folder import write_all
from support.models import tiny
from support.project import Project, biased, inputs
from support.vendor.models import interpreter, write
from support.vendor.toolchain import tool

#: What a CI says of the commit and the run that a process is of.
VARIABLES = ("GITHUB_SHA", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "DRIFTGATE_SHA")
#: Version of the toolchain and of the board's runtime where nothing else is said.
HBDK = "4.11.11"
COMPILED = 0.01  # what the compiled network of a board is off by


def recorded(folder: Path, reference: NDArray[Any], candidate: NDArray[Any]) -> Project:
    """Two recordings on a lossy link without a score."""
    project = Project(folder)
    project.subject = {
        "artifacts": {
            "optimized_float": project.npz("float.npz", y=reference),
            "calibrated": project.npz("calibrated.npz", y=candidate),
        },
        "samples": {"raw": project.npz("eval.npz", x=np.arange(len(reference), dtype=np.float32)[:, None])},
    }
    return project


def elsewhere(facts: Facts, error: float = 0.0, **environment: Any) -> Facts:
    """The same runs in another environment, off by so much."""
    names = {one.id: replace(one, **environment) for one in facts.environments}
    runs = tuple(
        replace(run, id=f"{run.id}-there", environment=names[run.environment].id) if run.environment in names else run
        for run in facts.runs
    )
    known = {before.id: after.id for before, after in zip(facts.runs, runs, strict=True)}
    measured = tuple(
        replace(
            m,
            run_a=known[m.run_a],
            run_b=known[m.run_b],
            rows=replace(m.rows, max_abs=m.rows.max_abs + error, sum_dd=m.rows.sum_dd + error**2),
            channels=None,
        )
        for m in facts.measurements
    )
    return replace(facts, runs=runs, environments=tuple(names.values()), measurements=measured)


def written(results: Results, facts: Facts, folder: Path) -> Path:
    """Results as they would be with other facts, judged by the default policy."""
    write_all(folder, encode_results(replace(results, facts=(facts,), judgements=(judge(facts, Policy()),))))
    return folder


def changed(path: Path, change: Callable[[Any], object]) -> None:
    """A JSON document, changed by somebody."""
    document = json.loads(path.read_text("utf-8"))
    change(document)
    path.write_text(json.dumps(document), "utf-8")


@contextmanager
def at(commit: str, *, run: str = "1", attempt: str = "1") -> Iterator[None]:
    """As a process of a CI's run on that commit."""
    before = {name: os.environ.get(name) for name in VARIABLES}
    os.environ.update({"GITHUB_SHA": commit, "GITHUB_RUN_ID": run, "GITHUB_RUN_ATTEMPT": attempt})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def beside_a_board(
    root: Path,
    *,
    bc: str = HBDK,
    hbm: str = HBDK,
    runtime: str = HBDK,
    loads: bool = True,
    off: float = 0.0,
    pool: Mapping[str, Any] | None = None,
) -> Project:
    """onnx, .bc and an .hbm that a board runs, which is this machine with a STAND-IN of the vendor's tool.

    `bc` and `hbm` are versions of the toolchain that built them, `runtime` that of the board's; where the board `loads`
    it, it does so whatever the versions are. `off`: what the .hbm is wrong by. `pool`: other words about the board.
    """
    project = Project(root)
    write(root / "net_quantized_model.bc", biased(COMPILED), version=bc)
    compiled(root / "net.hbm", biased(COMPILED + off), hbm, loads=loads)
    board = root / "hrt_model_exec"
    board.write_text(f'#!/bin/sh\nexec {" ".join(tool("hrt_model_exec", STAND_IN_HBRT=runtime))} "$@"\n')
    board.chmod(0o755)
    project.subject = {
        "artifacts": {
            "onnx": project.onnx("net.onnx", tiny()),
            "quantized": "net_quantized_model.bc",
            "hbm": {"backend": "board", "path": "net.hbm"},
        },
        "samples": {"raw": project.npz("eval.npz", x=inputs(4)), "block": 2},
    }
    described = {"transport": "local", "folder": str(root / "board"), "tool": str(board), "lease": 4, **(pool or {})}
    project.top = {
        "defaults": {"platform": "J6M", "board": "lab", "hbruntime": {"python": interpreter(), "timeout": 60}},
        "boards": {"lab": described},
    }
    return project


def compiled(path: Path, model: onnx.ModelProto, version: str, *, loads: bool = True) -> Path:
    """An .hbm of that version; one that an older runtime `loads` all the same says so only in its description."""
    oldest = "4.0.0" if loads else version
    return write(path, model, version=oldest, desc={"MARCH": "nash-m", "HBDK_VERSION": version})
