"""What a step says to its runner: outputs, its page of the job summary, annotations, and an end that is an error.

Standard library only: the steps of an action start before anything is installed.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TextIO

from driftgate.errors import DriftgateError
from driftgate.escaping import commands
from driftgate.messages.languages import AUTO, VARIABLE, language_of
from driftgate.messages.message import Message, message
from driftgate.messages.text import speak, text

TITLE = "driftgate"
#: What the runner shows of one step; above it, it drops the whole summary.
SUMMARY_LIMIT_BYTES = 1024 * 1024
#: A runner's log is no terminal and has no width of its own; tables fit into this one.
LOG_WIDTH = {"COLUMNS": "200"}
ERROR = 2


@contextmanager
def no_commands(log: TextIO) -> Iterator[None]:
    """What is printed in between can hold text of models and boards: the runner is told to take no commands."""
    token = secrets.token_hex(16)
    print(commands.stop(token), file=log, flush=True)
    try:
        yield
    finally:
        print("\n" + commands.resume(token), file=log, flush=True)


def write_outputs(environment: Mapping[str, str], values: Mapping[str, str]) -> None:
    """Set outputs of the step."""
    entries = "".join(commands.output(name, value) for name, value in values.items())
    _append(Path(environment["GITHUB_OUTPUT"]), entries)


def append_summary(environment: Mapping[str, str], summary: Path) -> None:
    """Append a page to the step's, or the name of its file where it would not fit."""
    target = Path(environment["GITHUB_STEP_SUMMARY"])
    page = summary.read_text("utf-8", "replace")
    used = target.stat().st_size if target.exists() else 0
    if used + len(page.encode()) + 1 > SUMMARY_LIMIT_BYTES:
        page = text(message("action-summary-long", limit_bytes=SUMMARY_LIMIT_BYTES))
    _append(target, f"{page}\n")


def annotate(level: str, problem: Message, log: TextIO) -> None:
    """An annotation that belongs to no file."""
    print(commands.annotation(level, text(problem), title=TITLE), file=log, flush=True)


def speak_as_asked(environment: Mapping[str, str]) -> None:
    """In the language of the input `lang`; what a runner's machine speaks does not matter to who reads."""
    speak(language_of(environment.get(VARIABLE) or AUTO, {}))


def fail(error: DriftgateError) -> NoReturn:
    """End the step: its problems as an annotation, exit code 2."""
    print(commands.error("\n".join(map(text, error.problems)), title=TITLE), flush=True)
    sys.exit(ERROR)


def _append(target: Path, content: str) -> None:
    with target.open("a", encoding="utf-8") as handle:
        handle.write(content)
