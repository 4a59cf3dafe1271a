"""The action's half that may write: puts finished reports onto the pull request they belong to.

It holds the token and runs nothing of the user's. Which pull request that is, GitHub says; what a report says about
itself is only which comment of the workflow is its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from driftgate.action import DRIFTGATE, PUBLICATION, RESULTS
from driftgate.errors import DriftgateError
from driftgate.messages.message import message
from driftgate.runner import ERROR, LOG_WIDTH, annotate, fail, no_commands, speak_as_asked, write_outputs

#: Longer than the client's own patience.
COMMENT_SECONDS = 1800
#: Reports of one run that are published; more than one comment for each is no help to anybody.
MOST_REPORTS = 50
_KEY = re.compile(r"[A-Za-z0-9_-]{1,200}")
_ADDRESS = re.compile(r"https?://\S+#issuecomment-\d+")


@dataclass(frozen=True, slots=True)
class Report:
    """A finished report folder, and the key of its comment."""

    folder: Path
    key: str


def run(environment: Mapping[str, str], log: TextIO, program: Sequence[str] = DRIFTGATE) -> int:
    """Publish the report, or every report in the folder; the exit code for the step.

    A comment that cannot be made is an error only where one must be; elsewhere it is a warning, for the check has
    its own result. `log` must be the process's own standard output.
    """
    must = _given(environment, "comment") == "always"
    level = "error" if must else "warning"
    folder = Path(environment.get("GITHUB_WORKSPACE") or ".").absolute() / _given(environment, "report")
    found = reports(folder)
    if not found:
        annotate("error" if must else "notice", message("publish-none", path=str(folder)), log)
        return ERROR if must else 0
    address, worst = "", 0
    for report in found:
        code, said = _comment((*program, *_arguments(report, environment)), environment, log)
        if code != 0:
            annotate(level, message("publish-failed", code=code), log)
        address = address or said
        worst = max(worst, abs(code))
    write_outputs(environment, {"comment-url": address})
    return ERROR if must and worst else 0


def reports(folder: Path) -> tuple[Report, ...]:
    """The folder itself, or those in it, as a download of several artifacts leaves them; by name."""
    within = sorted(folder.iterdir()) if folder.is_dir() else []
    found = [each for each in (folder, *within) if (each / RESULTS).is_file()][:MOST_REPORTS]
    return tuple(Report(each, _key(each / PUBLICATION)) for each in found)


def main() -> None:
    """The last step."""
    speak_as_asked(os.environ)
    try:
        code = run(os.environ, sys.stdout)
    except DriftgateError as error:
        fail(error)
    sys.exit(code)


def _key(file: Path) -> str:
    """Empty where the report does not say one of ours: it may come from a stranger, whose own comment it is."""
    try:
        key = json.loads(file.read_bytes())["key"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return ""
    return key if isinstance(key, str) and _KEY.fullmatch(key) else ""


def _given(environment: Mapping[str, str], name: str) -> str:
    return environment.get(f"DRIFTGATE_{name.upper().replace('-', '_')}", "").strip()


def _arguments(report: Report, environment: Mapping[str, str]) -> Iterator[str]:
    """As `--name=value`, so that no value can become an option."""
    yield from ("comment", str(report.folder), f"--mode={_given(environment, 'comment')}")
    if _given(environment, "delete-when-green") == "true":
        yield "--delete-when-green"
    values = {"key": report.key} | {
        name: _given(environment, name) for name in ("template", "archive-url", "archive-digest", "bundle-digest")
    }
    yield from (f"--{name}={value}" for name, value in values.items() if value)


def _comment(command: Sequence[str], environment: Mapping[str, str], log: TextIO) -> tuple[int, str]:
    """Exit code, and the comment's address as far as the verb told it."""
    with no_commands(log):
        try:
            done = subprocess.run(
                list(command),
                env=LOG_WIDTH | dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=COMMENT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return ERROR, ""
        said = done.stdout.decode("utf-8", "replace")
        print(said, file=log, flush=True)
    found = _ADDRESS.search(said)
    return done.returncode, found[0] if found else ""


if __name__ == "__main__":
    main()
