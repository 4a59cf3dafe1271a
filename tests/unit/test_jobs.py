"""The jobs of the reusable workflow: what they ask driftgate for, tell the runner, and mean by their end."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from driftgate.errors import UsageError
from driftgate.jobs import JOBS, shards
from support.runnerreads import commands_in, outputs_in

#: A stand-in for driftgate; the real one in these jobs is tests/act.
PROGRAM = """
import json, os, pathlib, sys
print(json.dumps({"asked": sys.argv[1:], "environment": dict(os.environ)}))
given = dict(part[2:].split("=", 1) for part in sys.argv[2:] if part.startswith("--") and "=" in part)
out = pathlib.Path(given["out"])
out.mkdir(parents=True, exist_ok=True)
"""
#: One leg each, as `driftgate plan --out` writes them.
MATRIX: dict[str, list[dict[str, Any]]] = {
    "host": [{"leg": "net/J6M/host/0-1", "slug": "net-J6M-host-0-1", "name": "net/J6M/host/0-1"}],
    "board": [{"leg": "net/J6M/board/0-1", "slug": "b", "name": "b", "board": "lab", "labels": ["self-hosted"]}],
}


@dataclass(frozen=True, slots=True)
class Step:
    """What a step left behind."""

    code: int
    printed: str
    outputs: Mapping[str, str]
    summary: str

    @property
    def asked(self) -> list[str]:
        return list(self._told["asked"])

    @property
    def environment(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self._told["environment"]
        return found

    @property
    def errors(self) -> list[str]:
        return [command.data for command in commands_in(self.printed) if command.name == "error"]

    @property
    def _told(self) -> Any:
        return json.loads(next(line for line in self.printed.splitlines() if line.startswith('{"asked"')))


@pytest.fixture
def step(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs a job's step in `tmp_path` with a driftgate that is this Python script after PROGRAM."""

    def run(name: str, script: str = "", event: str = "push", **given: str) -> Step:
        environment = {
            "GITHUB_WORKSPACE": str(tmp_path),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "page"),
            "GITHUB_EVENT_NAME": event,
            "GITHUB_TOKEN": "ghs_secret",
            "DRIFTGATE_OUT": str(tmp_path / "out"),
            "DRIFTGATE_CONFIG": "driftgate.yaml",
        } | {f"DRIFTGATE_{key.upper()}": value for key, value in given.items()}
        job: Any = JOBS[name]
        code = job(environment, sys.stdout, (sys.executable, "-c", PROGRAM + script))
        read = {file: (tmp_path / file).read_text("utf-8") for file in ("output", "page") if (tmp_path / file).exists()}
        return Step(code, capfd.readouterr().out, outputs_in(read.get("output", "")), read.get("page", ""))

    return run


def planning(matrix: Mapping[str, Any] = MATRIX, unchanged: int = 0) -> str:
    plan: dict[str, list[dict[str, str]]] = {"unchanged": [{}] * unchanged}
    files = {"matrix.json": matrix, "plan.json": plan}
    wrote = (f"(out / {name!r}).write_text({json.dumps(content)!r})" for name, content in files.items())
    return "; ".join(("(out / 'packs').mkdir()", *wrote))


PLAN = {
    "host_legs": "2",
    "board_legs": "3",
    "board_labels": '["self-hosted", "j6"]',
    "boards_allowed": "true",
    "subject": "",
    "profile": "",
}


def test_a_plan_becomes_the_matrices_of_the_jobs_behind(step: Any, tmp_path: Path) -> None:
    done = step("plan", planning(), **PLAN)
    assert done.code == 0
    assert done.asked == [
        *("plan", "--config=driftgate.yaml", f"--out={tmp_path / 'out'}"),
        *("--host-legs=2", "--board-legs=3"),
    ]
    assert json.loads(done.outputs["host"]) == MATRIX["host"]
    assert json.loads(done.outputs["board"]) == [{**MATRIX["board"][0], "labels": ["self-hosted", "j6"]}]
    assert (done.outputs["host-legs"], done.outputs["board-legs"], done.outputs["unchanged"]) == ("1", "1", "0")


def test_a_former_report_lets_subjects_rest(step: Any, tmp_path: Path) -> None:
    done = step("plan", planning({"host": [], "board": []}, unchanged=2), **PLAN, changed="base")
    assert f"--changed={tmp_path / 'base'}" in done.asked
    assert (done.outputs["host-legs"], done.outputs["unchanged"]) == ("0", "2")


def test_labels_of_a_pool_go_before_those_of_the_workflow(step: Any) -> None:
    named = {**MATRIX, "board": [{**MATRIX["board"][0], "labels": ["self-hosted", "lab-3"]}]}
    assert json.loads(step("plan", planning(named), **PLAN).outputs["board"]) == named["board"]


@pytest.mark.parametrize(
    ("event", "reason"),
    [("pull_request", "comes from another repository"), ("issue_comment", "on the event issue_comment")],
)
@pytest.mark.parametrize("allowed", ["false", ""])
def test_a_plan_for_code_of_others_leaves_the_boards_out(event: str, reason: str, allowed: str, step: Any) -> None:
    done = step("plan", planning({**MATRIX, "board": []}), event, **PLAN | {"boards_allowed": allowed})
    (asked,) = (part for part in done.asked if part.startswith("--no-boards="))
    assert reason in asked
    assert done.outputs["board-legs"] == "0"


def test_a_plan_that_fails_has_no_outputs(step: Any) -> None:
    done = step("plan", "sys.exit(2)", **PLAN)
    assert (done.code, done.outputs) == (2, {})
    assert len(done.errors) == 1


@pytest.mark.parametrize("labels", ["", "j6", "[]", '["", "j6"]', '{"a": 1}', "[1]"])
def test_labels_that_are_no_list_of_labels_are_refused(labels: str, step: Any) -> None:
    with pytest.raises(UsageError, match="board-labels"):
        step("plan", planning(), **PLAN | {"board_labels": labels})


def test_wheels_in_the_repository_are_sent_along_and_others_are_not(step: Any, tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "a.whl").write_text("x")
    assert step("plan", planning(), **PLAN, board_wheelhouse="wheels").code == 0
    assert (tmp_path / "out" / "packs" / "_wheelhouse" / "a.whl").read_text() == "x"
    with pytest.raises(UsageError, match="board-wheelhouse"):
        step("plan", planning().replace("mkdir()", "mkdir(exist_ok=True)"), **PLAN, board_wheelhouse="absent")


def test_a_host_runs_its_leg_of_the_plan_without_a_token(step: Any, tmp_path: Path) -> None:
    done = step("host", "sys.exit(2)", leg="net/J6M/host/0-1", plan="plan/plan.json")
    assert done.code == 2, "a leg that is not whole is red itself"
    assert done.asked == [
        *("run", "--config=driftgate.yaml", "--leg=net/J6M/host/0-1"),
        *(f"--plan={tmp_path / 'plan' / 'plan.json'}", f"--out={tmp_path / 'out'}"),
    ]
    assert "GITHUB_TOKEN" not in done.environment


def test_a_host_keeps_outputs_where_it_is_told_to(step: Any, tmp_path: Path) -> None:
    done = step("host", leg="net/J6M/host/0-1", plan="plan/plan.json", cache="/var/cache/driftgate")
    assert done.asked[-1] == "--cache=/var/cache/driftgate"


def test_what_a_leg_prints_is_no_command(step: Any) -> None:
    done = step("host", "print('::error::planted')", leg="a", plan="p")
    before = done.printed[: done.printed.index("::error::planted")]
    assert "::stop-commands::" in before


def test_a_board_has_its_pack_and_the_secret_and_nothing_else(step: Any, tmp_path: Path) -> None:
    done = step("board", pack="packs/b", boards="J6_HOST=192.0.2.17\n\n J6_PASSWORD=p=w %\nEMPTY=\nNO=12\n")
    assert done.code == 0
    assert done.asked == ["run", f"--pack={tmp_path / 'packs' / 'b'}", f"--out={tmp_path / 'out'}"]
    given = {name: done.environment[name] for name in ("J6_HOST", "J6_PASSWORD", "EMPTY", "NO")}
    assert given == {"J6_HOST": "192.0.2.17", "J6_PASSWORD": "p=w %", "EMPTY": "", "NO": "12"}
    assert "DRIFTGATE_BOARDS" not in done.environment
    masked = [command.data for command in commands_in(done.printed) if command.name == "add-mask"]
    assert masked == ["192.0.2.17", "p=w %"]


@pytest.mark.parametrize("line", ["hunter22", "=hunter22", "1A=hunter22", "A B=hunter22"])
def test_a_line_of_the_secret_that_is_none_is_refused_without_being_shown(line: str, step: Any) -> None:
    with pytest.raises(UsageError, match="line 2 of the secret boards") as raised:
        step("board", pack="p", boards=f"A=1\n{line}")
    assert "hunter22" not in str(raised.value)


def judging(outcome: str, code: int, failure: str | None = None) -> str:
    subjects = [{"subject": "net", "outcome": outcome, "first_failure": failure}]
    document = json.dumps({"judgement": {"outcome": outcome, "subjects": subjects}})
    return f"(out / 'results.json').write_text({document!r}); (out / 'summary.md').write_text('page'); sys.exit({code})"


JUDGE = {"plan": "plan.json", "shards": "shards", "provenance": "p/provenance.json", "template": "", "policy": ""}
JUDGE |= {"bundle": "on-failure", "include-models": "false", "evidence": "evidence"}


def test_the_judge_merges_what_arrived_and_tells_the_outcome(step: Any, tmp_path: Path) -> None:
    for name in ("driftgate-shard-b", "driftgate-shard-a", "driftgate-packs"):
        (tmp_path / "shards" / name).mkdir(parents=True)
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "provenance.json").write_text("{}")
    (tmp_path / "mine.j2").write_text("template")
    done = step("judge", judging("failed", 1, "bc-hbm"), **JUDGE | {"policy": "release", "template": "mine.j2"})
    assert done.code == 1
    assert done.asked == [
        *("report", "--config=driftgate.yaml", f"--plan={tmp_path / 'plan.json'}", f"--out={tmp_path / 'out'}"),
        *("--bundle=on-failure", "--no-repro", "--policy=release"),
        *(str(tmp_path / "shards" / f"driftgate-shard-{name}") for name in "ab"),
    ]
    assert done.outputs == {"outcome": "failed", "first-failure": "bc-hbm", "bundle-digest": ""}
    assert done.summary == "page\n"
    assert done.errors == ["net: the first check that fails is bc-hbm; the job summary shows the evidence"]
    assert (tmp_path / "out" / "provenance.json").read_text() == "{}"
    assert (tmp_path / "out" / "template.md.j2").read_text() == "template"
    assert json.loads((tmp_path / "out" / "publication.json").read_text())["key"].startswith("four-segment-")


def test_the_judge_asks_the_gate_too(step: Any, tmp_path: Path) -> None:
    gate = "if sys.argv[1] == 'gate': (out / 'gate.json').write_text('{\"outcome\": \"failed\"}'); sys.exit(1)\n"
    asked = {"policy": "release", "gate": "true", "baseline": "former", "base_config": "base.yaml"}
    done = step("judge", gate + judging("passed", 0), **JUDGE | asked)
    assert (done.code, done.outputs["outcome"]) == (1, "failed")
    _, asked_gate = (json.loads(line)["asked"] for line in done.printed.splitlines() if line.startswith('{"asked"'))
    held = [f"--baseline={tmp_path / 'former'}", f"--base-config={tmp_path / 'base.yaml'}"]
    out = tmp_path / "out"
    assert asked_gate == ["gate", str(out), f"--out={out}", "--config=driftgate.yaml", "--policy=release", *held]
    with pytest.raises(UsageError, match="say which policy"):
        step("judge", judging("passed", 0), **JUDGE | {"gate": "true"})


@pytest.mark.parametrize(
    "script",
    ["sys.exit(0)", judging("passed", 1), judging("passed", 2), judging("failed", 0), judging("great", 0), "1 / 0"],
)
def test_the_judge_passes_nothing_on_which_code_and_document_do_not_agree(script: str, step: Any) -> None:
    done = step("judge", script, **JUDGE)
    assert (done.code, done.outputs["outcome"]) == (2, "error")


def test_the_judge_takes_nothing_for_its_own_that_an_earlier_job_left(step: Any, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    document = {"judgement": {"outcome": "passed", "subjects": []}}
    (tmp_path / "out" / "results.json").write_text(json.dumps(document))
    assert step("judge", "sys.exit(0)", **JUDGE).outputs["outcome"] == "error"


def test_the_judge_sets_the_bundle_apart(step: Any, tmp_path: Path) -> None:
    """Its artifact has a name of its own in each attempt, the report's is renewed."""
    done = step("judge", f"(out / 'bundle.zip').write_bytes(b'PK'); {judging('failed', 1, 'bc-hbm')}", **JUDGE)
    assert done.outputs["bundle-digest"] == sha256(b"PK").hexdigest()
    assert [file.name for file in (tmp_path / "evidence").iterdir()] == ["bundle.zip"]
    assert not (tmp_path / "out" / "bundle.zip").exists()


def test_the_judge_sets_no_link_apart(step: Any, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    link = f"(out / 'bundle.zip').symlink_to({str(tmp_path / 'secret')!r}); "
    assert step("judge", link + judging("failed", 1, "bc-hbm"), **JUDGE).outputs["bundle-digest"] == ""
    assert not (tmp_path / "evidence").exists()


def test_a_single_shard_lies_in_the_folder_itself(tmp_path: Path) -> None:
    assert shards(tmp_path / "absent") == ()
    (tmp_path / "recordings").mkdir()
    (tmp_path / "results.json").write_text("{}")
    assert shards(tmp_path) == (tmp_path,)


def needs(boards: int = 2, **results: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: {"result": results.get(name, "success"), "outputs": {}}
        for name in ("build", "plan", "host", "board", "judge")
    }
    found["plan"]["outputs"] = {"host-legs": "1", "board-legs": str(boards)}
    found["judge"]["outputs"] = {"outcome": results.get("outcome", "passed")}
    return found


@pytest.mark.parametrize(
    ("given", "code", "errors"),
    [
        (needs(), 0, []),
        (needs(build="skipped"), 0, []),
        (needs(boards=0, board="skipped"), 0, []),
        (needs(board="skipped"), 2, ["the job board ended as skipped"]),
        (needs(board="cancelled"), 2, ["the job board ended as cancelled"]),
        (needs(boards=0, board="failure"), 2, ["the job board ended as failure"]),
        (needs(host="skipped"), 2, ["the job host ended as skipped"]),
        (needs(build="failure", plan="skipped", host="skipped", board="skipped", judge="failure", outcome=""), 2, 6),
        (needs(plan="skipped"), 2, ["the job plan ended as skipped"]),
        (needs(judge="skipped"), 2, ["the job judge ended as skipped"]),
        (needs(judge="failure", outcome="failed"), 1, 2),
        (needs(judge="failure", outcome="error", board="failure"), 2, 3),
        (needs(outcome="PASSED"), 2, ["the outcome is PASSED"]),
        ({}, 2, 6),
        ([], 2, 6),
    ],
)
def test_the_gate_opens_only_when_everything_planned_came_to_its_end(
    given: object, code: int, errors: list[str] | int, step: Any
) -> None:
    done = step("gate", needs=json.dumps(given))
    assert done.code == code
    if isinstance(errors, int):
        assert len(done.errors) == errors
    else:
        assert [error.split(";")[0] for error in done.errors] == errors


@pytest.mark.parametrize("text", ["", "{", "null", "[" * 100_000])
def test_the_gate_stays_shut_on_what_it_cannot_read(text: str, step: Any) -> None:
    assert step("gate", needs=text).code == 2
