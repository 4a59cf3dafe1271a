"""The GitHub Action's two steps: install the package, then one `driftgate check` with its summary and outputs.

Standard library only, since the first step runs before anything is installed. The runner's commands and files
are written here and nowhere else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn, TextIO

from driftgate.errors import DriftgateError, UsageError
from driftgate.escaping import commands
from driftgate.installation import interpreter, tool_folder
from driftgate.messages.message import Message, message
from driftgate.messages.text import text

#: `-I`: neither the workspace nor PYTHONPATH can put a module of its own in our place.
DRIFTGATE = (sys.executable, "-I", "-X", "utf8", "-m", "driftgate")
UPLOADS = ("on-failure", "always", "never")
#: What the runner shows of one step; above it, it drops the whole summary.
SUMMARY_LIMIT_BYTES = 1024 * 1024
#: A job's `timeout-minutes` bounds a check; this is the longest that a runner lets any job run.
JOB_SECONDS = 5 * 24 * 3600
#: A runner's log is no terminal and has no width of its own; tables fit into this one.
LOG_WIDTH = {"COLUMNS": "200"}
EXIT_CODES = {"passed": 0, "failed": 1, "error": 2}


@dataclass(frozen=True, slots=True)
class Inputs:
    """The action's inputs; None where one is left empty. `artifact` is the name of the upload."""

    config: str
    out: Path
    subject: str | None
    policy: str | None
    profile: str | None
    upload: str
    artifact: str


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a run came to; `subject` and `check` (a slug) name the first failure where there is one."""

    outcome: str
    subject: str | None = None
    check: str | None = None


def read_inputs(environment: Mapping[str, str]) -> Inputs:
    """The inputs from `DRIFTGATE_*`, as action.yml hands them over. Raises UsageError with every bad one."""
    given = {
        name: environment.get(f"DRIFTGATE_{name.upper()}", "").strip()
        for name in ("config", "out", "subject", "policy", "profile", "upload", "artifact")
    }
    problems = [message("action-input-empty", name=name) for name in ("config", "out") if not given[name]]
    if given["upload"] not in UPLOADS:
        problems.append(message("action-input-upload", value=given["upload"], wanted=UPLOADS))
    if problems:
        raise UsageError(*problems)
    return Inputs(
        config=given["config"],
        out=Path(environment.get("GITHUB_WORKSPACE") or ".").absolute() / given["out"],
        subject=given["subject"] or None,
        policy=given["policy"] or None,
        profile=given["profile"] or None,
        upload=given["upload"],
        artifact=given["artifact"] or _artifact_name(given, environment),
    )


def conclude(code: int, document: str | None) -> Conclusion:
    """The outcome where the exit code of `check` and its results.json agree; `error` in every other case."""
    try:
        judgement = json.loads(document or "null")["judgement"]
        outcome = judgement["outcome"]
        failures = [
            (entry["subject"], entry["first_failure"]) for entry in judgement["subjects"] if entry["outcome"] == outcome
        ]
    except (ValueError, KeyError, TypeError):
        return Conclusion("error")
    if EXIT_CODES.get(outcome) != code:
        return Conclusion("error")
    for subject, check in failures:
        if check is not None:
            return Conclusion(outcome, str(subject), str(check))
    return Conclusion(outcome)


def run(environment: Mapping[str, str], log: TextIO, program: Sequence[str] = DRIFTGATE) -> int:
    """Run the check, write summary and outputs, and return the exit code for the step.

    `log` must be the process's own standard output, which the check inherits. What a check prints can hold
    text of models and boards: between our commands the runner is told to take none. Raises UsageError.
    """
    inputs = read_inputs(environment)
    outputs = Path(environment["GITHUB_OUTPUT"])
    results, summary = inputs.out / "results.json", inputs.out / "summary.md"
    for stale in (results, summary):
        stale.unlink(missing_ok=True)
    _write_outputs(outputs, {"report": str(inputs.out), "artifact": inputs.artifact})

    token = secrets.token_hex(16)
    print(commands.stop(token), file=log, flush=True)
    code = _run_check((*program, *_arguments(inputs)))
    print("\n" + commands.resume(token), file=log, flush=True)

    conclusion = conclude(code, results.read_text("utf-8", "replace") if results.is_file() else None)
    if summary.is_file():
        _append_summary(Path(environment["GITHUB_STEP_SUMMARY"]), summary)
    _write_outputs(outputs, {"outcome": conclusion.outcome, "first-failure": conclusion.check or ""})
    for problem in _problems(conclusion, code):
        print(_error(text(problem)), file=log, flush=True)
    return EXIT_CODES[conclusion.outcome]


def install() -> None:
    """The first step: make the environment and give its Python to the next one as the output `python`."""
    try:
        python = interpreter(Path(os.environ["GITHUB_ACTION_PATH"]), tool_folder(os.environ), os.environ)
    except DriftgateError as error:
        _fail(error)
    _write_outputs(Path(os.environ["GITHUB_OUTPUT"]), {"python": str(python)})


def main() -> None:
    """The second step."""
    try:
        code = run(os.environ, sys.stdout)
    except DriftgateError as error:
        _fail(error)
    sys.exit(code)


def _fail(error: DriftgateError) -> NoReturn:
    print(_error(str(error)), flush=True)
    sys.exit(2)


def _error(sentence: str) -> str:
    return commands.error(sentence, title="driftgate")


def _artifact_name(given: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """A name that no other leg, job or attempt of the run has: a run takes each name once."""
    leg = json.dumps([*sorted(given.items()), environment.get("DRIFTGATE_LEG", "")])
    parts = (
        "driftgate",
        given["subject"] or Path(given["config"]).stem,
        environment.get("GITHUB_JOB", "job"),
        environment.get("GITHUB_RUN_ATTEMPT", "1"),
        hashlib.sha256(leg.encode()).hexdigest()[:8],
    )
    return "-".join(re.sub(r"[^A-Za-z0-9._]+", "-", part).strip("-")[:60] for part in parts)


def _arguments(inputs: Inputs) -> Iterable[str]:
    yield from ("check", "--config", inputs.config, "--out", str(inputs.out))
    for name, value in (("subject", inputs.subject), ("policy", inputs.policy), ("profile", inputs.profile)):
        if value is not None:
            yield from (f"--{name}", value)


def _run_check(command: Sequence[str]) -> int:
    """Its exit code. A runner that cancels signals this process only: it is passed on, so that partial results
    are written."""
    with subprocess.Popen(list(command), stdin=subprocess.DEVNULL, env=LOG_WIDTH | os.environ) as child:

        def forward(number: int, frame: FrameType | None) -> None:
            child.send_signal(number)

        before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            return child.wait(JOB_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _problems(conclusion: Conclusion, code: int) -> tuple[Message, ...]:
    if conclusion.outcome == "passed":
        return ()
    if conclusion.outcome == "failed" and conclusion.check is not None:
        return (message("action-failed", subject=conclusion.subject or "", check=conclusion.check),)
    return (message("action-error", code=code),)


def _append_summary(target: Path, summary: Path) -> None:
    """Append our page to the step's, or the name of its file where it would not fit."""
    page = summary.read_text("utf-8", "replace")
    used = target.stat().st_size if target.exists() else 0
    if used + len(page.encode()) + 1 > SUMMARY_LIMIT_BYTES:
        page = text(message("action-summary-long", limit_bytes=SUMMARY_LIMIT_BYTES))
    _append(target, f"{page}\n")


def _write_outputs(target: Path, values: Mapping[str, str]) -> None:
    _append(target, "".join(commands.output(name, value) for name, value in values.items()))


def _append(target: Path, content: str) -> None:
    with target.open("a", encoding="utf-8") as handle:
        handle.write(content)


if __name__ == "__main__":
    main()
