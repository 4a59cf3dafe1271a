"""The verbs from the outside: exit codes, what they print, what they leave in the folder."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml

from driftgate import __version__
from driftgate.cli import VERBS
from driftgate.commands.checking import OUTPUTS
from driftgate.demo.build import build
from driftgate.demo.faults import FAULTS
from support.commandline import PROGRAM, call, codes, judged, process, rows
from support.models import answer, save, tiny, value
from support.project import Project, biased, inputs, torch_stand_in, two_stages, whole_chain

MARK_SECONDS = 60
SHARD_FILES = {"results.json", "facts.npz", "leg.json", "driftgate.log"}

# --- help and exit codes


def test_help_lists_every_verb() -> None:
    found = process("--help")
    assert (found.code, found.err) == (0, "")
    assert [line.split()[0] for line in found.out.split("Verbs:")[1].splitlines() if line.strip()] == list(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str) -> None:
    found = call(verb, "--help")
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith(f"Usage: driftgate {verb} ")
    assert all(line.split("  ")[-1].strip() for line in found.out.splitlines() if line.strip().startswith("--"))


@pytest.mark.parametrize("arguments", ["frobnicate", "check --frobnicate", "run", "diff a", "schema x"])
def test_a_wrong_command_line_is_code_2(arguments: str) -> None:
    found = call(*arguments.split())
    assert (found.code, found.out) == (2, "")
    assert "Usage: driftgate" in found.err


def test_the_demo_passes_as_a_process(tmp_path: Path) -> None:
    found = process("demo", "--out", "demo-out", folder=tmp_path)
    assert (found.code, found.err) == (0, "")
    assert "digits J6M: PASS 6 of 6" in found.out
    assert "\x1b" not in found.out
    assert {file.name for file in (tmp_path / "demo-out").iterdir()} == {*OUTPUTS, "project"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_code_1_at_its_check(tmp_path: Path, fault: str) -> None:
    for number, arguments in enumerate((["demo", "--fault", fault], ["check", "-c", f"demo:{fault}"])):
        if number and fault != next(iter(FAULTS)):
            continue  # once is enough to see that both are the same
        found = call(*arguments, "--out", tmp_path / str(number))
        assert (found.code, found.err) == (1, "")
        outcomes = [*rows(tmp_path / str(number)).values()]
        assert outcomes.index("failed") == next(
            n for n, check in enumerate(rows(tmp_path / str(number))) if check == FAULTS[fault].check
        )


def test_failed_goes_before_error_and_error_before_passed(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    out = tmp_path / "out"
    assert call("check", "-c", project.write(), "--out", out).code == 0
    (tmp_path / "quantized.npz").write_bytes((tmp_path / "hbm.npz").read_bytes())
    project.signature("hbm.signature.json", y={"scales": [0.05, 0.05, 0.05], "axis": 1})
    assert call("check", "-c", project.config, "--out", out).code == 2
    project.onnx("optimized.onnx", biased(0.3))
    assert call("check", "-c", project.config, "--out", out).code == 1
    assert rows(out)["onnx-optimized"] == "failed"
    assert rows(out)["bc-hbm"] == "error"


def test_several_subjects_are_as_good_as_the_worst_of_them(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    off = {**project.subject, "artifacts": {**project.artifacts, "onnx": project.onnx("off.onnx", biased(0.3))}}
    project.write(subjects={"good": project.subject, "off": off})
    out = tmp_path / "out"
    found = call("check", "-c", project.config, "--out", out)
    assert found.code == 1
    assert found.out.startswith("FAIL in 1 of 2 subjects")
    assert call("check", "-c", project.config, "--out", out, "--subject", "good").code == 0
    assert judged(out)["subject"] == "good"


def test_json_is_the_judgement_of_the_document(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    found = call("check", "-c", project.write(), "--out", tmp_path / "out", "--json")
    assert found.code == 0
    assert found.json == json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))["judgement"]


def test_names_are_printed_as_they_are(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    name = "net :smile: [bold]x[/bold]"
    project.write(subjects={name: project.subject})
    found = call("check", "-c", project.config, "--out", tmp_path / "out")
    assert name in found.out
    found = call("check", "-c", project.config, "--out", tmp_path / "out", "--json")
    assert found.json["subjects"][0]["subject"] == name
    assert call("plan", "-c", project.config, "--json").json["subjects"][0]["subject"] == name
    project.text("\n" * 99 + "polices: {}\n")
    assert f"{project.config}:100: " in call("plan", "-c", project.config).err


def test_the_log_tells_what_ran(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    assert call("check", "-c", project.write(), "--out", tmp_path / "out").err == ""
    log = (tmp_path / "out" / "driftgate.log").read_text("utf-8")
    assert "leg net/J6M/host/0-2 of plan" in log
    assert "onnx: passed, 6 samples" in log
    told = call("check", "-c", project.config, "--out", tmp_path / "out", "--verbose").err
    assert "onnx: passed, 6 samples" in told


# --- shards


def legs(project: Project, count: int) -> list[str]:
    """The ids of the legs that a plan is divided into."""
    found = call("plan", "-c", project.config, "--json", "--legs", str(count))
    assert found.code == 0
    return [leg["id"] for subject in found.json["subjects"] for leg in subject["legs"]]


def shards(project: Project, count: int) -> list[Path]:
    """A folder for each leg, run one by one."""
    folders = []
    for number, leg in enumerate(legs(project, count)):
        folders.append(project.root / f"shard-{count}-{number}")
        found = call("run", "-c", project.config, "--leg", leg, "--out", folders[-1])
        assert (found.code, found.out, found.err) == (0, "", "")
        assert {file.name for file in folders[-1].iterdir()} == SHARD_FILES
        assert json.loads((folders[-1] / "results.json").read_text("utf-8"))["judgement"] is None
    return folders


@pytest.mark.parametrize("block", [1, 3, 4, 10, 16])
def test_shards_in_any_order_give_what_one_check_gives(tmp_path: Path, block: int) -> None:
    project = whole_chain(tmp_path, count=10, block=block)
    assert call("check", "-c", project.write(), "--out", tmp_path / "whole").code == 0
    parts = shards(project, 3)
    assert len(parts) == min(3, -(-10 // block))
    for order in permutations(parts):
        assert call("report", *order, "--out", tmp_path / "merged").code == 0
        assert judged(tmp_path / "merged") == judged(tmp_path / "whole")
        assert (tmp_path / "merged" / "facts.npz").read_bytes() == (tmp_path / "whole" / "facts.npz").read_bytes()


def test_shards_of_a_failing_demo(tmp_path: Path) -> None:
    config = build(tmp_path, "board-channels")
    document = yaml.safe_load(config.read_text("utf-8"))
    document["subjects"]["digits"]["samples"]["block"] = 50
    project = Project(tmp_path)
    project.text(yaml.safe_dump(document, allow_unicode=True))
    assert call("check", "-c", config, "--out", tmp_path / "whole").code == 1
    parts = shards(project, 4)
    assert call("report", *reversed(parts), "--out", tmp_path / "merged").code == 1
    merged, whole = judged(tmp_path / "merged"), judged(tmp_path / "whole")
    assert [finding["code"] for finding in whole.pop("findings")] == ["device-op-error"]
    assert merged.pop("findings") == []  # nobody made experiments yet
    assert merged == whole


def test_a_missing_shard_is_an_error_and_nothing_passes(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.write()
    parts = shards(project, 3)
    assert call("report", *parts[:2], "--out", tmp_path / "merged").code == 2
    assert set(rows(tmp_path / "merged").values()) == {"error"}
    assert codes(tmp_path / "merged", "bc-hbm") == ["samples-partial"]


def test_a_shard_given_twice_or_run_twice_counts_once(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.write()
    parts = shards(project, 2)
    again = shutil.copytree(parts[0], tmp_path / "again")
    assert call("run", "-c", project.config, "--leg", legs(project, 2)[0], "--out", again).code == 0
    assert call("report", *parts, parts[0], again, "--out", tmp_path / "merged").code == 0


def test_shards_that_disagree_or_belong_to_other_plans(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.write()
    parts = shards(project, 2)
    other = whole_chain(tmp_path / "other", count=12)
    other.write()
    found = call("report", parts[0], *shards(other, 1), "--out", tmp_path / "merged")
    assert found.code == 2
    assert "the shards belong to different plans: " in found.err

    document = json.loads((parts[0] / "results.json").read_text("utf-8"))
    document["facts"][0]["runs"][0]["samples_done"] = 1
    changed = shutil.copytree(parts[0], tmp_path / "changed")
    (changed / "results.json").write_text(json.dumps(document))
    found = call("report", *parts, changed, "--out", tmp_path / "merged")
    assert found.code == 2
    assert "two shards disagree about Run net/J6M/host/0-1 " in found.err
    assert not (tmp_path / "merged" / "results.json").exists()


def test_a_report_that_cannot_be_made_removes_the_one_before(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.write()
    (part,) = shards(project, 1)
    assert call("report", part, "--out", tmp_path / "merged").code == 0
    found = call("report", part, tmp_path / "nowhere", "--out", tmp_path / "merged")
    assert found.code == 2
    assert "nowhere" in found.err
    assert [*(tmp_path / "merged").iterdir()] == []


def test_a_report_may_stand_in_the_shards_own_folder(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.write()
    (part,) = shards(project, 1)
    assert call("report", part, "--out", part).code == 0
    assert rows(part)["pytorch-onnx"] == "passed"
    assert call("report", part / "results.json", "--out", part).code == 0


def test_a_report_is_judged_by_todays_policy(tmp_path: Path) -> None:
    project = two_stages(tmp_path, shift=1e-3)
    project.write()
    (part,) = shards(project, 1)
    project.write(policies={"loose": {"pytorch-onnx": {"range": 0.1}}})
    out = tmp_path / "merged"
    assert call("report", part, "--out", out).code == 1
    assert call("report", part, "--out", out, "-c", project.config, "--policy", "loose").code == 0
    assert judged(out)["policy"] == "loose"
    found = call("report", part, "--out", out, "--policy", "loose")
    assert found.code == 2
    assert "policy loose needs the configuration" in found.err


@pytest.mark.parametrize(
    "leg", ["", "net", "net/J6M/host/0-9", "net/J6M/host/1-0", "net/J6P/host/0-2", "net/J6M/host/0-x"]
)
def test_a_leg_that_is_not_of_this_plan(tmp_path: Path, leg: str) -> None:
    project = two_stages(tmp_path)
    found = call("run", "-c", project.write(), "--leg", leg, "--out", tmp_path / "shard")
    assert found.code == 2
    assert f"there is no leg {leg} in this plan; its legs: net/J6M/host/0-2" in found.err
    assert not (tmp_path / "shard").exists()


def test_a_leg_whose_stage_breaks_is_a_shard_with_code_2(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.npz("pytorch.npz", y=answer(inputs(6))[:3])
    (leg,) = legs_of(project)
    assert call("run", "-c", project.config, "--leg", leg, "--out", tmp_path / "shard").code == 2
    assert call("report", tmp_path / "shard", "--out", tmp_path / "merged").code == 2
    assert codes(tmp_path / "merged", "pytorch-onnx") == ["recording-sample-missing", "samples-partial"]


def legs_of(project: Project) -> list[str]:
    project.write()
    return legs(project, 1)


def test_a_profile_is_a_plan_of_its_own(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.subject["samples"]["profiles"] = {"quick": 4}
    project.write()
    out = tmp_path / "out"
    assert call("check", "-c", project.config, "--out", out, "--profile", "quick").code == 0
    assert [score["text"] for score in judged(out)["scores"]] == ["4/4"] * 6
    plans = [
        call("plan", "-c", project.config, "--json", *more).json["subjects"][0] for more in ([], ["--profile", "quick"])
    ]
    assert [len(plan["samples"]["ids"]) for plan in plans] == [10, 4]
    assert plans[0]["digest"] != plans[1]["digest"]


def test_a_plan_for_people_shows_every_leg_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    project = whole_chain(tmp_path)
    name = "a-network-with-a-name-that-is-longer-than-the-terminal"
    project.write(subjects={name: project.subject})
    found = call("plan", "-c", project.config, "--legs", "2")
    assert found.code == 0
    for leg in (f"{name}/J6M/host/0-1", f"{name}/J6M/host/2-3"):
        assert f" {leg} " in found.out


# --- stopped from outside


def stopped(project: Project, numbers: Sequence[signal.Signals], *arguments: str | Path) -> tuple[int, str]:
    """Start a verb, wait until its worker hangs, send the signals; exit code and stderr."""
    child = subprocess.Popen(
        [*PROGRAM, *(str(argument) for argument in arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    with child:
        try:
            deadline = time.monotonic() + MARK_SECONDS
            while not (project.root / "mark").exists():
                assert child.poll() is None, "it ended before its worker hung"
                assert time.monotonic() < deadline, "its worker never hung"
                time.sleep(0.02)
            for number in numbers:
                child.send_signal(number)
            _, said = child.communicate(timeout=MARK_SECONDS)
        finally:
            child.kill()
    return child.returncode, said.decode()


def hanging(folder: Path) -> Project:
    """A project whose PyTorch hangs at its third sample."""
    project = whole_chain(folder)
    project.artifacts["pytorch"] = torch_stand_in(project, "hang", timeout=600)
    return project


def partial_runs(out: Path, subject: int = 0) -> set[tuple[str, int]]:
    """Outcome and number of samples of all runs."""
    document = json.loads((out / "results.json").read_text("utf-8"))
    assert not [*out.glob("*.part"), *out.glob(".*")]
    return {(run["outcome"], run["samples_done"]) for run in document["facts"][subject]["runs"]}


@pytest.mark.parametrize(
    "numbers",
    [(signal.SIGTERM,), (signal.SIGINT,), (signal.SIGINT, signal.SIGTERM, signal.SIGTERM)],
    ids=["SIGTERM", "Ctrl-C", "a runner's cancellation"],
)
def test_a_stopped_check_writes_what_there_is_marked_partial(tmp_path: Path, numbers: Sequence[signal.Signals]) -> None:
    project = hanging(tmp_path)
    rest = {**project.subject, "artifacts": {**project.artifacts, "pytorch": "pytorch.npz"}}
    project.write(subjects={"first": project.subject, "second": rest})
    out = tmp_path / "out"
    code, said = stopped(project, numbers, "check", "-c", project.config, "--out", out)
    assert (code, said) == (2, "")
    assert {file.name for file in out.iterdir()} == set(OUTPUTS)
    assert partial_runs(out) == {("partial", 2)}
    assert codes(out, "bc-hbm") == ["interrupted", "samples-partial"]
    assert partial_runs(out, 1) == set()
    assert codes(out, "bc-hbm", 1) == ["run-missing"]
    assert {*rows(out).values(), *rows(out, 1).values()} == {"error"}


def test_a_stopped_leg_is_a_partial_shard(tmp_path: Path) -> None:
    project = hanging(tmp_path)
    (leg,) = legs_of(project)
    out = tmp_path / "shard"
    code, _ = stopped(project, [signal.SIGTERM], "run", "-c", project.config, "--leg", leg, "--out", out)
    assert code == 2
    assert partial_runs(out) == {("partial", 2)}
    assert call("report", out, "--out", tmp_path / "merged").code == 2
    assert codes(tmp_path / "merged", "float-int8") == ["interrupted", "samples-partial"]


# --- diff


def test_diff_of_equal_and_different_models(tmp_path: Path) -> None:
    whole_chain(tmp_path)
    a, b, off = (tmp_path / name for name in ("net.onnx", "optimized.onnx", "calibrated.onnx"))
    feeds = ("--inputs", tmp_path / "eval.npz")
    found = call("diff", a, b, *feeds)
    assert (found.code, found.err) == (0, "")
    assert "net ↔ optimized  PASS" in found.out
    found = call("diff", a, off, *feeds)
    assert found.code == 1
    assert "FAIL at net ↔ calibrated" in found.out
    assert "summary.md" not in found.out
    assert call("diff", a, off, *feeds, "--kind", "lossy").code == 0
    assert call("diff", a, tmp_path / "pytorch.npz", *feeds).code == 0


def renamed() -> onnx.ModelProto:
    """The tiny network with another name of its output, and one output more."""
    proto = tiny()
    proto.graph.node[-1].output[0] = "logits"
    proto.graph.output[0].name = "logits"
    proto.graph.output.append(value("h", [1, 2]))
    return proto


def test_diff_with_other_names_of_outputs(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.npz("y.npz", y=answer(inputs(6)), other=answer(inputs(6))[:, :1])
    save(renamed(), tmp_path / "renamed.onnx")
    paths = (tmp_path / "net.onnx", tmp_path / "renamed.onnx", "--inputs", tmp_path / "eval.npz")
    found = call("diff", *paths)
    assert found.code == 2
    assert "diff: --output" in found.out
    found = call("diff", *paths, "--output", "y=logits", "--json")
    assert found.code == 0
    assert found.json["subjects"][0]["summaries"][0]["output"] == "y"
    found = call("diff", *paths, "--output", "y")
    assert found.code == 2
    assert "y: wanted A=B" in found.err


def test_diff_keeps_its_reports_where_it_is_told(tmp_path: Path) -> None:
    two_stages(tmp_path)
    out = tmp_path / "out"
    paths = (tmp_path / "net.onnx", tmp_path / "pytorch.npz", "--inputs", tmp_path / "eval.npz")
    assert call("diff", *paths, "--out", out).code == 0
    assert {file.name for file in out.iterdir()} == set(OUTPUTS)
    found = call("diff", tmp_path / "gone.onnx", tmp_path / "lost.npz", "--inputs", tmp_path / "none.npz", "--out", out)
    assert found.code == 2
    for name in ("gone.onnx", "lost.npz", "none.npz"):
        assert name in found.err
    assert [*out.iterdir()] == []


def test_diff_of_two_files_of_one_name(tmp_path: Path) -> None:
    two_stages(tmp_path)
    save(tiny(), tmp_path / "b" / "net.onnx")
    found = call("diff", tmp_path / "net.onnx", tmp_path / "b" / "net.onnx", "--inputs", tmp_path / "eval.npz")
    assert found.code == 0
    assert "a ↔ b" in found.out


# --- samples


def test_a_manifest_is_made_and_kept(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    command = ("samples", tmp_path / "eval.npz", "--manifest", tmp_path / "m.json")
    found = call(*command, "--name", "eval set", "--origin", "calibration", "--block", "4")
    assert (found.code, found.err) == (0, "")
    manifest = json.loads((tmp_path / "m.json").read_text("utf-8"))
    assert {key: manifest[key] for key in ("name", "origin", "block")} == {
        "name": "eval set",
        "origin": "calibration",
        "block": 4,
    }
    assert len(manifest["samples"]) == 6
    assert call(*command, "--check").code == 0

    x = inputs(7)
    x[[2, 4]] += 1
    project.npz("eval.npz", x=x)
    found = call(*command, "--check")
    assert (found.code, found.out) == (2, "")
    assert "these samples are not in" in found.err
    assert "0006; make the manifest again" in found.err
    assert f"these samples are not what {tmp_path / 'm.json'} has: 0002, 0004;" in found.err
    project.npz("eval.npz", x=inputs(5))
    assert "are not in the data: 0005" in call(*command, "--check").err


def test_a_manifest_does_not_depend_on_the_form_of_the_files(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    for number, x in enumerate(inputs(6)):
        (tmp_path / "npz").mkdir(exist_ok=True)
        project.npz(f"npz/{number:04}.npz", x=x[None])
        (tmp_path / "npy" / f"{number:04}").mkdir(parents=True)
        np.save(tmp_path / "npy" / f"{number:04}" / "x.npy", x[None])
    manifests = []
    for source in ("eval.npz", "npz", "npy"):
        assert call("samples", tmp_path / source, "--name", "eval", "--manifest", tmp_path / "m.json").code == 0
        manifests.append((tmp_path / "m.json").read_text("utf-8"))
    assert len(set(manifests)) == 1


def test_a_manifest_alone_is_enough_for_recordings(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    assert call("samples", tmp_path / "eval.npz", "--manifest", tmp_path / "m.json").code == 0
    project.subject["artifacts"] = {stage: f"{stage}.npz" for stage in ("pytorch", "quantized", "hbm")}
    project.subject["samples"] = {"manifest": "m.json"}
    (tmp_path / "eval.npz").unlink()
    assert call("check", "-c", project.write(), "--out", tmp_path / "out").code == 0
    assert rows(tmp_path / "out")["bc-hbm"] == "passed"


def test_a_manifest_of_raw_and_runtime_samples(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.npz("runtime.npz", x=inputs(6, seed=1))
    command = (
        "samples",
        tmp_path / "eval.npz",
        "--runtime",
        tmp_path / "runtime.npz",
        "--manifest",
        tmp_path / "m.json",
    )
    assert call(*command).code == 0
    project.subject["samples"] = {"manifest": "m.json", "raw": "eval.npz", "runtime": "runtime.npz"}
    assert call("check", "-c", project.write(), "--out", tmp_path / "out").code == 0
    project.npz("runtime.npz", x=inputs(6, seed=2))
    assert call(*command, "--check").code == 2
    found = call("check", "-c", project.config, "--out", tmp_path / "out")
    assert found.code == 2
    assert "sample 0000 is not what the plan has" in found.err


def test_a_manifest_cannot_be_a_folder(tmp_path: Path) -> None:
    two_stages(tmp_path)
    found = call("samples", tmp_path / "eval.npz", "--manifest", tmp_path)
    assert found.code == 2
    assert "give the manifest a file name" in found.err


def test_the_version_is_told() -> None:
    found = call("--version")
    assert (found.code, found.out.strip()) == (0, f"driftgate, version {__version__}")
