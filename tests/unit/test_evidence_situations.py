"""Evidence that proves nothing, or the contrary: every situation made of our own documents, given to the verbs that
would meet it, with the outcome, the exit code and the code of the cause that must come of it.

The table is at the end; above it, each situation is a function that makes it. What a situation passes unharmed is a row
as well, so that no row fails for another reason than the one it is there for. The five of the field's cases are named
s5-…; slides over many runs are in test_history.py.
"""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftgate.gathering import slug_of
from driftgate.messages.english import ENGLISH
from driftgate.storage.document import encode_results, read_results
from driftgate.storage.folder import write_all
from driftgate.storage.planfile import read_manifest, read_origin
from support.commandline import Answer, call, rows
from support.models import answer
from support.project import LOSS, Project, biased, classes, inputs, two_stages, whole_chain
from support.situations import (
    VARIABLES,
    at,
    beside_a_board,
    changed,
    compiled,
    elsewhere,
    recorded,
    written,
)

PASS, FAIL, ERROR = "PASS", "FAIL", "ERROR"
CELLS = {"passed": PASS, "failed": FAIL, "error": ERROR}
EXITS = {0: PASS, 1: FAIL, 2: ERROR}
COMMIT, OTHER = "a" * 40, "b" * 40
#: One step of the integers of whole_chain().
STEP = 0.05


@pytest.fixture(autouse=True)
def no_run_of_a_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where these tests run is no commit that they are about."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


# --- what a verb came to


@dataclass(frozen=True, slots=True)
class Told:
    """PASS, FAIL or ERROR, the exit code, and the codes of causes, reasons and refusals, the first cause first."""

    outcome: str
    exit: int
    codes: tuple[str, ...]


def checked(project: Project, *options: str, out: str = "out") -> Told:
    """By `check`."""
    folder = project.root / out
    told = call("check", "-c", project.write(**project.top), "--out", folder, *options)
    return judged(told, folder)


def judged(told: Answer, folder: Path) -> Told:
    """By a verb that writes reports: what they say, else why there are none."""
    if not (folder / "results.json").exists():
        return refused(told)
    document = json.loads((folder / "results.json").read_text("utf-8"))["judgement"]
    found = [finding["code"] for one in document["subjects"] for finding in one["findings"] if finding["confirmed"]]
    why = [
        verdict["reason"]["code"]
        for one in document["subjects"]
        for check in one["checks"]
        for verdict in check["verdicts"]
        if verdict["reason"] is not None and verdict["outcome"] != "passed"
    ]
    return Told(CELLS[document["outcome"]], told.code, tuple(dict.fromkeys((*found, *why))))


def explained(folder: Path) -> Told:
    """By `explain`: its verdict and its first cause."""
    told = call("explain", folder, "--json")
    if told.err and not told.out:
        return refused(told)
    return Told(told.json["verdict"], told.code, tuple(one["code"] for one in told.json["findings"][:1]))


def gated(results: Path, project: Project, policy: dict[str, Any], *options: str | Path) -> Told:
    """By `gate` and a policy; of every line that does not hold, and of one that has something to say."""
    config = project.write(**{**project.top, "policies": {"release": policy}})
    told = call("gate", results, "-c", config, "--policy", "release", "--json", *options)
    if not told.out:
        return refused(told)
    lines = told.json["lines"]
    codes = [code for line in lines for code in line["codes"]]
    why = [line["reason"]["code"] for line in lines if line["outcome"] != "passed" and line["reason"] is not None]
    broken = [line["clause"] for line in lines if line["outcome"] != "passed"]
    return Told(CELLS[told.json["outcome"]], told.code, tuple(dict.fromkeys((*codes, *why, *broken))))


def compared(base: Path, head: Path) -> Told:
    """By `compare`: whether the head is no worse, and what became of each number."""
    told = call("compare", base, head, "--json")
    if not told.out:
        return refused(told)
    (one,) = told.json["comparisons"][-1]["subjects"]
    return Told(EXITS[told.code], told.code, tuple(dict.fromkeys(row["change"] for row in one["rows"])))


def refused(told: Answer) -> Told:
    """The codes of the sentences that a verb ended with, found in the catalogue."""
    said = " ".join(told.err.split())
    codes = [code for code, sentence in ENGLISH.items() if len(sentence) > 12 and re.search(_pattern(sentence), said)]
    return Told(EXITS[told.code], told.code, tuple(codes))


def _pattern(sentence: str) -> str:
    parts = re.split(r"\{[^{}]*\}", sentence.replace("{{", "{").replace("}}", "}"))
    return ".+?".join(map(re.escape, parts)) if any(len(part) > 12 for part in parts) else r"(?!)"


# --- s5: the same artifact elsewhere


def two_runners(root: Path, error: float = 0.5) -> tuple[Project, Path, Path]:
    """One commit's results on a machine and on another one without VNNI."""
    project = two_stages(root)
    checked(project)
    results = read_results(root / "out")
    (facts,) = results.facts
    there = elsewhere(facts, error, cpu="x86_64 avx2")
    return project, written(results, facts, root / "here"), written(results, there, root / "there")


def flaky_environment(root: Path) -> Told:
    _, here, there = two_runners(root)
    told = call("report", here, there, "--out", root / "both")
    return judged(told, root / "both")


def flaky_environment_explained(root: Path) -> Told:
    flaky_environment(root)
    return explained(root / "both")


def drift_compared(root: Path) -> Told:
    _, here, there = two_runners(root, 1e-5)
    return compared(here, there)


def drift_across_a_limit_compared(root: Path) -> Told:
    _, here, there = two_runners(root)
    return compared(here, there)


def drift_gated(root: Path) -> Told:
    project, here, there = two_runners(root, 1e-5)
    return gated(there, project, {"regressions": "fail"}, "--baseline", here)


# --- s5: means, NaN, random input


def mean_hides_worst(root: Path, lost: bool = True) -> Told:
    random = np.random.default_rng(0)
    reference = random.normal(size=(200, 64)).astype(np.float32)
    candidate = (reference + random.normal(scale=0.01, size=reference.shape)).astype(np.float32)
    if lost:
        candidate[137] = random.normal(size=64)
    checked(recorded(root, reference, candidate))
    return explained(root / "out")


def mean_hides_nothing(root: Path) -> Told:
    return mean_hides_worst(root, lost=False)


def nan_on_the_board(root: Path) -> Told:
    project = whole_chain(root)
    y = answer(inputs(10)) + LOSS
    y[3, 1] = np.nan
    project.artifacts["hbm"] = project.npz("nan.npz", y=y)
    checked(project)
    return explained(root / "out")


def nan_and_nothing_else(root: Path) -> Told:
    """Every metric of the link is NaN."""
    y = answer(inputs(10))
    return checked(recorded(root, y, np.full_like(y, np.nan)))


def unreal_limit(root: Path, origin: str) -> Project:
    """Recorded pytorch outputs within float noise, and a policy that asks for less than that."""
    project = two_stages(root)
    y = answer(inputs(6))
    project.npz("pytorch.npz", y=(y + np.float32(2e-5) * np.ptp(y)).astype(np.float32))
    project.subject["samples"]["origin"] = origin
    project.top = {"policies": {"strict": {"pytorch-onnx": {"range": 1e-5}}}}
    return project


def random_input(root: Path) -> Told:
    return checked(unreal_limit(root, "random"), "--policy", "strict")


def random_input_explained(root: Path) -> Told:
    random_input(root)
    return explained(root / "out")


def random_input_within_limits(root: Path) -> Told:
    return checked(unreal_limit(root, "random"))


def the_same_on_real_data(root: Path) -> Told:
    return checked(unreal_limit(root, "real"))


# --- s5: another artifact than the one that is meant


def int8_is_the_float_file(root: Path) -> Told:
    project = whole_chain(root)
    project.artifacts["calibrated"] = project.artifacts["optimized_float"]
    checked(project)
    return explained(root / "out")


def int8_gives_what_float_gives(root: Path) -> Told:
    project = whole_chain(root)
    project.artifacts["calibrated"] = project.npz("calibrated.npz", y=answer(inputs(10)))
    checked(project)
    return explained(root / "out")


def later_int8_is_the_float_file(root: Path) -> Told:
    """The calibrated stage is its own; the quantised one and what was recorded of the board are the float network."""
    project = _float_behind_the_calibrated_stage(root)
    project.artifacts["quantized"] = project.artifacts["optimized_float"]
    return checked(project)


def later_int8_gives_what_float_gives(root: Path) -> Told:
    project = _float_behind_the_calibrated_stage(root)
    project.npz("quantized.npz", y=answer(inputs(10)))
    return checked(project)


def _float_behind_the_calibrated_stage(root: Path) -> Project:
    project = whole_chain(root)
    for stage in ("quantized", "hbm"):
        (root / f"{stage}.signature.json").unlink()
    project.npz("hbm.npz", y=answer(inputs(10)))
    return project


def int8_is_its_own(root: Path) -> Told:
    return checked(whole_chain(root))


def file_changed_since_the_plan(root: Path) -> Told:
    project = whole_chain(root)
    legs = planned(project)
    project.onnx("calibrated.onnx", biased(float(LOSS) * 2))
    told = call("run", "-c", project.config, "--plan", root / "plan/plan.json", "--leg", legs[0], "--out", root / "x")
    return judged(told, root / "x")


def labels_changed_since_the_plan(root: Path) -> Told:
    project = whole_chain(root)
    legs = planned(project)
    project.npz("labels.npz", labels=(classes(inputs(10)) + 1) % 3)
    told = call("run", "-c", project.config, "--plan", root / "plan/plan.json", "--leg", legs[0], "--out", root / "x")
    return judged(told, root / "x")


def plan_changed_by_hand(root: Path) -> Told:
    project = whole_chain(root)
    legs = planned(project)
    changed(root / "plan" / "plan.json", lambda plan: plan["plans"][0]["plan"]["artifacts"][0].update(digest="0" * 64))
    told = call("run", "-c", project.config, "--plan", root / "plan/plan.json", "--leg", legs[0], "--out", root / "x")
    return judged(told, root / "x")


def results_of_a_changed_plan(root: Path) -> Told:
    project = whole_chain(root)
    checked(project)
    changed(
        root / "out" / "results.json", lambda told: told["facts"][0]["plan"]["artifacts"][0].update(digest="0" * 64)
    )
    return gated(root / "out", project, {})


def ran_another_artifact(root: Path) -> Project:
    """Results whose .hbm was run from a file that is not the planned one."""
    project = whole_chain(root)
    checked(project)

    def change(told: Any) -> None:
        next(run for run in told["facts"][0]["runs"] if run["stage"] == "hbm")["artifact"] = "0" * 64

    changed(root / "out" / "results.json", change)
    return project


def run_of_another_artifact_gated(root: Path) -> Told:
    project = ran_another_artifact(root)
    return gated(root / "out", project, {"same-artifacts": True}, "--built", root)


def run_of_another_artifact_reported(root: Path) -> Told:
    ran_another_artifact(root)
    told = call("report", root / "out", "--out", root / "again")
    return judged(told, root / "again")


def numbers_of_no_run(root: Path) -> Told:
    project = two_stages(root)
    checked(project)
    changed(root / "out" / "results.json", lambda told: told["facts"][0]["measurements"][0].update(run_b="onnx@0"))
    return judged(call("report", root / "out", "--out", root / "again"), root / "again")


def built(root: Path, *, keep: str | None) -> Told:
    """Against a folder of what was built, in which the last stage's file lies, or another one; None: nobody says."""
    project = two_stages(root)
    checked(project)
    (root / "built").mkdir()
    if keep is not None:
        shutil.copy(root / keep, root / "built" / "net.onnx")
    told: tuple[str | Path, ...] = () if keep is None else ("--built", root / "built")
    return gated(root / "out", project, {"same-artifacts": True}, *told)


def another_file_was_built(root: Path) -> Told:
    Project(root).onnx("other.onnx", biased(1.0))
    return built(root, keep="other.onnx")


def this_file_was_built(root: Path) -> Told:
    return built(root, keep="net.onnx")


def nobody_says_what_was_built(root: Path) -> Told:
    return built(root, keep=None)


def bundle_changed(root: Path) -> Told:
    """A page of it was swapped, and its list of files was not."""
    project = two_stages(root)
    checked(project, "--bundle", "always")
    with zipfile.ZipFile(root / "out" / "bundle.zip") as before, zipfile.ZipFile(root / "x.zip", "w") as after:
        for info in before.infolist():
            content = before.read(info)
            is_results = info.filename.endswith("results.json")
            after.writestr(info.filename, content.replace(b'"J6M"', b'"J6P"') if is_results else content)
    return judged(call("report", root / "x.zip", "--out", root / "again"), root / "again")


def tables_of_another_run(root: Path) -> Told:
    """results.json of a network that fails for no known cause, beside facts.npz of a sound one."""
    (root / "sound").mkdir()
    sound = two_stages(root / "sound")
    checked(sound)
    (root / "broken").mkdir()
    broken = two_stages(root / "broken")
    y = answer(inputs(6))
    broken.npz("pytorch.npz", y=(y + np.random.default_rng(1).normal(size=y.shape)).astype(np.float32))
    assert checked(broken).outcome == FAIL
    shutil.copy(root / "sound" / "out" / "facts.npz", root / "broken" / "out" / "facts.npz")
    return gated(root / "broken" / "out", broken, {})


# --- samples


def repeated(root: Path) -> Project:
    """One picture, ten times under other names; every stage has its own outputs of it."""
    project = whole_chain(root)
    x = np.repeat(inputs(1), 10, axis=0)
    y = answer(x)
    integers = np.clip(np.round(y / STEP), -128, 127).astype(np.int8)
    project.npz("eval.npz", x=x)
    project.npz("pytorch.npz", y=y)
    for stage in ("quantized", "hbm"):
        project.npz(f"{stage}.npz", y=integers)
    project.npz("labels.npz", labels=classes(x))
    return project


def one_picture_ten_times(root: Path) -> Told:
    return checked(repeated(root))


def one_picture_ten_times_gated(root: Path) -> Told:
    project = repeated(root)
    checked(project)
    return gated(root / "out", project, {"samples": 10})


def ten_pictures_gated(root: Path) -> Told:
    project = whole_chain(root)
    checked(project)
    return gated(root / "out", project, {"samples": 10})


def random_samples_gated(root: Path) -> Told:
    project = whole_chain(root)
    project.subject["samples"]["origin"] = "random"
    checked(project)
    return gated(root / "out", project, {"samples": 10})


def sample_changed_since_the_manifest(root: Path) -> Told:
    project = two_stages(root)
    assert call("samples", root / "eval.npz", "--manifest", root / "samples.json").code == 0
    project.subject["samples"] = {"raw": "eval.npz", "manifest": "samples.json"}
    x = inputs(6)
    x[3] += 1
    project.npz("eval.npz", x=x)
    return checked(project)


# --- what is missing


def away(root: Path) -> Project:
    """A board at an address where nothing listens."""
    (root / "key").touch()
    pool = {"transport": "ssh", "hosts": ["127.0.0.1:9"], "key": "key", "patience": 1, "tool": "hrt_model_exec"}
    return beside_a_board(root, pool=pool)


def board_offline(root: Path) -> Told:
    return checked(away(root))


def board_offline_and_its_row_left_out(root: Path) -> Told:
    """Only the rows before it are required; what is asked of the board is how old its result is, and there is none."""
    project = away(root)
    checked(project)
    return gated(root / "out", project, {"require": ["float-int8"], "board-days": 1})


def board_there(root: Path, day: str = "") -> Told:
    """Its result is of that day, else of today."""
    project = beside_a_board(root)
    checked(project)
    if day:
        changed(root / "out" / "results.json", lambda told: [run.update(day=day) for run in told["facts"][0]["runs"]])
    return gated(root / "out", project, {"board-days": 1})


def board_long_ago(root: Path) -> Told:
    return board_there(root, "2026-01-01")


def recording_of_a_board(root: Path) -> Told:
    """Nobody knows when a board gave it."""
    project = whole_chain(root)
    checked(project)
    return gated(root / "out", project, {"board-days": 1})


def recording_lacks_a_sample(root: Path) -> Told:
    project = whole_chain(root)
    with np.load(root / "hbm.npz") as archive:
        y = archive["y"]
    project.npz("hbm.npz", y=y[:9])
    return checked(project)


def without_a_board(root: Path, **policy: Any) -> Told:
    """The last stage was not asked for, and is skipped."""
    project = whole_chain(root)
    del project.artifacts["hbm"]
    assert checked(project).outcome == PASS
    return gated(root / "out", project, policy)


def skipped_allowed(root: Path) -> Told:
    return without_a_board(root)


def skipped_and_counted(root: Path) -> Told:
    return without_a_board(root, skipped="fail")


def skipped_and_required(root: Path) -> Told:
    return without_a_board(root, require="all")


def skipped_and_required_by_name(root: Path) -> Told:
    return without_a_board(root, require=["baseline", "bc-hbm"])


def subject_without_results(root: Path) -> Told:
    project = whole_chain(root)
    checked(project)
    project.top = {"subjects": {"net": project.subject, "other": project.subject}}
    return gated(root / "out", project, {"require": "all"})


def target_without_results(root: Path) -> Told:
    project = whole_chain(root)
    checked(project)
    project.subject["targets"] = ["J6M", "J6P"]
    return gated(root / "out", project, {"require": "all"})


# --- shards


def planned(project: Project, *, commit: str = COMMIT, legs: int = 2) -> list[str]:
    """The ids of the legs of a plan, written to the folder plan."""
    with at(commit):
        told = call(
            "plan", "-c", project.write(**project.top), "--out", project.root / "plan", "--host-legs", str(legs)
        )
    assert told.code == 0, told.err
    matrix = json.loads((project.root / "plan" / "matrix.json").read_text())
    return [entry["leg"] for entry in matrix["host"]]


def legs_home(root: Path, harm: Callable[[Path], object] = lambda shard: None) -> tuple[Project, Told]:
    """Two legs of one network, of which the second shard is harmed on its way, and their report in the folder all."""
    project = whole_chain(root)
    plan = root / "plan" / "plan.json"
    shards = []
    for leg in planned(project):
        shards.append(root / "shards" / slug_of(leg))
        with at(COMMIT):
            told = call("run", "-c", project.config, "--plan", plan, "--leg", leg, "--out", shards[-1])
        assert told.code == 0, told.err
    harm(shards[-1])
    return project, report(root, project)


def report(root: Path, project: Project) -> Told:
    """Of all shards there are, by the plan."""
    there = sorted((root / "shards").iterdir())
    with at(COMMIT):
        told = call("report", *there, "--plan", root / "plan/plan.json", "-c", project.config, "--out", root / "all")
    return judged(told, root / "all")


def distributed(root: Path, harm: Callable[[Path], object] = lambda shard: None) -> Told:
    """What the report says of them."""
    return legs_home(root, harm)[1]


def all_shards(root: Path) -> Told:
    return distributed(root)


def shard_lost(root: Path) -> Told:
    return distributed(root, shutil.rmtree)


def shard_of_another_commit(root: Path) -> Told:
    return distributed(root, lambda shard: changed(shard / "leg.json", lambda leg: leg["provenance"].update(sha=OTHER)))


def shard_of_another_run(root: Path) -> Told:
    return distributed(root, lambda shard: changed(shard / "leg.json", lambda leg: leg["provenance"].update(run="0")))


def shard_of_an_earlier_attempt(root: Path) -> Told:
    return distributed(
        root, lambda shard: changed(shard / "leg.json", lambda leg: leg["provenance"].update(attempt="0"))
    )


def shard_of_another_plan(root: Path) -> Told:
    return distributed(root, lambda shard: changed(shard / "leg.json", lambda leg: leg.update(plan="0" * 64)))


def shard_without_a_name(root: Path) -> Told:
    return distributed(root, lambda shard: (shard / "leg.json").unlink())


def shard_cut_off(root: Path) -> Told:
    return distributed(root, lambda shard: (shard / "results.json").write_text('{"schema": "driftgate.results"'))


def packed(root: Path, harm: Callable[[Path], object] = lambda pack: None) -> Told:
    """A leg on a host and one on a board, of which the pack is harmed before it runs."""
    project = beside_a_board(root)
    (leg,) = planned(project, legs=1)
    (board,) = json.loads((root / "plan" / "matrix.json").read_text())["board"]
    pack = root / "plan" / "packs" / board["slug"]
    harm(pack)
    (root / "shards").mkdir()
    with at(COMMIT):
        plan = root / "plan" / "plan.json"
        told = call("run", "-c", project.config, "--plan", plan, "--leg", leg, "--out", root / "shards" / "host")
        assert told.code == 0, told.err
        call("run", "--pack", pack, "--out", root / "shards" / "board")
    return report(root, project)


def pack_as_planned(root: Path) -> Told:
    return packed(root)


def pack_with_another_model(root: Path) -> Told:
    """It computes the same, and was built by another toolchain: no number tells."""
    return packed(root, lambda pack: compiled(pack / "models" / "hbm" / "net.hbm", biased(0.01), "4.9.7"))


# --- commits


def of_a_commit(root: Path, commit: str) -> Project:
    """Results that a CI's run on that commit wrote; of none, where it is empty."""
    project = whole_chain(root)
    if commit:
        with at(commit):
            checked(project)
    else:
        checked(project)
    return project


def results_of_this_commit(root: Path) -> Told:
    return gated(root / "out", of_a_commit(root, COMMIT), {"same-commit": True}, "--commit", COMMIT)


def results_of_another_commit(root: Path) -> Told:
    return gated(root / "out", of_a_commit(root, OTHER), {"same-commit": True}, "--commit", COMMIT)


def results_of_no_commit(root: Path) -> Told:
    return gated(root / "out", of_a_commit(root, ""), {"same-commit": True}, "--commit", COMMIT)


def no_commit_is_gated(root: Path) -> Told:
    return gated(root / "out", of_a_commit(root, COMMIT), {"same-commit": True})


def results_of_another_commit_reported_again(root: Path) -> Told:
    """`report` in a run on this commit makes no facts of it."""
    project = of_a_commit(root, OTHER)
    with at(COMMIT):
        assert call("report", root / "out", "--out", root / "again").code == 0
    return gated(root / "again", project, {"same-commit": True}, "--commit", COMMIT)


def shards_of_another_commit_merged(root: Path) -> Told:
    """A leg of another commit, merged without its plan on this one."""
    project = whole_chain(root)
    with at(OTHER):
        assert call("plan", "-c", project.write(), "--out", root / "plan").code == 0
        (leg,) = read_manifest(root / "plan" / "plan.json").plans[0].legs
        ran = call(
            "run", "-c", project.config, "--plan", root / "plan" / "plan.json", "--leg", leg.id, "--out", root / "leg"
        )
        assert ran.code == 0, ran.err
    with at(COMMIT):
        assert call("report", root / "leg", "--out", root / "again").code == 0
    assert read_origin(root / "again").sha == OTHER
    return gated(root / "again", project, {"same-commit": True}, "--commit", COMMIT)


def at_rest_since_another_commit(root: Path) -> Told:
    """Nothing changed since, so that nothing ran on this commit."""
    project = of_a_commit(root, OTHER)
    with at(COMMIT):
        told = call("plan", "-c", project.config, "--out", root / "plan", "--changed", root / "out")
        assert told.code == 0, told.err
        call("report", "--plan", root / "plan" / "plan.json", "-c", project.config, "--out", root / "all")
    return gated(root / "all", project, {"same-commit": True}, "--commit", COMMIT)


# --- versions of host, toolchain and board


def with_another_runtime(shard: Path) -> None:
    """The leg ran with another ONNX Runtime, to the same numbers."""
    results = read_results(shard)
    (facts,) = results.facts
    there = elsewhere(facts, versions=(("numpy", "2.2.6"), ("onnxruntime", "1.19.0")))
    write_all(shard, encode_results(replace(results, facts=(there,))))


def legs_of_two_runtimes(root: Path) -> Told:
    project, _ = legs_home(root, with_another_runtime)
    return gated(root / "all", project, {"same-versions": True})


def legs_of_two_runtimes_and_allowed(root: Path) -> Told:
    project, _ = legs_home(root, with_another_runtime)
    return gated(root / "all", project, {})


def legs_of_one_runtime(root: Path) -> Told:
    project, _ = legs_home(root)
    return gated(root / "all", project, {"same-versions": True})


def newer_than_the_runtime(root: Path) -> Told:
    """The board refuses it."""
    checked(beside_a_board(root, bc="4.12.0", hbm="4.12.0", runtime="4.11.11", loads=False))
    return explained(root / "out")


def newer_than_the_runtime_and_wrong(root: Path) -> Told:
    """The board runs it, to other numbers."""
    return checked(beside_a_board(root, bc="4.12.0", hbm="4.12.0", runtime="4.9.7", off=0.3), "--no-nodes")


def newer_than_the_runtime_and_right(root: Path) -> Told:
    """The board runs it, to the same numbers on these samples."""
    return checked(beside_a_board(root, bc="4.12.0", hbm="4.12.0", runtime="4.9.7"))


def older_than_the_runtime(root: Path) -> Told:
    """As the vendor means it."""
    return checked(beside_a_board(root, bc="4.9.7", hbm="4.9.7", runtime="4.11.11"))


def bc_and_hbm_of_two_toolchains(root: Path) -> Told:
    return checked(beside_a_board(root, hbm="4.9.7", off=0.3), "--no-nodes")


# --- baselines


def two_versions(root: Path, loss: float) -> tuple[Project, Path, Path]:
    """A version and the one behind it, whose calibrated stage is off by so much; both keep every limit."""
    (root / "base").mkdir()
    assert checked(whole_chain(root / "base")).outcome == PASS
    (root / "head").mkdir()
    head = whole_chain(root / "head")
    head.artifacts["calibrated"] = head.onnx("calibrated.onnx", biased(loss))
    assert checked(head).outcome == PASS
    return head, root / "base" / "out", root / "head" / "out"


def worse_within_limits_compared(root: Path) -> Told:
    _, base, head = two_versions(root, 2 * float(LOSS))
    return compared(base, head)


def worse_within_limits_gated(root: Path) -> Told:
    project, base, head = two_versions(root, 2 * float(LOSS))
    return gated(head, project, {"regressions": "fail"}, "--baseline", base)


def worse_within_limits_and_allowed(root: Path) -> Told:
    project, base, head = two_versions(root, 2 * float(LOSS))
    return gated(head, project, {}, "--baseline", base)


def as_good_as_the_baseline(root: Path) -> Told:
    project, base, head = two_versions(root, float(LOSS))
    return gated(head, project, {"regressions": "fail"}, "--baseline", base)


def no_baseline(root: Path) -> Told:
    project, _, head = two_versions(root, float(LOSS))
    return gated(head, project, {"regressions": "fail"})


def baseline_cut_off(root: Path) -> Told:
    project, base, head = two_versions(root, float(LOSS))
    (base / "facts.npz").write_bytes(b"PK")
    return gated(head, project, {"regressions": "fail"}, "--baseline", base)


# --- what tells a version, and what does not


def folder_with_a_telling_name(root: Path) -> Told:
    """A file that is not there, in a folder whose name is a word that errors of versions have."""
    np.savez(root / "outputs_a.npz", y=np.arange(6, dtype=np.float32))
    (root / "load_error.txt").write_text("cannot open /data/march-2026/net.hbm: No such file or directory")
    return explained(root)


# --- the table


@dataclass(frozen=True, slots=True)
class Situation:
    """What makes it, and what must come of it; where `says` is empty, no code is asked for."""

    make: Callable[[Path], Told]
    outcome: str
    exit: int
    says: str = ""


DRIFT, STALE, SKEW, INCOMPLETE = (
    "environment-drift",
    "stale-artifact",
    "toolchain-version-mismatch",
    "incomplete-evidence",
)
SITUATIONS = (
    # s5-flaky-environment: the same artifact with other numbers elsewhere is drift and no regression
    Situation(flaky_environment, FAIL, 1, DRIFT),
    Situation(flaky_environment_explained, FAIL, 1, DRIFT),
    Situation(drift_compared, PASS, 0, DRIFT),
    Situation(drift_across_a_limit_compared, PASS, 0, DRIFT),
    Situation(drift_gated, PASS, 0, DRIFT),
    # s5-mean-hides-worst, s5-nan-counts-as-pass
    Situation(mean_hides_worst, FAIL, 1, "worst-sample-hidden"),
    Situation(mean_hides_nothing, PASS, 0),
    Situation(nan_on_the_board, FAIL, 1, "nan-output"),
    Situation(nan_and_nothing_else, FAIL, 1, "nan-output"),
    # s5-random-input-false-alarm: no evidence of a fault, and none of health
    Situation(random_input, ERROR, 2, "invalid-test-input"),
    Situation(random_input_explained, PASS, 0, "invalid-test-input"),
    Situation(random_input_within_limits, ERROR, 2, "random-samples"),
    Situation(the_same_on_real_data, PASS, 0),
    # s5-stale-artifact: what was evaluated is not what is meant
    Situation(int8_is_the_float_file, FAIL, 1, STALE),
    Situation(int8_gives_what_float_gives, FAIL, 1, STALE),
    Situation(later_int8_is_the_float_file, FAIL, 1, STALE),
    Situation(later_int8_gives_what_float_gives, FAIL, 1, STALE),
    Situation(int8_is_its_own, PASS, 0),
    # digests: of files, plans, packs, bundles, and of what was built
    Situation(file_changed_since_the_plan, ERROR, 2, "plan-other"),
    Situation(labels_changed_since_the_plan, ERROR, 2, "plan-other"),
    Situation(plan_changed_by_hand, ERROR, 2, "plan-tampered"),
    Situation(results_of_a_changed_plan, ERROR, 2, "plan-tampered"),
    Situation(run_of_another_artifact_gated, FAIL, 1, STALE),
    Situation(run_of_another_artifact_reported, FAIL, 1, STALE),
    Situation(numbers_of_no_run, ERROR, 2),
    Situation(another_file_was_built, FAIL, 1, STALE),
    Situation(this_file_was_built, PASS, 0),
    Situation(nobody_says_what_was_built, ERROR, 2, "gate-no-built"),
    Situation(bundle_changed, ERROR, 2, "bundle-changed"),
    Situation(tables_of_another_run, ERROR, 2),
    Situation(pack_as_planned, PASS, 0),
    Situation(pack_with_another_model, ERROR, 2),
    # samples
    Situation(one_picture_ten_times, ERROR, 2),
    Situation(one_picture_ten_times_gated, FAIL, 1, "samples"),
    Situation(ten_pictures_gated, PASS, 0),
    Situation(random_samples_gated, ERROR, 2, "gate-samples-origin"),
    Situation(sample_changed_since_the_manifest, ERROR, 2, "sample-changed"),
    # what is missing, and what was skipped
    Situation(board_offline, ERROR, 2, INCOMPLETE),
    Situation(board_offline_and_its_row_left_out, ERROR, 2, INCOMPLETE),
    Situation(board_there, PASS, 0),
    Situation(board_long_ago, FAIL, 1, INCOMPLETE),
    Situation(recording_of_a_board, ERROR, 2, INCOMPLETE),
    Situation(recording_lacks_a_sample, ERROR, 2, INCOMPLETE),
    Situation(skipped_allowed, PASS, 0),
    Situation(skipped_and_counted, FAIL, 1, INCOMPLETE),
    Situation(skipped_and_required, ERROR, 2, INCOMPLETE),
    Situation(skipped_and_required_by_name, ERROR, 2, INCOMPLETE),
    Situation(subject_without_results, ERROR, 2),
    Situation(target_without_results, ERROR, 2),
    # shards
    Situation(all_shards, PASS, 0),
    Situation(shard_lost, ERROR, 2, "leg-missing"),
    Situation(shard_of_another_commit, ERROR, 2, "leg-stale"),
    Situation(shard_of_another_run, ERROR, 2, "leg-stale"),
    Situation(shard_of_an_earlier_attempt, ERROR, 2, "leg-stale"),
    Situation(shard_of_another_plan, ERROR, 2, "leg-other-plan"),
    Situation(shard_without_a_name, ERROR, 2, "leg-unmarked"),
    Situation(shard_cut_off, ERROR, 2, "leg-unreadable"),
    # commits
    Situation(results_of_this_commit, PASS, 0),
    Situation(results_of_another_commit, FAIL, 1, STALE),
    Situation(results_of_no_commit, ERROR, 2, "gate-no-commit"),
    Situation(no_commit_is_gated, ERROR, 2, "gate-no-wanted-commit"),
    Situation(results_of_another_commit_reported_again, FAIL, 1, STALE),
    Situation(shards_of_another_commit_merged, FAIL, 1, STALE),
    Situation(at_rest_since_another_commit, FAIL, 1, STALE),
    # versions
    Situation(newer_than_the_runtime, FAIL, 1, SKEW),
    Situation(newer_than_the_runtime_and_wrong, FAIL, 1, SKEW),
    Situation(newer_than_the_runtime_and_right, FAIL, 1, SKEW),
    Situation(older_than_the_runtime, PASS, 0),
    Situation(bc_and_hbm_of_two_toolchains, FAIL, 1, SKEW),
    Situation(legs_of_two_runtimes, FAIL, 1, SKEW),
    Situation(legs_of_two_runtimes_and_allowed, PASS, 0),
    Situation(legs_of_one_runtime, PASS, 0),
    # baselines
    Situation(worse_within_limits_compared, FAIL, 1, "worse"),
    Situation(worse_within_limits_gated, FAIL, 1, "regression-vs-baseline"),
    Situation(worse_within_limits_and_allowed, PASS, 0),
    Situation(as_good_as_the_baseline, PASS, 0),
    Situation(no_baseline, ERROR, 2, "gate-no-baseline"),
    Situation(baseline_cut_off, ERROR, 2, "facts-garbled"),
)


@pytest.mark.parametrize("one", SITUATIONS, ids=lambda one: one.make.__name__)
def test_a_situation_comes_to(one: Situation, tmp_path: Path) -> None:
    told = one.make(tmp_path)
    assert (told.outcome, told.exit) == (one.outcome, one.exit), told.codes
    assert not one.says or one.says in told.codes, told.codes


def test_what_does_not_pass_says_so_by_its_exit_code() -> None:
    assert {(one.outcome, one.exit) for one in SITUATIONS} == {(PASS, 0), (FAIL, 1), (ERROR, 2)}


# --- what the reports say of it


def test_drift_across_a_limit_fails_its_check_and_is_no_regression(tmp_path: Path) -> None:
    project, here, there = two_runners(tmp_path)
    config = project.write(policies={"release": {"regressions": "fail"}})
    told = call("gate", there, "-c", config, "--policy", "release", "--baseline", here, "--json")
    assert told.code == 1
    outcomes = {line["clause"]: line["outcome"] for line in told.json["lines"]}
    assert outcomes == {"check": "failed", "regressions": "passed"}


def test_a_skipped_row_is_counted_as_skipped_in_every_report(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    del project.artifacts["hbm"]
    checked(project)
    out = tmp_path / "out"
    skipped = {slug for slug, outcome in rows(out).items() if outcome == "skipped"}
    assert skipped == {"bc-hbm", "board"}
    suites = ElementTree.parse(out / "junit.xml").getroot().findall("testsuite")
    cases = {str(suite.get("name")).rpartition(".")[2]: suite for suite in suites}
    assert {slug for slug, suite in cases.items() if suite.get("skipped") != "0"} == skipped
    assert all(cases[slug].find("testcase/skipped") is not None for slug in skipped)
    assert "PASS 4 of 6 (2 not asked for)" in (out / "summary.md").read_text("utf-8")


def test_a_failed_board_is_no_skipped_one(tmp_path: Path) -> None:
    """Nobody can tell from the table that all is well while the board was away."""
    board_offline(tmp_path)
    out = tmp_path / "out"
    assert rows(out)["bc-hbm"] == "error"
    suites = ElementTree.parse(out / "junit.xml").getroot().findall("testsuite")
    (board,) = (suite for suite in suites if str(suite.get("name")).endswith(".bc-hbm"))
    assert (board.get("errors"), board.get("skipped")) == ("1", "0")
    assert "PASS" not in (out / "summary.md").read_text("utf-8").splitlines()[0]


def test_a_name_is_no_version(tmp_path: Path) -> None:
    assert "toolchain-version-mismatch" not in folder_with_a_telling_name(tmp_path).codes
