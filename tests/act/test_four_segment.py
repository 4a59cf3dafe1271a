"""The reusable workflow: its jobs in a consumer's repository, and what becomes of legs that do not come home."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from driftgate.storage.bundle import open_bundle
from driftgate.storage.document import read_results
from support.act.events import FORK, TOKEN, pull_request
from support.act.foursegment import SECRET, caller, consumer, ran, with_workflow
from support.act.rig import LABELS, ActRun, Rig, Trigger
from support.chains import outcomes
from support.github import payloads
from support.github.archives import zipped
from support.github.past import Ran, Uploaded
from support.github.server import GitHub, Storage
from support.github.world import SHA

HOST = "net/J6M/host/0-2"
FIRST, SECOND = "net/J6M/board/0-1", "net/J6M/board/2-2"
ENDS = {"Plan": "success", "Watch": "success", "Judge": "success", "Publish": "success"}
WHOLE = ENDS | {f"Host {HOST}": "success", f"J6 {FIRST}": "success", f"J6 {SECOND}": "success"}
FAILED = {"Judge": "failure", "Publish": "failure"}


@pytest.fixture(scope="module")
def four(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Rig:
    return with_workflow(rig, tmp_path_factory.mktemp("four"))


@pytest.fixture
def github() -> Iterator[GitHub]:
    """One whose runs have found runners for all their boards."""
    with GitHub() as server:
        server.world.jobs = lambda run: [
            payloads.job(n, run, f"chain / J6 board net/J6M/board/{n}-{n}", "completed") for n in range(12)
        ]
        yield server
        assert server.problems == []


def pushed(github: GitHub) -> Trigger:
    return Trigger("push", {"ref": "refs/heads/main"}, github.url, TOKEN)


def harmed(four: Rig, folder: Path) -> Rig:
    """A rig under which shards meet the HARMS before they are judged."""
    hook = folder / "harm"
    lines = [f"#!{sys.executable}", "import json, pathlib, shutil, sys", "import numpy"]
    lines += ["if sys.argv[1] != 'driftgate-shard-*': sys.exit()"]
    for name, (harm, _) in HARMS.items():
        lines += [f"shard = pathlib.Path({str(folder)!r}) / 'artifacts/driftgate-shard-{name}-J6M-board-0-2'", harm]
    hook.write_text("\n".join(lines), "utf-8")
    hook.chmod(0o755)
    return replace(four, variables={"BEFORE_DOWNLOAD": str(hook)})


def judged(folder: Path) -> list[dict[str, str]]:
    """slug → outcome of every subject and target in the report that was uploaded."""
    results = read_results(folder / "artifacts" / "driftgate-report")
    return [outcomes(judgement) for judgement in results.judgements or ()]


def said(done: ActRun) -> str:
    """The judge's page, in one line and without its code spans."""
    return " ".join(" ".join(done.summaries).replace("`", "").split())


def test_two_networks_two_targets_and_three_blocks_come_together(four: Rig, tmp_path: Path, github: GitHub) -> None:
    consumer(tmp_path, ("net", "other"), ("J6M", "J6P"))
    done = four.attempt(tmp_path, caller(tmp_path, board_legs=3, host_legs=1), pull_request(github))
    subjects = [f"{name}/{target}" for name in ("net", "other") for target in ("J6M", "J6P")]
    assert ran(done) == ENDS | {f"Host {one}/host/0-2": "success" for one in subjects} | {
        f"J6 {one}/board/{block}-{block}": "success" for one in subjects for block in range(3)
    }
    assert [(found["float-int8"], found["bc-hbm"], found["board"]) for found in judged(tmp_path)] == [
        ("passed", "passed", "passed")
    ] * 4
    (comment,) = github.world.bodies()
    assert "BC ↔ HBM" in comment
    assert "1111111" in comment, "the head of the pull request, not the merge that was tested"


def test_a_server_of_ones_own_comes_to_the_same(four: Rig, tmp_path: Path, github: GitHub) -> None:
    """Its download brings all artifacts of the run, not the shards alone."""
    consumer(tmp_path)
    file = caller(tmp_path, "four-segment-ghes.yml", board_legs=2, build="touch built")
    done = four.attempt(tmp_path, file, pull_request(github))
    assert ran(done) == WHOLE | {"Build": "success"}
    assert [(one["float-int8"], one["bc-hbm"]) for one in judged(tmp_path)] == [("passed", "passed")]
    assert len(github.world.bodies()) == 1


def test_the_boards_secrets_reach_the_boards_alone_and_no_token_reaches_anybody(
    four: Rig, tmp_path: Path, github: GitHub
) -> None:
    consumer(tmp_path)
    done = four.attempt(tmp_path, caller(tmp_path, board_legs=2), pushed(github))
    assert ran(done) == WHOLE
    board, host = ((tmp_path / name).read_text("utf-8") for name in ("board.env", "host.env"))
    assert "J6_PASSWORD=hunter22" in board
    for line in SECRET.split():
        assert line not in host
    for environment in (board, host):
        assert TOKEN not in environment
        assert "GITHUB_SHA=" in environment
        assert [line for line in environment.splitlines() if "TOKEN" in line.partition("=")[0]] == []
    assert "hunter22" not in done.text
    assert github.world.comments == {}, "a push has no pull request"


def test_a_board_without_a_runner_is_an_error_that_names_its_legs(four: Rig, tmp_path: Path, github: GitHub) -> None:
    """act skips a job whose label nobody has, as silently as GitHub counts a skipped one as passed."""
    consumer(tmp_path)
    done = replace(four, labels=LABELS).attempt(tmp_path, caller(tmp_path, board_legs=2), pull_request(github))
    assert ran(done) == ENDS | {f"Host {HOST}": "success"} | FAILED
    assert [(one["float-int8"], one["bc-hbm"]) for one in judged(tmp_path)] == [("passed", "error")]
    for leg in (FIRST, SECOND):
        assert leg in said(done)
    (comment,) = github.world.bodies()
    assert SECOND in comment
    bundle = tmp_path / "artifacts" / "driftgate-bundle-1" / "bundle.zip"
    assert sha256(bundle.read_bytes()).hexdigest() in comment, "an artifact of this attempt, whose digest is told"
    assert "/actions/runs/1/artifacts/" in comment
    assert not (tmp_path / "artifacts" / "driftgate-report" / "bundle.zip").exists()
    with open_bundle(bundle) as opened:
        assert [(link.subject, link.target) for link in opened.manifest.links] == [("net", "J6M")]


#: Subject → what happens to the shard of its board on the way to the judge, and what the report says of it.
HARMS = {
    "late": ("shutil.rmtree(shard)", "leg late/J6M/board/0-2 did not report"),
    "short": ("(shard / 'facts.npz').write_bytes(b'PK')", "short-J6M-board-0-2 cannot be read"),
    "unmarked": ("(shard / 'leg.json').unlink()", "unmarked-J6M-board-0-2 has no leg.json"),
    "stale": (
        "note = json.loads((shard / 'leg.json').read_text())\n"
        "note['provenance']['sha'] = 'f' * 40\n"
        "(shard / 'leg.json').write_text(json.dumps(note))",
        "leg stale/J6M/board/0-2 is of ffffffffffff",
    ),
    "tampered": (
        "document = json.loads((shard / 'results.json').read_text())\n"
        "document['facts'][0]['plan']['target'] = 'J6P'\n"
        "(shard / 'results.json').write_text(json.dumps(document))",
        "tampered-J6M-board-0-2 cannot be read",
    ),
    "pickled": (
        "path = next((shard / 'recordings').rglob('*.npz'))\nnumpy.savez(path, heat=numpy.array([{}], dtype=object))",
        "hbm: what was recorded of \\d+ is not what the leg says it is",
    ),
    "outside": (
        "path = next((shard / 'recordings').rglob('*.npz'))\npath.unlink()\npath.symlink_to('/etc/passwd')",
        "hbm: what was recorded of \\d+ is not what the leg says it is",
    ),
}


def test_a_shard_that_is_not_as_planned_is_an_error_of_its_subject_alone(
    four: Rig, tmp_path: Path, github: GitHub
) -> None:
    subjects = (*HARMS, "whole")
    consumer(tmp_path, subjects)
    done = harmed(four, tmp_path).attempt(tmp_path, caller(tmp_path), pushed(github))
    assert ran(done) == ENDS | FAILED | {
        f"{job} {name}/J6M/{where}/0-2": "success"
        for name in subjects
        for job, where in (("Host", "host"), ("J6", "board"))
    }
    results = read_results(tmp_path / "artifacts" / "driftgate-report")
    found = {judgement.subject: outcomes(judgement) for judgement in results.judgements or ()}
    assert {name: (one["float-int8"], one["bc-hbm"]) for name, one in found.items()} == {
        **dict.fromkeys(HARMS, ("passed", "error")),
        "whole": ("passed", "passed"),
    }
    assert [name for name, (_, words) in HARMS.items() if not re.search(words, said(done))] == []


def test_a_leg_that_is_cancelled_leaves_what_it_has_and_is_an_error(four: Rig, tmp_path: Path, github: GitHub) -> None:
    """As the runner cancels: an interrupt for the step's process, while the board is at work."""
    consumer(tmp_path)
    (tmp_path / "board.sh").write_text(
        'case "$*" in *infer*)\n'
        "up=$$\n"
        'while ! tr "\\0" " " < "/proc/$up/cmdline" | grep -q driftgate.jobs; do\n'
        '  up=$(sed "s/.*) . //; s/ .*//" "/proc/$up/stat")\n'
        "done\n"
        'kill -INT "$up"; sleep 20;; esac\n'
    )
    done = four.attempt(tmp_path, caller(tmp_path), pushed(github))
    leg = "net/J6M/board/0-2"
    assert ran(done) == ENDS | {f"Host {HOST}": "success", f"J6 {leg}": "failure"} | FAILED
    assert (tmp_path / "artifacts" / "driftgate-shard-net-J6M-board-0-2" / "results.json").is_file()
    assert [(one["float-int8"], one["bc-hbm"]) for one in judged(tmp_path)] == [("passed", "error")]


def test_a_forks_pull_request_reaches_no_board_and_is_judged_without(four: Rig, tmp_path: Path, github: GitHub) -> None:
    github.world.pulls[7] = replace(github.world.pulls[7], head_repository=FORK)
    consumer(tmp_path)
    done = four.attempt(tmp_path, caller(tmp_path, board_legs=2), pull_request(github))
    assert ran(done) == {"Plan": "success", f"Host {HOST}": "success", "Judge": "success", "Publish": "success"}
    assert not (tmp_path / "board.env").exists()
    assert not (tmp_path / "artifacts" / "driftgate-packs").exists()
    assert [(one["float-int8"], one["bc-hbm"], one["board"]) for one in judged(tmp_path)] == [
        ("passed", "skipped", "skipped")
    ]
    assert "comes from another repository" in said(done)


@pytest.mark.parametrize("is_fork", [False, True])
def test_a_release_wants_the_boards_rows(is_fork: bool, four: Rig, tmp_path: Path, github: GitHub) -> None:
    if is_fork:
        github.world.pulls[7] = replace(github.world.pulls[7], head_repository=FORK)
    consumer(tmp_path)
    done = four.attempt(tmp_path, caller(tmp_path, policy="release"), pull_request(github))
    boards = {} if is_fork else {"J6 net/J6M/board/0-2": "success", "Watch": "success"}
    ends = FAILED if is_fork else {"Judge": "success", "Publish": "success"}
    assert ran(done) == {"Plan": "success", f"Host {HOST}": "success"} | boards | ends


@pytest.mark.parametrize("event", ["pull_request_target", "workflow_run"])
def test_an_event_that_others_may_start_reaches_no_board(event: str, four: Rig, tmp_path: Path, github: GitHub) -> None:
    consumer(tmp_path)
    trigger = replace(pull_request(github), event=event)
    file = caller(tmp_path)
    file.write_text(file.read_text().replace("- push", f"- push\n- {event}"))
    done = four.attempt(tmp_path, file, trigger)
    assert {name for name in ran(done) if name.startswith(("J6", "Watch"))} == set()
    assert ran(done)[f"Host {HOST}"] == "success"
    assert not (tmp_path / "board.env").exists()


def test_a_plan_that_cannot_be_made_fails_the_required_check(four: Rig, tmp_path: Path, github: GitHub) -> None:
    consumer(tmp_path)
    done = four.attempt(tmp_path, caller(tmp_path, profile="absent"), pushed(github))
    assert ran(done) == {"Plan": "failure"} | FAILED
    assert any("the job plan ended as failure" in error for error in done.errors)
    assert any("the job host ended as skipped" in error for error in done.errors)


def test_what_a_build_made_is_what_is_measured_and_where_it_came_from_is_kept(
    four: Rig, tmp_path: Path, github: GitHub
) -> None:
    root = consumer(tmp_path)
    (root / "build_J6M").rename(root / "compiled")
    (root / "net.onnx").rename(root / "net.source")
    script = "cp net.source net.onnx\nmv compiled build_J6M\necho built"
    outputs = "net.onnx\nbuild_J6M"
    done = four.attempt(tmp_path, caller(tmp_path, build=script, build_outputs=outputs), pushed(github))
    assert ran(done) == {name: result for name, result in WHOLE.items() if not name.startswith("J6")} | {
        "Build": "success",
        "J6 net/J6M/board/0-2": "success",
    }
    document: dict[str, Any] = json.loads((tmp_path / "artifacts/driftgate-report/provenance.json").read_text("utf-8"))
    assert (document["commands"], document["inputs"]["net.source"]) == (script, document["outputs"]["net.onnx"])
    assert "build_J6M/model_output/net.hbm" in document["outputs"]
    assert "build_J6M/model_output/net.hbm" not in document["inputs"]


def test_what_is_as_a_former_report_has_it_is_not_run_again(four: Rig, tmp_path: Path, github: GitHub) -> None:
    consumer(tmp_path)
    first = four.attempt(tmp_path, caller(tmp_path, cache=str(tmp_path / "cache")), pushed(github))
    assert {"Watch", f"Host {HOST}"} <= ran(first).keys()
    assert any((tmp_path / "cache").iterdir())
    (tmp_path / "artifacts" / "driftgate-report").rename(tmp_path / "artifacts" / "former")
    done = four.attempt(tmp_path, caller(tmp_path, base="former"), pushed(github))
    assert ran(done) == {name: "success" for name in ENDS if name != "Watch"}
    assert [(one["float-int8"], one["bc-hbm"]) for one in judged(tmp_path)] == [("passed", "passed")]
    assert "unchanged since run" in said(done)


def test_a_build_that_fails_fails_the_required_check(four: Rig, tmp_path: Path, github: GitHub) -> None:
    consumer(tmp_path)
    done = four.attempt(tmp_path, caller(tmp_path, build="exit 3"), pushed(github))
    assert ran(done) == {"Build": "failure"} | FAILED
    assert any("the job plan ended as skipped" in error for error in done.errors)


def test_the_base_branch_gives_baseline_and_policies(four: Rig, tmp_path: Path, github: GitHub) -> None:
    """A push makes the baseline; the pull request is held against it, and gated by a policy that it cannot loosen."""
    strict = {"pr": {"regressions": "fail", "same-commit": True, "float-int8": {"score-drop": 0}}}
    with Storage(github.world) as storage:
        github.world.download_url = storage.address
        asked: dict[str, Any] = {"board_legs": 1, "host_legs": 1, "baseline": "auto", "policy": "pr"}
        consumer(tmp_path / "main", policies=strict)
        first = replace(four, variables={"GITHUB_RUN_ID": "401"})
        repository = payloads.repository(payloads.REPOSITORY, fork=False)
        trigger = Trigger("push", {"ref": "refs/heads/main", "repository": repository}, github.url, TOKEN)
        done = first.attempt(tmp_path / "main", caller(tmp_path / "main", **asked), trigger)
        assert ran(done)["Judge"] == "success", done.text
        report = tmp_path / "main" / "artifacts" / "driftgate-report"
        origin = json.loads((report / "origin.json").read_bytes())
        past = github.world.past
        for one in (payloads.BASE_SHA, SHA):
            past.commit(one, past.commit(origin["sha"]))
        # under act a called workflow is called by its own name
        run = Ran(401, origin["sha"], name="driftgate four segments")
        past.runs.append(run)
        files = {file.name: file.read_bytes() for file in report.iterdir() if file.is_file()}
        past.uploads.append(Uploaded(1, run, "driftgate-report", zipped(files)))
        past.files[payloads.BASE_SHA, "driftgate.yaml"] = (tmp_path / "main/consumer/driftgate.yaml").read_bytes()

        consumer(tmp_path / "pr", policies={"pr": {"float-int8": {"score-drop": 1}}})
        second = replace(four, variables={"GITHUB_RUN_ID": "402"})
        flow = caller(tmp_path / "pr", **asked, gate=True)
        done = second.attempt(tmp_path / "pr", flow, pull_request(github, number=2))
        assert ran(done)["Judge"] == "success", done.text
        assert storage.problems == []
    report = tmp_path / "pr" / "artifacts" / "driftgate-report"
    results = read_results(report)
    assert results.comparison is not None
    assert results.comparison.base.commit == origin["sha"]
    assert "net float-int8 score-drop" in {one.name for one in results.pending}
    gate = json.loads((report / "gate.json").read_bytes())
    assert {line["clause"]: line["outcome"] for line in gate["lines"]} == dict.fromkeys(
        ("check", "regressions", "commit"), "passed"
    )
