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

from driftgate.action import SUMMARY_LIMIT_BYTES, conclude, read_inputs, run
from driftgate.errors import InstallError, UsageError
from driftgate.installation import STAMP, fingerprint, interpreter, tool_folder

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))

#: A stand-in for `driftgate check`: the real one under the action is tests/act.
CHECK = """
import json, os, pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
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
    given = {"config": "driftgate.yaml", "out": "driftgate-out", "upload": "on-failure"} | inputs
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
        tmp_path, capfd, "print(json.dumps(sys.argv[1:])); sys.exit(2)", config=config, subject="-x", policy="p"
    )

    shown = next(line for line in done.printed.splitlines() if line.startswith("["))
    out = str(tmp_path / "driftgate-out")
    assert json.loads(shown) == ["check", "--config", config, "--out", out, "--subject", "-x", "--policy", "p"]
    assert not (tmp_path / "planted").exists()


def test_bad_inputs_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_inputs(environment(tmp_path, config="", out=" ", upload="sometimes"))

    assert [problem.code for problem in caught.value.problems] == [
        "action-input-empty",
        "action-input-empty",
        "action-input-upload",
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
    assert read_inputs(base | {"DRIFTGATE_ARTIFACT": "mine"}).artifact == "mine"


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


def test_the_environment_is_kept_for_one_state_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "src" / "driftgate").mkdir(parents=True)
    module = tmp_path / "src" / "driftgate" / "gate.py"
    module.write_text("LIMIT = 1\n")
    before = fingerprint(tmp_path)
    (module.parent / "gate.pyc").write_bytes(b"compiled")
    assert fingerprint(tmp_path) == before

    module.write_text("LIMIT = 2\n")
    assert fingerprint(tmp_path) != before


def test_what_cannot_be_installed_is_told_and_not_kept(tmp_path: Path) -> None:
    source, tools = tmp_path / "source", tmp_path / "tools"
    source.mkdir()
    with pytest.raises(InstallError, match=re.escape(str(source))) as caught:
        interpreter(source, tools, os.environ)

    assert [problem.code for problem in caught.value.problems] == ["install-package"]
    assert list(tools.rglob(STAMP)) == []


def test_tools_go_where_the_runner_keeps_them(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    kept, job = str(tmp_path / "kept"), str(tmp_path / "job")

    assert tool_folder({"RUNNER_TOOL_CACHE": kept, "RUNNER_TEMP": job}) == Path(kept)
    assert tool_folder({"RUNNER_TOOL_CACHE": str(blocked / "below"), "RUNNER_TEMP": job}) == Path(job)
    with pytest.raises(UsageError):
        tool_folder({})


def test_no_input_is_written_into_a_script() -> None:
    for entry in ACTION["runs"]["steps"]:
        assert "${{" not in entry.get("run", "")
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", entry["uses"]) if "uses" in entry else entry["shell"] == "bash"


def test_every_input_is_used() -> None:
    steps = json.dumps(ACTION["runs"]["steps"])
    assert [name for name in ACTION["inputs"] if f"inputs.{name}" not in steps] == []


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
def test_every_input_and_output_is_told(page: str) -> None:
    told = (ROOT / page).read_text("utf-8")
    assert [name for part in ("inputs", "outputs") for name in ACTION[part] if f"`{name}`" not in told] == []
