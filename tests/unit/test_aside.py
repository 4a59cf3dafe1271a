"""What a capture puts aside spares an investigation its untapped runs, within the room there is."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from driftgate.aside import Aside
from driftgate.domain.judgement import Policy
from driftgate.investigating import worst_samples
from driftgate.judgement.judge import judge
from driftgate.sessions import Tensors
from driftgate.storage.document import read_results
from support.commandline import call

HALF: Tensors = {"y": np.zeros(128, np.float32)}  # 512 bytes


def test_the_first_samples_are_kept_by_stage() -> None:
    aside = Aside(samples=2, limit=1 << 20)
    for sample in "abc":
        aside.add(sample, {"onnx": {"y": np.full(3, ord(sample))}, "float": {"y": np.zeros(3)}})
    assert {s: made["y"].tolist() for s, made in aside.of("onnx").items()} == {"a": [97] * 3, "b": [98] * 3}
    assert aside.of("hbm") == {}


@pytest.mark.parametrize(("limit", "kept"), [(0, []), (511, []), (512, ["a"]), (1100, ["a", "b"])])
def test_what_does_not_fit_is_not_kept_and_ends_it(limit: int, kept: list[str]) -> None:
    aside = Aside(samples=9, limit=limit)
    for sample in "abc":
        aside.add(sample, {"onnx": HALF})
    aside.add("d", {"onnx": {"y": np.zeros(1, np.float32)}})
    assert [*aside.of("onnx")] == kept


@pytest.mark.parametrize("samples", ["4", "2"])
def test_a_diff_does_not_run_the_candidate_untapped_again(
    samples: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_again(*_: object) -> None:
        raise AssertionError("the candidate was run untapped although its outputs are there")

    call("demo", "--out", tmp_path, "--fault", "optimizer-fold")
    stages, out = tmp_path / "project" / "stages", tmp_path / "out"
    models = [stages / f"{name}.onnx" for name in ("original", "optimized_float")]
    investigate = importlib.import_module("driftgate.localisation.investigate")
    monkeypatch.setattr(investigate, "_untapped", run_again)
    inputs = tmp_path / "project" / "data" / "eval.npz"
    call("diff", *models, "--inputs", inputs, "--nodes", "--node-samples", samples, "--out", out)
    (facts,) = read_results(out).facts
    (found,) = facts.investigations
    assert found.nodes
    (link,) = facts.plan.links
    assert facts.plan.samples.ids[0] in worst_samples(facts, judge(facts, Policy()), link, int(samples))
