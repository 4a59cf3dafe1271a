"""The jobs of the reusable workflow: what each of them runs, what it tells its runner, and what its end means.

A job that runs the user's code has no token, see .github/workflows/four-segment.yml. What a job before has left is
read as if a stranger had written it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from driftgate.action import (
    ANNOTATIONS,
    BUNDLE,
    DRIFTGATE,
    EXIT_CODES,
    GATED,
    PUBLICATION,
    RESULTS,
    STALE,
    SUMMARY,
    annotation_lines,
    bundle_arguments,
    conclude,
    gate_problems,
    problems_of,
    run_user_code,
    worse_of,
)
from driftgate.action import gate as ask_gate
from driftgate.errors import DriftgateError, UsageError
from driftgate.escaping import commands
from driftgate.github.payload import items_at, text_at
from driftgate.messages.message import Message, message
from driftgate.messages.text import text
from driftgate.runner import ERROR, annotate, append_summary, fail, no_commands, speak_as_asked, write_outputs
from driftgate.storage.built import PROVENANCE
from driftgate.storage.hashing import file_digest
from driftgate.storage.planfile import PLAN

#: How the artifacts of legs are named.
SHARD = "driftgate-shard-"
MATRIX, PACKS = "matrix.json", "packs"
#: Beside the packs: wheels for runners without a network. No leg's name begins with an underscore.
WHEELHOUSE = "_wheelhouse"
#: In the report: the user's template for the comment.
TEMPLATE = "template.md.j2"
#: What a pool says that names no labels of its own.
UNNAMED = ["self-hosted"]
#: What tells one call of the workflow from another, for the comment.
TELLING = ("config", "subject", "policy", "profile")
#: A shorter value would be starred out all over the log.
SHORTEST_SECRET = 3
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def plan(environment: Mapping[str, str], log: TextIO, program: Sequence[str] = DRIFTGATE) -> int:
    """Write the plan and the packs; the legs become outputs, for the matrices of the jobs behind."""
    out = _place(environment, "out")
    asked = [f"--config={_given(environment, 'config')}", f"--out={out}"]
    asked += [f"--{name}={value}" for name in ("subject", "profile") if (value := _given(environment, name))]
    asked += [f"--{name}={_given(environment, name)}" for name in ("host-legs", "board-legs")]
    if _given(environment, "changed"):
        asked.append(f"--changed={_place(environment, 'changed')}")
    if _given(environment, "boards-allowed") != "true":
        asked.append(f"--no-boards={text(_stranger(environment))}")
    with no_commands(log):
        code = run_user_code((*program, "plan", *asked), environment)
    if code != 0:
        annotate("error", message("action-error", code=code), log)
        return code
    legs = _legs(out / MATRIX, _labels(environment))
    if legs["board"]:
        _send_wheels(environment, out / PACKS)
    outputs = {kind: json.dumps(found, separators=(",", ":")) for kind, found in legs.items()}
    outputs |= {f"{kind}-legs": str(len(found)) for kind, found in legs.items()}
    resting = items_at(json.loads((out / PLAN).read_bytes()), "unchanged")
    write_outputs(environment, outputs | {"unchanged": str(len(list(resting)))})
    return 0


def host(environment: Mapping[str, str], log: TextIO, program: Sequence[str] = DRIFTGATE) -> int:
    """Run a leg on this host."""
    asked = [f"--{name}={_given(environment, name)}" for name in ("config", "leg")]
    asked += [f"--{name}={_place(environment, name)}" for name in ("plan", "out")]
    asked += [f"--cache={_place(environment, 'cache')}"] if _given(environment, "cache") else []
    with no_commands(log):
        return run_user_code((*program, "run", *asked), environment)


def board(environment: Mapping[str, str], log: TextIO, program: Sequence[str] = DRIFTGATE) -> int:
    """Run a leg on a board, from its pack alone; addresses and passwords are what the secret `boards` says."""
    secrets = dict(_secrets(environment.get("DRIFTGATE_BOARDS", "")))
    for value in secrets.values():
        if len(value) >= SHORTEST_SECRET:
            print(commands.mask(value), file=log, flush=True)
    known = {name: value for name, value in environment.items() if name != "DRIFTGATE_BOARDS"}
    asked = [f"--{name}={_place(environment, name)}" for name in ("pack", "out")]
    with no_commands(log):
        return run_user_code((*program, "run", *asked), known | secrets)


def judge(environment: Mapping[str, str], log: TextIO, program: Sequence[str] = DRIFTGATE) -> int:
    """Merge the shards and judge them by the plan; the report, the summary and the outputs are those of the run."""
    out = _place(environment, "out")
    policy, is_gated = _given(environment, "policy"), _given(environment, "gate") == "true"
    if is_gated and not policy:
        raise UsageError(message("action-gate-policy"))
    asked = [f"--config={_given(environment, 'config')}", f"--plan={_place(environment, 'plan')}", f"--out={out}"]
    given = {name: _given(environment, name) for name in ("bundle", "include-models", "full-bundle", "bundle-size")}
    asked += [*bundle_arguments(given, _workspace(environment)), *([f"--policy={policy}"] if policy else [])]
    held = [
        f"--{name}={_place(environment, name)}" for name in ("baseline", "base-config") if _given(environment, name)
    ]
    asked += held
    for stale in STALE:
        (out / stale).unlink(missing_ok=True)
    brought = map(str, shards(_place(environment, "shards")))
    with no_commands(log):
        code = run_user_code((*program, "report", *asked, *brought), environment)
    results = out / RESULTS
    conclusion = conclude(code, results.read_text("utf-8", "replace") if results.is_file() else None)
    if out.is_dir():
        (out / PUBLICATION).write_text(json.dumps({"key": _key(environment)}), "utf-8")
        _bring(_place(environment, "provenance"), out / PROVENANCE)
    gated = ""
    if is_gated and results.is_file():
        asked = [
            f"--{name}={value}" for name in ("config", "policy", "subject") if (value := _given(environment, name))
        ]
        gated = ask_gate(out, [*asked, *held], environment, log, program)
    for page in (out / GATED, out / SUMMARY):
        if page.is_file():
            append_summary(environment, page)
    if out.is_dir() and (template := _given(environment, "template")):
        _bring(_workspace(environment) / template, out / TEMPLATE)
    bundle = _set_apart(out / BUNDLE, _place(environment, "evidence"))
    write_outputs(
        environment,
        {
            "outcome": worse_of(conclusion.outcome, gated),
            "first-failure": conclusion.check or "",
            "bundle-digest": bundle,
        },
    )
    problems = (*problems_of(conclusion, code), *gate_problems(gated, policy))
    for problem in problems:
        annotate("error", problem, log)
    for line in annotation_lines(out / ANNOTATIONS, _workspace(environment), said=len(problems)):
        print(line, file=log, flush=True)
    return EXIT_CODES[worse_of(conclusion.outcome, gated)]


def gate(environment: Mapping[str, str], log: TextIO, program: Sequence[str] = DRIFTGATE) -> int:
    """What the required check says: 0 where every planned job came to its end and the outcome is `passed`."""
    try:
        needs: object = json.loads(environment.get("DRIFTGATE_NEEDS", ""))
    except (ValueError, RecursionError):
        needs = {}
    outcome = text_at(needs, "judge", "outputs", "outcome")
    problems = [*_unfinished(needs)]
    if outcome != "passed":
        problems.append(message("gate-outcome", outcome=outcome or "error"))
    for problem in problems:
        annotate("error", problem, log)
    return EXIT_CODES["failed"] if outcome == "failed" else ERROR if problems else 0


def shards(folder: Path) -> tuple[Path, ...]:
    """The folders that a download of several artifacts leaves, or, of a single one, the folder itself; by name.

    Older servers send all artifacts of the run, those of the plan and of the build as well.
    """
    within = sorted(folder.glob(f"{SHARD}*")) if folder.is_dir() else []
    return tuple(within) or ((folder,) if folder.is_dir() else ())


#: Name → job; the one argument of this module.
JOBS: Mapping[str, Callable[[Mapping[str, str], TextIO], int]] = {
    "plan": plan,
    "host": host,
    "board": board,
    "judge": judge,
    "gate": gate,
}


def main(name: str) -> None:
    """The step of a job that runs driftgate."""
    speak_as_asked(os.environ)
    try:
        code = JOBS[name](os.environ, sys.stdout)
    except DriftgateError as error:
        fail(error)
    sys.exit(code)


def _given(environment: Mapping[str, str], name: str) -> str:
    return environment.get(f"DRIFTGATE_{name.upper().replace('-', '_')}", "").strip()


def _workspace(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("GITHUB_WORKSPACE") or ".").absolute()


def _place(environment: Mapping[str, str], name: str) -> Path:
    return _workspace(environment) / _given(environment, name)


def _stranger(environment: Mapping[str, str]) -> Message:
    """Why no code of this run may reach a board."""
    event = environment.get("GITHUB_EVENT_NAME", "")
    return message("boards-fork") if event == "pull_request" else message("boards-event", event=event)


def _labels(environment: Mapping[str, str]) -> list[str]:
    """The input board-labels. Raises UsageError."""
    given = _given(environment, "board-labels")
    try:
        found: object = json.loads(given)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not found or not all(isinstance(label, str) and label for label in found):
        raise UsageError(message("workflow-labels", found=given))
    return found


def _legs(file: Path, labels: list[str]) -> dict[str, list[dict[str, object]]]:
    """The legs of matrix.json; boards whose pool names no labels get these."""
    matrix: object = json.loads(file.read_bytes())
    found = {kind: [dict(leg) for leg in items_at(matrix, kind) if isinstance(leg, dict)] for kind in ("host", "board")}
    for leg in found["board"]:
        if leg.get("labels") == UNNAMED:
            leg["labels"] = labels
    return found


def _send_wheels(environment: Mapping[str, str], packs: Path) -> None:
    """Wheels that lie in the repository go to the boards' runners with the packs."""
    given = _given(environment, "board-wheelhouse")
    if not given or Path(given).is_absolute():
        return
    wheels = _workspace(environment) / given
    if not wheels.is_dir():
        raise UsageError(message("workflow-wheelhouse", path=given))
    shutil.copytree(wheels, packs / WHEELHOUSE, dirs_exist_ok=True)


def _secrets(lines: str) -> Iterator[tuple[str, str]]:
    """Name and value of each line. Raises UsageError, without the line, for one that is neither that nor empty."""
    for number, line in enumerate(lines.splitlines(), 1):
        name, equals, value = line.strip().partition("=")
        if not name and not equals:
            continue
        if not equals or not _VARIABLE.fullmatch(name):
            raise UsageError(message("workflow-boards", line=number))
        yield name, value


def _unfinished(needs: object) -> Iterable[Message]:
    """One sentence for each job that did not do what was planned for it."""
    for job in ("build", "plan", "host", "board", "judge"):
        result = text_at(needs, job, "result") or "unknown"
        planned = text_at(needs, "plan", "outputs", f"{job}-legs")
        is_left_out = result == "skipped" and (job == "build" or planned == "0")
        if result != "success" and not is_left_out:
            yield message("gate-job", job=job, result=result)


def _key(environment: Mapping[str, str]) -> str:
    told = json.dumps([_given(environment, name) for name in TELLING])
    return f"four-segment-{hashlib.sha256(told.encode()).hexdigest()[:8]}"


def _set_apart(bundle: Path, folder: Path) -> str:
    """Move a bundle to the folder of its own artifact, which no later attempt overwrites; its SHA-256, empty where
    there is none."""
    if bundle.is_symlink() or not bundle.is_file():
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    return file_digest(Path(shutil.move(str(bundle), str(folder / BUNDLE))))


def _bring(source: Path, target: Path) -> None:
    if source.is_file():
        shutil.copyfile(source, target)


if __name__ == "__main__":
    main(sys.argv[1])
