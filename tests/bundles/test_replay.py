"""Replaying a bundle: with the models in it, found by their hashes, from a configuration; and what cannot be told."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driftgate.demo.build import build
from driftgate.storage.bundle import open_bundle
from support.commandline import Answer, call, process
from support.models import answer, tiny
from support.project import biased, two_stages, whole_chain

Array = NDArray[Any]

FAULT = "optimizer-fold"


def checked(folder: Path, *arguments: str, fault: str = FAULT) -> Path:
    """The bundle of a demo's fault, alone in a folder; the demo's project is `folder/out/project`."""
    assert call("check", "-c", f"demo:{fault}", "--out", folder / "out", *arguments).code == 1
    (folder / "handed").mkdir()
    return Path(shutil.move(folder / "out" / "bundle.zip", folder / "handed" / "bundle.zip"))


def outcome(told: Answer) -> tuple[int, str]:
    return told.code, told.json["outcome"]


def notes(told: Answer) -> str:
    return "\n".join(note for link in told.json["links"] for note in link["notes"])


def test_a_bundle_with_models_needs_nothing_else(tmp_path: Path) -> None:
    bundle = checked(tmp_path, "--include-models")
    shutil.rmtree(tmp_path / "out")
    told = process("replay", bundle.name, "--json", folder=bundle.parent)
    assert outcome(told) == (1, "still-fails")
    assert notes(told).count("to the bit") == 2
    (number,) = told.json["links"][0]["numbers"]
    assert number["before"] == number["after"] > number["limit"]
    shown = process("replay", bundle.name, folder=bundle.parent)
    assert shown.out.startswith("digits J6M, onnx..optimized_float: still fails\n")


def test_models_that_were_kept_back_are_found_by_their_hashes(tmp_path: Path) -> None:
    bundle = checked(tmp_path)
    told = call("replay", bundle, "--artifacts", tmp_path / "out" / "project", "--json")
    assert outcome(told) == (1, "still-fails")
    assert notes(told).count("to the bit") == 2


def test_without_any_artifact_nothing_is_told(tmp_path: Path) -> None:
    told = call("replay", checked(tmp_path), "--json")
    assert outcome(told) == (2, "unknown")
    assert "neither side could be run again" in notes(told)
    assert "--artifacts" in notes(told)


def test_another_artifact_than_the_one_that_failed_is_told(tmp_path: Path) -> None:
    bundle = checked(tmp_path)
    told = call("replay", bundle, "-c", build(tmp_path / "healthy"), "--json")
    assert outcome(told) == (0, "passes")
    assert "optimized_float: what is run is another artifact than the one that failed" in notes(told)
    assert "onnx: what is run" not in notes(told)


def test_an_unpacked_bundle_is_replayed_as_well(tmp_path: Path) -> None:
    bundle = checked(tmp_path, "--include-models")
    shutil.unpack_archive(bundle, tmp_path / "x")
    assert outcome(call("replay", tmp_path / "x", "--json")) == (1, "still-fails")


def test_a_side_that_is_a_recording_stands_as_it_was(tmp_path: Path) -> None:
    made = two_stages(tmp_path, shift=0.5)
    made.write()
    assert call("check", "-c", made.config, "--out", tmp_path / "out", "--include-models").code == 1
    told = call("replay", tmp_path / "out" / "bundle.zip", "--json")
    assert outcome(told) == (1, "still-fails")
    assert "pytorch: not run again" in notes(told)
    assert "the stage is a recording" in notes(told)
    assert "onnx: run again with onnxruntime; 1 of 1" in notes(told)

    made.onnx("net.onnx", biased(0.0))
    assert outcome(call("replay", tmp_path / "out" / "bundle.zip", "-c", made.config, "--json")) == (0, "passes")


def test_outputs_that_are_named_otherwise_are_replayed_under_their_common_name(tmp_path: Path) -> None:
    made = two_stages(tmp_path, shift=0.5)
    x = np.load(tmp_path / "eval.npz")["x"]
    made.artifacts["pytorch"] = made.npz("other.npz", head=answer(x).T[None].transpose(2, 1, 0)[:, :, 0])
    made.subject["outputs"] = {"y": "head"}
    made.write()
    assert call("check", "-c", made.config, "--out", tmp_path / "out", "--include-models").code == 1
    told = call("replay", tmp_path / "out" / "bundle.zip", "--json")
    assert outcome(told) == (1, "still-fails")
    assert [number["output"] for number in told.json["links"][0]["numbers"]] == ["y"]


def test_a_model_that_the_runtime_refuses_is_refused_again(tmp_path: Path) -> None:
    made = two_stages(tmp_path)
    broken = tiny()
    broken.graph.node[0].op_type = "NoSuchOperator"
    made.onnx("net.onnx", broken)
    made.write()
    assert call("check", "-c", made.config, "--out", tmp_path / "out", "--include-models").code == 1
    bundle = tmp_path / "out" / "bundle.zip"
    told = call("replay", bundle, "--json")
    assert outcome(told) == (1, "still-fails")
    assert "NoSuchOperator" in notes(told)
    made.onnx("net.onnx", tiny())
    assert outcome(call("replay", bundle, "-c", made.config, "--json")) == (0, "passes")


def test_a_score_over_all_samples_cannot_be_told_from_a_few(tmp_path: Path) -> None:
    """One decision of many is lost, and no number of these samples shows it."""
    made = whole_chain(tmp_path)
    x = np.load(tmp_path / "eval.npz")["x"]
    at = int(np.abs(np.subtract(*answer(x).T)).argmin())
    made.artifacts["calibrated"] = made.npz("calibrated.npz", y=_flipped(answer(x), at))
    made.artifacts["quantized"] = made.npz("q.npz", y=_flipped(answer(x), at))
    del made.artifacts["hbm"]
    made.write()
    assert call("check", "-c", made.config, "--out", tmp_path / "out").code == 1
    bundle = tmp_path / "out" / "bundle.zip"
    told = call("replay", bundle, "-c", made.config, "--json")
    assert outcome(told) == (1, "still-fails"), "what runs is what ran"
    assert "gives to the bit what it gave then" in notes(told)
    made.npz("calibrated.npz", y=answer(x))
    told = call("replay", bundle, "-c", made.config, "--json")
    assert outcome(told) == (2, "unknown")
    assert "run driftgate check" in notes(told)


def _flipped(scores: Array, at: int) -> Array:
    """One decision the other way round, by a hair more than a tie."""
    made: Array = scores.copy()
    high, low = int(scores[at].argmax()), int(scores[at].argmin())
    made[at, low] = made[at, high] + np.float32(1e-3)
    return made


def test_what_has_no_failing_link_cannot_be_replayed(tmp_path: Path) -> None:
    assert call("check", "-c", "demo", "--out", tmp_path / "out", "--bundle", "always").code == 0
    bundle = tmp_path / "out" / "bundle.zip"
    told = call("replay", bundle)
    assert (told.code, told.out) == (2, "")
    assert "has no failing link that could be run again" in told.err
    assert call("explain", bundle).code == 0
    assert call("report", bundle, "--out", tmp_path / "again").code == 0
    with open_bundle(bundle) as opened:
        assert opened.manifest.links == ()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--artifacts", "nowhere"), "not there: nowhere"),
        (("--subject", "other"), "has no failing link that could be run again"),
        (("-c", "nowhere.yaml"), "nowhere.yaml"),
    ],
)
def test_bad_arguments_are_said(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    told = call("replay", checked(tmp_path), *arguments)
    assert (told.code, told.out) == (2, "")
    assert said in told.err


def test_a_configuration_of_another_network_is_refused(tmp_path: Path) -> None:
    bundle = checked(tmp_path)
    made = two_stages(tmp_path / "other")
    (tmp_path / "other").mkdir(exist_ok=True)
    made.write()
    told = call("replay", bundle, "-c", made.config)
    assert told.code == 2
    assert "digits" in told.err


def test_a_bundle_is_made_anew_only_of_the_plan_that_was_run(tmp_path: Path) -> None:
    made = two_stages(tmp_path, shift=0.5)
    made.write()
    assert call("check", "-c", made.config, "--out", tmp_path / "out", "--bundle", "never").code == 1
    assert not (tmp_path / "out" / "bundle.zip").exists()
    told = call("bundle", tmp_path / "out", "-c", made.config, "--include-models")
    assert told.code == 0, told.err
    with open_bundle(tmp_path / "out" / "bundle.zip") as opened:
        assert "net/J6M/link/model_b.onnx" in opened.names
    made.onnx("net.onnx", biased(0.25))
    told = call("bundle", tmp_path / "out", "-c", made.config)
    assert (told.code, told.out) == (2, "")
    assert "makes another plan for net J6M" in told.err


def test_a_bundle_without_a_configuration_has_the_facts_and_says_what_it_lacks(tmp_path: Path) -> None:
    made = two_stages(tmp_path, shift=0.5)
    made.write()
    assert call("check", "-c", made.config, "--out", tmp_path / "out").code == 1
    assert call("bundle", tmp_path / "out", "--out", tmp_path / "b.zip").code == 0
    with open_bundle(tmp_path / "b.zip") as opened:
        (link,) = opened.manifest.links
        assert [note.code for note in link.notes] == ["bundle-no-stages"]
        assert {"results.json", "facts.npz", "README.zh-CN.md"} <= set(opened.names)
    assert call("explain", tmp_path / "b.zip").code == 1


def test_networks_with_memory_say_why_no_link_is_there(tmp_path: Path) -> None:
    made = two_stages(tmp_path, shift=0.5)
    made.subject["state"] = {"y": "x"}
    made.write()
    answered = call("check", "-c", made.config, "--out", tmp_path / "out")
    assert answered.code in (1, 2)
    with open_bundle(tmp_path / "out" / "bundle.zip") as opened:
        assert [note.code for link in opened.manifest.links for note in link.notes] == ["bundle-stateful"]


def test_a_full_bundle_stays_where_it_is_told_and_its_path_is_said(tmp_path: Path) -> None:
    """What is uploaded lies in the folder of the reports: there is no model, and no part of one."""
    full = tmp_path / "kept" / "full.zip"
    arguments = ("--no-repro", "--full-bundle", full)
    told = call("check", "-c", f"demo:{FAULT}", "--out", tmp_path / "out", *arguments)
    assert told.code == 1
    assert f"stays on this machine: {full}, SHA-256 {sha256(full.read_bytes()).hexdigest()}" in told.out
    with open_bundle(full) as opened:
        assert {"digits/J6M/link/model_a.onnx", "digits/J6M/repro/repro.onnx"} <= set(opened.names)
        assert opened.manifest.models_included
    with open_bundle(tmp_path / "out" / "bundle.zip") as opened:
        assert [name for name in opened.names if name.endswith(".onnx")] == []
        withheld = {one.path: one.sha256 for one in opened.manifest.withheld}
        assert {"digits/J6M/link/model_a.onnx", "digits/J6M/repro/repro.onnx"} <= withheld.keys()
    assert list((tmp_path / "out").glob("repro*")) == []
    assert outcome(call("replay", full, "--json")) == (1, "still-fails")


def test_a_bundle_that_cannot_be_written_takes_nothing_from_the_verdict(tmp_path: Path) -> None:
    told = call("check", "-c", f"demo:{FAULT}", "--out", tmp_path / "out", "--bundle-size", "1KiB")
    assert told.code == 1
    assert "no bundle: the smallest bundle would have" in told.err
    assert not (tmp_path / "out" / "bundle.zip").exists()
    assert (tmp_path / "out" / "results.json").is_file()
