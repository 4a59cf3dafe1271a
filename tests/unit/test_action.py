"""The action's step: inputs, the runner's files and commands, and the exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from driftgate.action import (
    ANNOTATIONS,
    EXIT_CODES,
    PUBLICATION,
    WITHHELD,
    annotation_lines,
    conclude,
    read_inputs,
    run,
)
from driftgate.errors import UsageError
from driftgate.runner import SUMMARY_LIMIT_BYTES

ROOT = Path(__file__).parents[2]
ACTIONS = {file: yaml.safe_load((ROOT / file).read_text("utf-8")) for file in ("action.yml", "publish/action.yml")}
STEPS = {f"{file}: {step['name']}": step for file, action in ACTIONS.items() for step in action["runs"]["steps"]}

FILES = {"junit": "junit.xml", "summary": "summary.md", "comment": "comment.md", "bundle": "bundle.zip"}

#: A stand-in for `driftgate check`: the real one under the action is tests/act.
CHECK = """
import json, os, pathlib, sys
given = [word.removeprefix("--out=") for word in sys.argv if word.startswith("--out=")]
out = pathlib.Path(given[0] if given else sys.argv[sys.argv.index("--out") + 1])
out.mkdir(parents=True, exist_ok=True)
"""


@dataclass(frozen=True, slots=True)
class Step:
    """What a step left behind."""

    code: int
    printed: str
    outputs: Mapping[str, str]
    summary: str


def environment(folder: Path, **inputs: str) -> dict[str, str]:
    given = {"config": "driftgate.yaml", "out": "driftgate-out", "upload": "on-failure", "comment": "auto"}
    given |= {"delete_when_green": "false", "bundle": "on-failure", "include_models": "false", "lang": "auto"}
    given |= {"gate": "false"} | inputs
    return {
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "GITHUB_JOB": "gate",
        "GITHUB_RUN_ATTEMPT": "2",
    } | {f"DRIFTGATE_{name.upper()}": value for name, value in given.items()}


def step(folder: Path, capfd: pytest.CaptureFixture[str], check: str, **inputs: str) -> Step:
    """Run the step in `folder` with a check that is this Python script after CHECK."""
    script = folder / "check.py"
    script.write_text(CHECK + check, "utf-8")
    code = run(environment(folder, **inputs), sys.stdout, (sys.executable, str(script)))
    summary = folder / "summary"
    return Step(
        code=code,
        printed=capfd.readouterr().out,
        outputs=outputs_of(folder / "output"),
        summary=summary.read_text("utf-8") if summary.exists() else "",
    )


def outputs_of(file: Path) -> dict[str, str]:
    """GITHUB_OUTPUT as the runner reads it."""
    return {
        found[1]: found[3]
        for found in re.finditer(r"^([\w-]+)<<(\S+)\n(.*?)\n\2$", file.read_text("utf-8"), re.M | re.S)
    }


def results(outcome: str, *subjects: tuple[str, str, str | None]) -> str:
    entries = [{"subject": name, "outcome": own, "first_failure": check} for name, own, check in subjects]
    return json.dumps({"judgement": {"outcome": outcome, "subjects": entries}})


def writing(document: str, code: int) -> str:
    return f"(out / 'results.json').write_text({document!r}); sys.exit({code})"


def test_a_pass_sets_the_outputs_and_exits_0(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = step(tmp_path, capfd, writing(results("passed", ("digits", "passed", None)), 0))

    assert done.code == 0
    assert done.outputs["outcome"] == "passed"
    assert done.outputs["first-failure"] == ""
    assert done.outputs["report"] == str(tmp_path / "driftgate-out")
    assert "::error" not in done.printed


def test_the_outputs_name_the_files_that_are_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = step(tmp_path, capfd, f"[(out / name).touch() for name in {tuple(FILES.values())}]; sys.exit(2)")
    out = tmp_path / "driftgate-out"
    found = {name: done.outputs[name] for name in FILES}
    assert found == {name: str(out / file) for name, file in FILES.items()}
    assert json.loads((out / PUBLICATION).read_text()) == {"key": read_inputs(environment(tmp_path)).key}

    nothing = step(tmp_path, capfd, "sys.exit(2)")
    assert {nothing.outputs[name] for name in FILES} == {""}


def test_the_check_gets_no_token_and_no_file_of_the_runner(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "check.py"
    script.write_text("import json, os; print(json.dumps(sorted(os.environ)))")
    given = environment(tmp_path) | dict.fromkeys(WITHHELD, str(tmp_path / "output")) | {"HF_TOKEN": "of the user"}
    given["GITHUB_STEP_SUMMARY"] = str(tmp_path / "summary")
    run(given, sys.stdout, (sys.executable, str(script)))

    seen = json.loads(next(line for line in capfd.readouterr().out.splitlines() if line.startswith("[")))
    assert set(seen) & set(WITHHELD) == set()
    assert {"HF_TOKEN", "GITHUB_WORKSPACE"} <= set(seen)


def test_annotations_stand_at_lines_of_the_workspace(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "nets" / "driftgate.yaml"
    listed = [
        {"level": "error", "title": "a: BC ↔ HBM FAIL", "message": "x\n::error::y", "file": str(config), "line": 7},
        {"level": "warning", "title": "a", "message": "m", "file": "nets/../driftgate.yaml", "line": None},
        {"level": "notice", "title": None, "message": "m", "file": "/etc/passwd", "line": 1},
        {"level": "notice", "title": None, "message": "m", "file": "../outside", "line": 1},
    ]
    done = step(tmp_path, capfd, f"(out / 'annotations.json').write_text({json.dumps(listed)!r}); sys.exit(2)")

    lines = [line for line in done.printed.splitlines() if line.startswith(("::error", "::warning", "::notice"))]
    assert lines[1:] == [
        "::error file=nets/driftgate.yaml,line=7,title=a%3A BC ↔ HBM FAIL::x%0A::error::y",
        "::warning file=driftgate.yaml,title=a::m",
        "::notice::m",
        "::notice::m",
    ]
    token = next(line for line in done.printed.splitlines() if "stop-commands" in line).rpartition("::")[2]
    assert done.printed.index(f"::{token}::") < done.printed.index("::error")


def test_no_more_annotations_than_github_shows(tmp_path: Path) -> None:
    entry = {"title": "t", "message": "m", "file": None, "line": None}
    file = tmp_path / ANNOTATIONS
    file.write_text(json.dumps([{"level": level, **entry} for level in ("error", "warning") for _ in range(30)]))

    printed = list(annotation_lines(file, tmp_path, said=1))
    assert [sum(line.startswith(f"::{level} ") for line in printed) for level in ("error", "warning")] == [9, 10]


@pytest.mark.parametrize("content", ["", "{}", "[1, null, []]", '[{"level": "fatal", "message": "m"}]', "[" * 100_000])
def test_annotations_of_another_form_are_left_out(tmp_path: Path, content: str) -> None:
    (tmp_path / ANNOTATIONS).write_text(content)
    assert list(annotation_lines(tmp_path / ANNOTATIONS, tmp_path)) == []


def test_a_fail_names_the_first_check_that_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    document = results("failed", ("a", "error", "baseline"), ("b", "failed", "bc-hbm"), ("c", "failed", "board"))
    done = step(tmp_path, capfd, writing(document, 1))

    assert done.code == 1
    assert done.outputs["outcome"] == "failed"
    assert done.outputs["first-failure"] == "bc-hbm"
    assert "::error title=driftgate::b: the first check that fails is bc-hbm" in done.printed


@pytest.mark.parametrize(
    ("code", "document"),
    [
        (0, None),
        (0, "not json"),
        (0, "[]"),
        (0, '{"judgement": null}'),
        (0, '{"judgement": {"outcome": "passed"}}'),
        (0, results("failed", ("a", "failed", "board"))),
        (0, results("surprising")),
        (1, results("passed", ("a", "passed", None))),
        (2, results("error", ("a", "error", None))),
        (2, results("passed", ("a", "passed", None))),
        (-11, results("passed", ("a", "passed", None))),
        (137, None),
    ],
)
def test_without_agreement_of_code_and_document_nothing_passes(code: int, document: str | None) -> None:
    assert conclude(code, document).outcome == "error"


def test_a_check_that_dies_is_an_error_and_old_results_do_not_speak_for_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "driftgate-out"
    out.mkdir()
    (out / "results.json").write_text(results("passed", ("digits", "passed", None)))
    (out / "summary.md").write_text("# old\n")
    done = step(tmp_path, capfd, "os.kill(os.getpid(), 9)")

    assert done.code == 2
    assert done.outputs["outcome"] == "error"
    assert done.outputs["report"] == str(out)
    assert done.summary == ""
    assert "::error title=driftgate::the outcome could not be established (exit code -9)" in done.printed


def test_the_runner_takes_no_command_from_what_a_check_prints(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = step(tmp_path, capfd, "print('::set-env name=PATH::/evil'); print('::error::no', end=''); sys.exit(2)")

    lines = done.printed.splitlines()
    stop = next(at for at, line in enumerate(lines) if line.startswith("::stop-commands::"))
    resume = lines.index(f"::{lines[stop].removeprefix('::stop-commands::')}::")
    assert lines[stop + 1 : resume] == ["::set-env name=PATH::/evil", "::error::no"]
    assert [line for line in lines[:stop] if line.startswith("::")] == []
    assert [line for line in lines[resume + 1 :] if line.startswith("::error::")] == []


def test_foreign_names_stay_one_command_and_one_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    document = results("failed", ("a\n::error::planted", "failed", "bc-hbm\noutcome=passed"))
    done = step(tmp_path, capfd, writing(document, 1))

    assert "\n::error::planted" not in done.printed
    assert done.outputs["outcome"] == "failed"
    assert done.outputs["first-failure"] == "bc-hbm\noutcome=passed"


def test_the_summary_is_appended(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "summary").write_text("before\n")
    done = step(tmp_path, capfd, "(out / 'summary.md').write_text('# Gate ↔'); sys.exit(2)")

    assert done.summary == "before\n# Gate ↔\n"


def test_a_summary_that_the_runner_would_drop_is_replaced(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    done = step(tmp_path, capfd, f"(out / 'summary.md').write_text('x' * {SUMMARY_LIMIT_BYTES}); sys.exit(2)")

    assert "summary.md" in done.summary
    assert len(done.summary) < 1000


def test_inputs_reach_the_check_as_arguments(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = "$(touch planted); a b.yaml"
    done = step(
        tmp_path,
        capfd,
        "print(json.dumps(sys.argv[1:])); sys.exit(2)",
        config=config,
        subject="-x",
        policy="p",
        baseline="main",
    )

    shown = next(line for line in done.printed.splitlines() if line.startswith("["))
    out = str(tmp_path / "driftgate-out")
    given = ["--subject", "-x", "--policy", "p", "--baseline", "main"]
    asked = ["--bundle=on-failure", "--no-repro"]
    assert json.loads(shown) == ["check", "--config", config, "--out", out, *asked, *given]
    assert not (tmp_path / "planted").exists()


def test_models_leave_the_runner_only_where_that_is_asked_for(tmp_path: Path) -> None:
    """The folder of the reports is uploaded; a full bundle has a place of its own."""
    asked = {"bundle": "always", "full_bundle": "../kept/full.zip", "bundle_size": "1GiB"}
    assert read_inputs(environment(tmp_path, **asked)).bundle == (
        "--bundle=always",
        "--no-repro",
        f"--full-bundle={tmp_path}/../kept/full.zip",
        "--bundle-size=1GiB",
    )
    given = read_inputs(environment(tmp_path, include_models="true")).bundle
    assert given == ("--bundle=on-failure", "--include-models")


def gating(checked: str, gated: str, code: int) -> str:
    """A check that comes to one thing, and a gate that comes to another."""
    passed = writing(results(checked, ("digits", checked, None)), {"passed": 0, "failed": 1, "error": 2}[checked])
    lines = (
        "if sys.argv[1] == 'gate':",
        f"    (out / 'gate.json').write_text({gated!r})",
        "    (out / 'gate.md').write_text('the clauses')",
        "    (out.parent / 'asked').write_text(json.dumps(sys.argv[1:]))",
        f"    sys.exit({code})",
        "(out / 'summary.md').write_text('the checks')",
        passed,
    )
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("checked", "gated", "code", "outcome"),
    [
        ("passed", '{"outcome": "passed"}', 0, "passed"),
        ("passed", '{"outcome": "failed"}', 1, "failed"),
        ("passed", '{"outcome": "error"}', 2, "error"),
        ("passed", '{"outcome": "passed"}', 1, "error"),  # the two must agree
        ("passed", "{", 0, "error"),
        ("failed", '{"outcome": "passed"}', 0, "failed"),
        ("error", '{"outcome": "passed"}', 0, "error"),
    ],
)
def test_with_a_gate_the_clauses_must_hold_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], checked: str, gated: str, code: int, outcome: str
) -> None:
    asked = {"gate": "true", "policy": "release", "baseline": "former", "base_config": "base.yaml"}
    done = step(tmp_path, capfd, gating(checked, gated, code), **asked)
    assert (done.code, done.outputs["outcome"]) == (EXIT_CODES[outcome], outcome)
    assert done.summary == "the clauses\nthe checks\n"
    out = tmp_path / "driftgate-out"
    assert json.loads((tmp_path / "asked").read_bytes()) == [
        *("gate", str(out), f"--out={out}", "--config=driftgate.yaml", "--policy=release"),
        *("--baseline=former", "--base-config=base.yaml"),
    ]
    assert ("the gate of the policy release is shut" in done.printed) is (done.outputs["gate"] != "passed")


def test_nobody_asks_the_gate_of_a_check_that_left_no_results(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = step(tmp_path, capfd, "sys.exit(2)", gate="true", policy="release")
    assert (done.outputs["outcome"], done.outputs["gate"]) == ("error", "")


def test_a_gate_needs_a_policy(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="say which policy"):
        read_inputs(environment(tmp_path, gate="true"))


def test_bad_inputs_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        wrong = {"delete_when_green": "no", "bundle": "no", "include_models": "yes", "lang": "de", "gate": "no"}
        read_inputs(environment(tmp_path, config="", out=" ", upload="sometimes", comment="", **wrong))

    assert [(problem.code, problem.get("name")) for problem in caught.value.problems] == [
        ("action-input-empty", "config"),
        ("action-input-empty", "out"),
        ("action-input-choice", "upload"),
        ("action-input-choice", "comment"),
        ("action-input-choice", "delete-when-green"),
        ("action-input-choice", "bundle"),
        ("action-input-choice", "gate"),
        ("action-input-choice", "include-models"),
        ("action-input-choice", "lang"),
    ]


def test_every_leg_and_step_has_an_artifact_of_its_own(tmp_path: Path) -> None:
    base = environment(tmp_path, subject="Größe/klein: 1")
    others = [
        base | {"GITHUB_JOB": "other"},
        base | {"GITHUB_RUN_ATTEMPT": "3"},
        base | {"DRIFTGATE_LEG": '{"board": "j6e"}'},
        base | {"DRIFTGATE_LEG": '{"board": "j6m"}'},
        base | {"DRIFTGATE_SUBJECT": "Größe/klein; 1"},
        base | {"DRIFTGATE_OUT": "second"},
    ]
    names = [read_inputs(given).artifact for given in (base, *others)]

    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"driftgate-[A-Za-z0-9._-]+", name) for name in names)
    assert all(re.fullmatch(r".*-[23]-[0-9a-f]{8}", name) for name in names), "the workflow for forks looks for this"
    assert read_inputs(base | {"DRIFTGATE_ARTIFACT": "mine"}).artifact == "mine"


def test_a_comment_is_one_through_all_attempts_and_another_for_every_leg(tmp_path: Path) -> None:
    base = environment(tmp_path)
    same = [base | {"GITHUB_RUN_ATTEMPT": "3"}, base | {"DRIFTGATE_UPLOAD": "always"}, base]
    others = [base | {"GITHUB_JOB": "other"}, base | {"DRIFTGATE_LEG": "j6e"}, base | {"DRIFTGATE_SUBJECT": "b"}]

    assert {read_inputs(given).key for given in same} == {read_inputs(base).key}
    assert len({read_inputs(given).key for given in (base, *others)}) == 1 + len(others)


def test_a_cancelled_step_lets_the_check_write_what_it_has(tmp_path: Path) -> None:
    script = tmp_path / "check.py"
    script.write_text(
        CHECK
        + """
import signal, time
def partial(number, frame):
    (out / "driftgate.log").write_text("partial")
    sys.exit(2)
signal.signal(signal.SIGTERM, partial)
(out / "ready").touch()
time.sleep(60)
"""
    )
    starter = "import os, sys; from driftgate.action import run; sys.exit(run(os.environ, sys.stdout, sys.argv[1:]))"
    out = tmp_path / "driftgate-out"
    with subprocess.Popen(
        [sys.executable, "-c", starter, sys.executable, str(script)],
        env={**os.environ, **environment(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as child:
        while not (out / "ready").exists() and child.poll() is None:
            time.sleep(0.02)
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=30) == 2

    assert (out / "driftgate.log").read_text() == "partial"
    assert outputs_of(tmp_path / "output")["outcome"] == "error"


@pytest.mark.parametrize("name", STEPS)
def test_no_input_is_written_into_a_script(name: str) -> None:
    entry = STEPS[name]
    assert "${{" not in entry.get("run", "")
    assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", entry["uses"]) if "uses" in entry else entry["shell"] == "bash"


@pytest.mark.parametrize("file", ACTIONS)
def test_every_input_is_used(file: str) -> None:
    steps = json.dumps(ACTIONS[file]["runs"]["steps"])
    assert [name for name in ACTIONS[file]["inputs"] if f"inputs.{name}" not in steps] == []


def test_only_steps_that_run_nothing_of_the_users_have_the_token() -> None:
    holders = {name: entry["run"] for name, entry in STEPS.items() if "token" in json.dumps(entry).lower()}
    publishing = 'exec "$DRIFTGATE_PYTHON" -I -X utf8 -m driftgate.publication'
    assert holders == {
        "action.yml: Fetch the base branch's policies and results": (
            'exec "$DRIFTGATE_PYTHON" -I -X utf8 -m driftgate.fetching'
        ),
        "action.yml: Publish": publishing,
        "publish/action.yml: Publish": publishing,
    }


def test_the_two_actions_have_the_same_inputs_for_the_same_things() -> None:
    whole, half = (action["inputs"] for action in ACTIONS.values())
    shared = set(whole) & set(half)
    assert shared >= {"comment", "delete-when-green", "template", "github-token", "python", "index-url", "wheelhouse"}
    assert {name: whole[name]["default"] for name in shared} == {name: half[name]["default"] for name in shared}


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
@pytest.mark.parametrize("file", ACTIONS)
def test_every_input_and_output_is_told(file: str, page: str) -> None:
    told = (ROOT / page).read_text("utf-8")
    assert [name for part in ("inputs", "outputs") for name in ACTIONS[file][part] if f"`{name}`" not in told] == []


@pytest.mark.parametrize("part", ["inputs", "outputs"])
def test_the_readme_has_a_row_for_each(part: str) -> None:
    rows = [line.split("|")[1] for line in (ROOT / "README.md").read_text("utf-8").splitlines() if line.startswith("|")]
    assert [name for name in ACTIONS["action.yml"][part] if not any(f"`{name}`" in row for row in rows)] == []
