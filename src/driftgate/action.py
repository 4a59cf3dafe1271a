"""The action's half that runs the user's code: one `driftgate check`, with its summary, annotations and outputs.

It must not have a token; see `driftgate.publication` for the half that has. Standard library only: the first step
runs before anything is installed. What a check leaves behind is read as if a stranger had written it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TextIO

from driftgate.errors import DriftgateError, UsageError
from driftgate.escaping import commands
from driftgate.messages import languages
from driftgate.messages.message import Message, message
from driftgate.runner import LOG_WIDTH, annotate, append_summary, fail, no_commands, speak_as_asked, write_outputs

#: `-I`: neither the workspace nor PYTHONPATH can put a module of its own in our place.
DRIFTGATE = (sys.executable, "-I", "-X", "utf8", "-m", "driftgate")
#: Input → what may be written there.
CHOICES = {
    "upload": ("on-failure", "always", "never"),
    "comment": ("auto", "always", "on-failure", "never"),
    "delete-when-green": ("false", "true"),
    "bundle": ("on-failure", "always", "never"),
    "gate": ("false", "true"),
    "include-models": ("false", "true"),
    "lang": languages.CHOICES,
}
TEXTS = (
    "config",
    "out",
    "subject",
    "policy",
    "profile",
    "artifact",
    "full-bundle",
    "bundle-size",
    "baseline",
    "base-config",
)
#: What tells one report of a run from the others, in the artifact's name and for the comment.
TELLING = ("config", "out", "subject", "policy", "profile")
#: What user code has no use for: tokens, and the files by which a step would change later steps and outputs.
WITHHELD = (
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "DRIFTGATE_TOKEN",
    "INPUT_GITHUB-TOKEN",
    "DRIFTGATE_INDEX_URL",
    "INPUT_INDEX-URL",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "GITHUB_ENV",
    "GITHUB_PATH",
    "GITHUB_OUTPUT",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
)
RESULTS, SUMMARY, JUNIT, BUNDLE = "results.json", "summary.md", "junit.xml", "bundle.zip"
HISTORY, GATE, GATED = "history.json", "gate.json", "gate.md"
COMMENT, ANNOTATIONS = "comment.md", "annotations.json"
#: Our own file in the report: what `driftgate.publication` must know of it in another run.
PUBLICATION = "publication.json"
#: What of an earlier run must not be taken for this one's.
STALE = (RESULTS, SUMMARY, JUNIT, COMMENT, ANNOTATIONS, PUBLICATION, BUNDLE, HISTORY, GATE, GATED)
#: What GitHub shows of each level in a step.
MOST_ANNOTATIONS = 10
#: A job's `timeout-minutes` bounds a check; this is the longest that a runner lets any job run.
JOB_SECONDS = 5 * 24 * 3600
EXIT_CODES = {"passed": 0, "failed": 1, "error": 2}


@dataclass(frozen=True, slots=True)
class Inputs:
    """The action's inputs; None where one is left empty. `artifact` is the name of the upload, `key` that of the
    comment among those of one workflow."""

    config: str
    out: Path
    subject: str | None
    policy: str | None
    profile: str | None
    baseline: str | None
    base_config: str | None
    artifact: str
    key: str
    gate: bool
    bundle: tuple[str, ...] = ()  # what is said to the verb of the evidence bundle


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a run came to; `subject` and `check` (a slug) name the first failure where there is one."""

    outcome: str
    subject: str | None = None
    check: str | None = None


def read_inputs(environment: Mapping[str, str]) -> Inputs:
    """The inputs from `DRIFTGATE_*`, as action.yml hands them over. Raises UsageError with every bad one."""
    given = {name: _given(environment, name) for name in (*TEXTS, *CHOICES)}
    problems = [message("action-input-empty", name=name) for name in ("config", "out") if not given[name]]
    problems += [
        message("action-input-choice", name=name, value=given[name], wanted=choices)
        for name, choices in CHOICES.items()
        if given[name] not in choices
    ]
    if given["gate"] == "true" and not given["policy"]:
        problems.append(message("action-gate-policy"))
    if problems:
        raise UsageError(*problems)
    return Inputs(
        config=given["config"],
        out=Path(environment.get("GITHUB_WORKSPACE") or ".").absolute() / given["out"],
        subject=given["subject"] or None,
        policy=given["policy"] or None,
        profile=given["profile"] or None,
        baseline=given["baseline"] or None,
        base_config=given["base-config"] or None,
        artifact=given["artifact"] or _artifact_name(given, environment),
        key=f"{environment.get('GITHUB_JOB', 'job')}-{_leg(given, environment)}",
        gate=given["gate"] == "true",
        bundle=tuple(bundle_arguments(given, Path(environment.get("GITHUB_WORKSPACE") or ".").absolute())),
    )


def bundle_arguments(given: Mapping[str, str], workspace: Path) -> Iterator[str]:
    """What the verb is told of the bundle. The folder is uploaded: no part of a model leaves the runner that way,
    unless `include-models` says so."""
    if given.get("bundle"):
        yield f"--bundle={given['bundle']}"
    yield "--include-models" if given.get("include-models") == "true" else "--no-repro"
    if given.get("full-bundle"):
        yield f"--full-bundle={workspace / given['full-bundle']}"
    if given.get("bundle-size"):
        yield f"--bundle-size={given['bundle-size']}"


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
    """Run the check, write summary, annotations and outputs, and return the exit code for the step.

    `log` must be the process's own standard output, which the check inherits. Raises UsageError.
    """
    inputs = read_inputs(environment)
    paths = {
        "report": inputs.out,
        "junit": inputs.out / JUNIT,
        "summary": inputs.out / SUMMARY,
        "comment": inputs.out / COMMENT,
        "bundle": inputs.out / BUNDLE,
    }
    for stale in STALE:
        (inputs.out / stale).unlink(missing_ok=True)
    write_outputs(environment, {"report": str(inputs.out), "artifact": inputs.artifact})

    with no_commands(log):
        code = run_user_code((*program, *_arguments(inputs)), environment)

    results = inputs.out / RESULTS
    conclusion = conclude(code, results.read_text("utf-8", "replace") if results.is_file() else None)
    gated = ""
    if inputs.gate and results.is_file():
        gated = gate(inputs.out, _gate_arguments(inputs), environment, log, program)
    for page in (inputs.out / GATED, paths["summary"]):
        if page.is_file():
            append_summary(environment, page)
    if inputs.out.is_dir():
        (inputs.out / PUBLICATION).write_text(json.dumps({"key": inputs.key}), "utf-8")
    write_outputs(
        environment,
        {"outcome": worse_of(conclusion.outcome, gated), "first-failure": conclusion.check or "", "gate": gated}
        | {name: str(path) if path.exists() else "" for name, path in paths.items()},
    )
    problems = (*problems_of(conclusion, code), *gate_problems(gated, inputs.policy))
    for problem in problems:
        annotate("error", problem, log)
    workspace = Path(environment.get("GITHUB_WORKSPACE") or ".").absolute()
    for line in annotation_lines(inputs.out / ANNOTATIONS, workspace, said=len(problems)):
        print(line, file=log, flush=True)
    return EXIT_CODES[worse_of(conclusion.outcome, gated)]


def gate(
    out: Path,
    asked: Iterable[str],
    environment: Mapping[str, str],
    log: TextIO,
    program: Sequence[str],
) -> str:
    """Ask the clauses of a policy about the results in a folder, where gate.json and gate.md are left: `passed`,
    `failed` or `error`; `error`, too, where exit code and gate.json do not agree."""
    with no_commands(log):
        code = run_user_code((*program, "gate", str(out), f"--out={out}", *asked), environment)
    try:
        outcome = json.loads((out / GATE).read_bytes())["outcome"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "error"
    return outcome if EXIT_CODES.get(outcome) == code else "error"


def worse_of(outcome: str, gated: str) -> str:
    """What check and gate come to together; `gated` is empty where there was no gate."""
    return gated if outcome == "passed" and gated else outcome


def gate_problems(gated: str, policy: str | None) -> tuple[Message, ...]:
    """What is said of a gate that does not open."""
    return () if gated in ("", "passed") else (message(f"action-gate-{gated}", policy=policy or ""),)


def annotation_lines(file: Path, workspace: Path, *, said: int = 0) -> Iterator[str]:
    """The commands for what annotations.json lists, as many of each level as GitHub shows; `said` errors are out.

    Paths become relative to the workspace, as GitHub wants them; one outside of it is left out. What is not of the
    wanted form is skipped: it is no reason to fail a check.
    """
    try:
        listed = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return
    count = Counter(error=said)
    for entry in listed if isinstance(listed, list) else ():
        found = entry if isinstance(entry, dict) else {}
        level, told = found.get("level"), found.get("message")
        if level not in commands.LEVELS or not isinstance(told, str) or count[level] >= MOST_ANNOTATIONS:
            continue
        count[level] += 1
        title, line, place = found.get("title"), found.get("line"), _relative(found.get("file"), workspace)
        yield commands.annotation(
            level,
            told,
            title=title if isinstance(title, str) else None,
            file=place,
            line=line if place and isinstance(line, int) and line > 0 else None,
        )


def main() -> None:
    """The second step."""
    speak_as_asked(os.environ)
    try:
        code = run(os.environ, sys.stdout)
    except DriftgateError as error:
        fail(error)
    sys.exit(code)


def _given(environment: Mapping[str, str], name: str) -> str:
    return environment.get(f"DRIFTGATE_{name.upper().replace('-', '_')}", "").strip()


def _leg(given: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Eight digits that no other leg or step of the job has, and that a later run of it has again."""
    told = json.dumps([*(given[name] for name in TELLING), environment.get("DRIFTGATE_LEG", "")])
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def _artifact_name(given: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """A name that no other leg, job or attempt of the run has: a run takes each name once."""
    return "-".join(_parts(given, environment))


def _parts(given: Mapping[str, str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Of the default name: the last two are the attempt and the leg."""
    parts = (
        "driftgate",
        given["subject"] or Path(given["config"]).stem,
        environment.get("GITHUB_JOB", "job"),
        environment.get("GITHUB_RUN_ATTEMPT", "1"),
        _leg(given, environment),
    )
    return tuple(re.sub(r"[^A-Za-z0-9._]+", "-", part).strip("-")[:60] for part in parts)


def artifact_pattern(environment: Mapping[str, str]) -> Iterator[re.Pattern[str]]:
    """What the same upload of another run may be called, the best first: as it is given; by another attempt; and, where
    only one job made any, by other inputs."""
    given = {name: _given(environment, name) for name in (*TEXTS, *CHOICES)}
    if given["artifact"]:
        yield re.compile(re.escape(given["artifact"]))
    *stem, _attempt, leg = _parts(given, environment)
    start = "-".join(map(re.escape, stem))
    yield re.compile(rf"{start}-(?P<attempt>\d+)-{leg}")
    yield re.compile(rf"{start}-(?P<attempt>\d+)-(?P<leg>[0-9a-f]{{8}})")


def _relative(file: object, workspace: Path) -> str | None:
    """Of a path inside the workspace; None for every other."""
    if not isinstance(file, str) or not file or "\0" in file:
        return None
    path = Path(os.path.normpath(workspace / file))
    return path.relative_to(workspace).as_posix() if path.is_relative_to(workspace) else None


def _arguments(inputs: Inputs) -> Iterable[str]:
    yield from ("check", "--config", inputs.config, "--out", str(inputs.out), *inputs.bundle)
    options = (
        ("subject", inputs.subject),
        ("policy", inputs.policy),
        ("profile", inputs.profile),
        ("baseline", inputs.baseline),
        ("base-config", inputs.base_config),
    )
    for name, value in options:
        if value is not None:
            yield from (f"--{name}", value)


def _gate_arguments(inputs: Inputs) -> Iterator[str]:
    yield from (f"--config={inputs.config}", f"--policy={inputs.policy}")
    options = (("subject", inputs.subject), ("baseline", inputs.baseline), ("base-config", inputs.base_config))
    yield from (f"--{name}={value}" for name, value in options if value is not None)


def run_user_code(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Its exit code. A runner that cancels signals this process only: it is passed on, so that partial results
    are written."""
    kept = {name: value for name, value in environment.items() if name not in WITHHELD}
    with subprocess.Popen(list(command), stdin=subprocess.DEVNULL, env=LOG_WIDTH | kept) as child:

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


def problems_of(conclusion: Conclusion, code: int) -> tuple[Message, ...]:
    if conclusion.outcome == "passed":
        return ()
    if conclusion.outcome == "failed" and conclusion.check is not None:
        return (message("action-failed", subject=conclusion.subject or "", check=conclusion.check),)
    return (message("action-error", code=code),)


if __name__ == "__main__":
    main()
