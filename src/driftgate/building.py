"""The workflow's build: the user's commands, what they made, and the digests of what it was made from."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from driftgate.action import run_user_code
from driftgate.errors import DriftgateError, UsageError
from driftgate.messages.message import message
from driftgate.runner import annotate, fail, no_commands
from driftgate.storage.hashing import file_digest

SCHEMA, VERSION = "driftgate.provenance", 1
#: Of git and of workflows: neither goes into a build, nor comes out of one.
APART = (".git", ".github")

Digests = dict[str, str]


def build(environment: Mapping[str, str], log: TextIO, now: Callable[[], float] = time.time) -> int:
    """Run the commands, copy what they made to the folder `out`, and write the provenance; the step's exit code.

    Raises UsageError where nothing was made that matches.
    """
    workspace = Path(environment.get("GITHUB_WORKSPACE") or ".").absolute()
    script = environment["DRIFTGATE_BUILD"]
    before = digests(workspace)
    began = now()
    with no_commands(log):
        code = run_user_code(("bash", "-euo", "pipefail", "-c", script), environment)
    if code != 0:
        annotate("error", message("build-failed", code=code), log)
        return code
    after = digests(workspace)
    patterns = [line.strip() for line in environment.get("DRIFTGATE_OUTPUTS", "").splitlines() if line.strip()]
    made = dict(_made(workspace, before, after, patterns))
    if not made:
        raise UsageError(message("build-nothing", patterns=tuple(patterns)))
    for name in made:
        target = Path(environment["DRIFTGATE_OUT"]) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(workspace / name, target)
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "sha": environment.get("DRIFTGATE_SHA", ""),
        "run": environment.get("GITHUB_RUN_ID", ""),
        "attempt": environment.get("GITHUB_RUN_ATTEMPT", ""),
        "commands": script,
        "seconds": round(now() - began, 3),
        "inputs": before,
        "outputs": made,
    }
    Path(environment["DRIFTGATE_PROVENANCE"]).write_text(json.dumps(document, ensure_ascii=False, indent=1), "utf-8")
    return 0


def digests(folder: Path) -> Digests:
    """Path → SHA-256 of every file below a folder; links are read where they lead to a file inside of it."""
    home = folder.resolve()
    return {
        path.relative_to(folder).as_posix(): file_digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.resolve().is_relative_to(home) and path.relative_to(folder).parts[0] not in APART
    }


def _made(workspace: Path, before: Digests, after: Digests, patterns: list[str]) -> Iterator[tuple[str, str]]:
    """What matches, or, where nothing is asked for, what is new or another than before."""
    if not patterns:
        yield from ((name, digest) for name, digest in after.items() if before.get(name) != digest)
        return
    for pattern in patterns:
        if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            raise UsageError(message("build-outside", pattern=pattern))
        for path in sorted(workspace.glob(pattern)):
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                name = file.relative_to(workspace).as_posix()
                if name in after:
                    yield name, after[name]


def main() -> None:
    """The step that builds."""
    try:
        code = build(os.environ, sys.stdout)
    except DriftgateError as error:
        fail(error)
    sys.exit(code)


if __name__ == "__main__":
    main()
