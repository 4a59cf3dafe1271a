"""A plan carried out by legs on hosts and boards (here: by one machine after the other): merged it is what one process
measures, to the bit; what is missing, stale, forged or unreadable is an error that names its leg."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from driftgate.domain.bundles import Status
from driftgate.domain.results import Results
from driftgate.gathering import slug_of
from driftgate.messages.text import text
from driftgate.storage.bundle import open_bundle
from driftgate.storage.document import read_results
from support.chains import Chain, normalised, outcomes, pixels
from support.commandline import Answer, call
from support.handed import hand_on
from support.sameness import measured, scored
from support.vendor.models import interpreter
from support.vendor.toolchain import tool

SAMPLES = 6


class Distributed:
    """A project of two targets whose .hbm runs on this machine as a board, planned as legs of blocks of two samples."""

    def __init__(self, root: Path, targets: tuple[str, ...] = ("J6M",), **more: Any) -> None:
        self.root = root
        chain = Chain(root / "project", targets).made()
        np.savez(root / "project" / "eval.npz", image=normalised(pixels(SAMPLES, 1)))
        classes = np.arange(SAMPLES) % 10
        np.savez(root / "project" / "labels.npz", labels=classes)
        chain.subject["score"] = {"task": "classification", "labels": "labels.npz", "output": "scores"}
        board = root / "hrt_model_exec"
        board.write_text("#!/bin/sh\nexec " + " ".join(tool("hrt_model_exec")) + ' "$@"\n')
        board.chmod(0o755)
        document = {
            "version": 1,
            "defaults": {"hbruntime": {"python": interpreter(), "timeout": 60}, "board": "lab"},
            "boards": {"lab": {"transport": "local", "folder": str(root / "board"), "tool": str(board), "lease": 4}},
            "policies": {"release": {"require": "all"}},
            "subjects": {"net": chain.subject},
            **more,
        }
        self.config = root / "project" / "driftgate.yaml"
        self.config.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")

    @property
    def plan(self) -> Path:
        return self.root / "plan"

    def planned(self, *arguments: str) -> Mapping[str, list[dict[str, Any]]]:
        answer = call("plan", "-c", self.config, "--out", self.plan, *arguments)
        assert answer.code == 0, answer.err
        found: Mapping[str, list[dict[str, Any]]] = json.loads((self.plan / "matrix.json").read_text())
        return found

    def shard(self, leg: str) -> Path:
        return self.root / "shards" / f"driftgate-shard-{slug_of(leg)}"

    def ran(self, matrix: Mapping[str, list[dict[str, Any]]]) -> None:
        for entry in matrix["host"]:
            given = ("-c", self.config, "--plan", self.plan / "plan.json", "--leg", entry["leg"])
            answer = call("run", *given, "--out", self.shard(entry["leg"]))
            assert answer.code == 0, answer.out + answer.err
        for entry in matrix["board"]:
            answer = call("run", "--pack", self.plan / "packs" / entry["slug"], "--out", self.shard(entry["leg"]))
            assert answer.code == 0, answer.out + answer.err

    def report(self, *arguments: str) -> Answer:
        shards = sorted((self.root / "shards").iterdir())
        given = ("--plan", self.plan / "plan.json", "-c", self.config, "--out", self.root / "report")
        return call("report", *shards, *given, *arguments)

    @property
    def results(self) -> Results:
        return read_results(self.root / "report")


def test_legs_together_are_what_one_process_measures_to_the_bit(tmp_path: Path) -> None:
    made = Distributed(tmp_path, ("J6M", "J6P"))
    matrix = made.planned("--host-legs", "2", "--board-legs", "3")
    assert (len(matrix["host"]), len(matrix["board"])) == (4, 6)
    assert all(entry["labels"] == ["self-hosted"] and entry["board"] == "lab" for entry in matrix["board"])
    made.ran(matrix)
    answer = made.report()
    whole = call("check", "-c", made.config, "--out", tmp_path / "whole")
    assert (answer.code, whole.code) == (0, 0), answer.out + answer.err + whole.out
    one = {facts.plan.target: facts for facts in read_results(tmp_path / "whole").facts}
    for facts in made.results.facts:
        other = one[facts.plan.target]
        assert facts.plan.digest == other.plan.digest
        assert measured(facts) == measured(other)
        assert scored(facts) == scored(other)
    for judgement, theirs in zip(
        made.results.judgements or (), read_results(tmp_path / "whole").judgements or (), strict=True
    ):
        assert outcomes(judgement) == outcomes(theirs)


def test_a_leg_on_a_board_needs_nothing_but_its_pack(tmp_path: Path) -> None:
    made = Distributed(tmp_path)
    matrix = made.planned("--board-legs", "1")
    (entry,) = matrix["board"]
    moved = tmp_path / "elsewhere"
    shutil.move(made.plan / "packs" / entry["slug"], moved)
    shutil.move(tmp_path / "project", tmp_path / "gone")
    answer = call("run", "--pack", moved, "--out", tmp_path / "shard")
    assert answer.code == 0, answer.out + answer.err
    (facts,) = read_results(tmp_path / "shard").facts
    assert {one.sample for one in facts.recordings} == set(facts.plan.samples.ids)


def test_only_the_leg_on_a_board_needs_what_tells_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAB_PASSWORD", raising=False)
    made = Distributed(tmp_path)
    document = yaml.safe_load(made.config.read_text())
    document["boards"]["lab"]["password"] = "${LAB_PASSWORD}"
    made.config.write_text(yaml.safe_dump(document))
    matrix = made.planned()
    refused = call("run", "--pack", made.plan / "packs" / matrix["board"][0]["slug"], "--out", tmp_path / "untold")
    assert refused.code == 2
    (facts,) = read_results(tmp_path / "untold").facts
    assert [text(run.reason) for run in facts.runs if run.reason] == [
        "board lab: LAB_PASSWORD not set in the environment"
    ]
    monkeypatch.setenv("LAB_PASSWORD", "hunter22")
    made.ran({"host": [], "board": matrix["board"]})
    monkeypatch.delenv("LAB_PASSWORD")
    made.ran({"host": matrix["host"], "board": []})
    answer = made.report()
    assert answer.code == 0, answer.out + answer.err


def test_a_failure_on_a_board_is_judged_where_no_board_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Distributed(tmp_path)
    document = yaml.safe_load(made.config.read_text())
    document["boards"]["lab"]["password"] = "${LAB_PASSWORD}"
    made.config.write_text(yaml.safe_dump(document))
    chain = Chain(tmp_path / "project", ("J6M",))
    shutil.copy(chain.build("J6M", seed=5, folder="earlier") / "net.hbm", chain.output() / "net.hbm")
    monkeypatch.setenv("LAB_PASSWORD", "hunter22")
    made.ran(made.planned())
    monkeypatch.delenv("LAB_PASSWORD")
    answer = made.report()
    assert answer.code == 1, answer.out + answer.err
    (judgement,) = made.results.judgements or ()
    assert judgement.first_failure == "bc-hbm"
    (facts,) = made.results.facts
    assert [one.explained for one in facts.investigations if one.link == "quantized..hbm"] == [True], "by recordings"
    with open_bundle(made.root / "report" / "bundle.zip") as bundle:
        (link,) = bundle.manifest.links
        bundle.unpack(tmp_path / "x")
    assert "hunter22" not in "".join(file.read_text("utf-8", "replace") for file in tmp_path.glob("x/*.*"))
    board = next(one for one in link.wanted if one.what.code == "keep-board-output")
    assert (link.samples != (), board.status) == (True, Status.INCLUDED)
    (path,) = board.paths
    assert (tmp_path / "x" / path).is_file()
    hand_on(made.root / "report", tmp_path / "handed")


@pytest.fixture
def brought(tmp_path: Path) -> tuple[Distributed, Mapping[str, list[dict[str, Any]]]]:
    made = Distributed(tmp_path)
    matrix = made.planned("--host-legs", "1", "--board-legs", "2")
    made.ran(matrix)
    return made, matrix


def lose(shard: Path) -> None:
    shutil.rmtree(shard)


def garble(shard: Path) -> None:
    (shard / "results.json").write_text('{"schema": "driftgate.results"')


def unmark(shard: Path) -> None:
    (shard / "leg.json").unlink()


def other_commit(shard: Path) -> None:
    note = json.loads((shard / "leg.json").read_text())
    note["provenance"]["sha"] = "f" * 40
    (shard / "leg.json").write_text(json.dumps(note))


def earlier_attempt(shard: Path) -> None:
    note = json.loads((shard / "leg.json").read_text())
    note["provenance"]["attempt"] = "0"
    (shard / "leg.json").write_text(json.dumps(note))


def other_plan(shard: Path) -> None:
    note = json.loads((shard / "leg.json").read_text())
    note["plan"] = "0" * 64
    (shard / "leg.json").write_text(json.dumps(note))


def tampered_plan(shard: Path) -> None:
    document = json.loads((shard / "results.json").read_text())
    document["facts"][0]["plan"]["target"] = "J6P"
    (shard / "results.json").write_text(json.dumps(document))


def forged_recording(shard: Path) -> None:
    path = next((shard / "recordings" / "hbm").iterdir())
    with np.load(path) as archive:
        tensors: dict[str, Any] = {name: archive[name] * 0 for name in archive.files}
    np.savez(path, **tensors)


def pickled_recording(shard: Path) -> None:
    path = next((shard / "recordings" / "hbm").iterdir())
    pickled: Any = {"heat": np.array([{"a": 1}], dtype=object), "scores": np.zeros(1)}
    np.savez(path, allow_pickle=True, **pickled)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lose, "did not report"),
        (garble, "cannot be read"),
        (unmark, "no leg.json"),
        (other_commit, "is of ffffffffffff"),
        (earlier_attempt, "attempt 0"),
        (other_plan, "of another plan"),
        (tampered_plan, "cannot be read"),
        (forged_recording, "is not what the leg says it is"),
        (pickled_recording, "is not what the leg says it is"),
    ],
)
def test_a_leg_that_is_not_as_planned_is_an_error_that_names_it(
    harm: Any, said: str, brought: tuple[Distributed, Mapping[str, list[dict[str, Any]]]]
) -> None:
    made, matrix = brought
    harm(made.shard(matrix["board"][1]["leg"]))
    answer = made.report()
    assert answer.code == 2, answer.out + answer.err
    (judgement,) = made.results.judgements or ()
    found = outcomes(judgement)
    assert (found["float-int8"], found["bc-hbm"]) == ("passed", "error")
    told = " ".join(answer.out.split())
    assert said in told
    assert matrix["board"][1]["leg"] in told


def test_a_leg_that_reports_twice_to_the_same_end_is_one(
    brought: tuple[Distributed, Mapping[str, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    made, matrix = brought
    shard = made.shard(matrix["host"][0]["leg"])
    shutil.copytree(shard, shard.with_name(shard.name + "-again"))
    assert made.report().code == 0


def test_boards_that_are_left_out_are_told_and_a_release_does_not_accept_it(tmp_path: Path) -> None:
    made = Distributed(tmp_path)
    matrix = made.planned("--no-boards", "a fork's pull request reaches no board")
    assert matrix["board"] == []
    made.ran(matrix)
    answer = made.report()
    assert answer.code == 0, answer.out + answer.err
    (judgement,) = made.results.judgements or ()
    found = outcomes(judgement)
    assert (found["bc-hbm"], found["board"]) == ("skipped", "skipped")
    assert "a fork's pull request reaches no board" in " ".join(answer.out.split())
    assert made.report("--policy", "release").code == 2


def test_a_configuration_that_changed_since_the_plan_is_refused(tmp_path: Path) -> None:
    made = Distributed(tmp_path)
    matrix = made.planned()
    np.savez(tmp_path / "project" / "eval.npz", image=normalised(pixels(SAMPLES, 9)))
    leg = matrix["host"][0]["leg"]
    answer = call("run", "-c", made.config, "--plan", made.plan / "plan.json", "--leg", leg, "--out", tmp_path / "s")
    assert answer.code == 2
    assert "another plan" in answer.err


def test_more_legs_than_a_matrix_takes_are_refused(tmp_path: Path) -> None:
    made = Distributed(tmp_path)
    document = yaml.safe_load(made.config.read_text())
    document["subjects"] = {f"net{n}": document["subjects"]["net"] for n in range(90)}
    made.config.write_text(yaml.safe_dump(document))
    answer = call("plan", "-c", made.config, "--out", made.plan, "--host-legs", "3")
    assert answer.code == 2
    assert "360 legs" in answer.err


def test_legs_whose_names_as_files_are_one_are_refused(tmp_path: Path) -> None:
    made = Distributed(tmp_path)
    document = yaml.safe_load(made.config.read_text())
    document["subjects"] = dict.fromkeys(("net 1", "net:1"), document["subjects"]["net"])
    made.config.write_text(yaml.safe_dump(document))
    answer = call("plan", "-c", made.config, "--out", made.plan)
    assert answer.code == 2
    assert "the same name as files" in " ".join(answer.err.split())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda pack: pack["artifacts"][0].update(file="../../../etc/passwd"), "does not lie in it"),
        (lambda pack: pack["plan"].update(target="J6P"), "tampered|not what|digest"),
        (lambda pack: pack.update(format="other"), "not what driftgate wrote"),
        (lambda pack: pack.update(boards={}), "not described"),
    ],
)
def test_a_forged_pack_is_refused(change: Any, said: str, tmp_path: Path) -> None:
    made = Distributed(tmp_path)
    (entry,) = made.planned()["board"]
    path = made.plan / "packs" / entry["slug"] / "pack.json"
    pack = json.loads(path.read_text())
    change(pack)
    path.write_text(json.dumps(pack))
    answer = call("run", "--pack", path.parent, "--out", tmp_path / "shard")
    assert answer.code == 2, answer.out
    assert any(word in answer.err for word in said.split("|")), answer.err
    assert not (tmp_path / "shard" / "results.json").exists()
