"""Calling driftgate as people do: in this process where that is enough, as a process of its own where it is not."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftgate.cli import main
from driftgate.messages.text import text
from driftgate.storage.document import read_results

PROGRAM = (sys.executable, "-m", "driftgate")
WIDTH = {"COLUMNS": "200"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)


def call(*arguments: str | Path) -> Answer:
    """One call in this process."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments], prog_name="driftgate")
        except SystemExit as left:
            code = left.code
    assert isinstance(code, int)
    return Answer(code, out.getvalue(), err.getvalue())


def process(
    *arguments: str | Path,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> Answer:
    """One call as a process of its own; `before` runs in it first."""
    done = subprocess.run(
        [*PROGRAM, *(str(argument) for argument in arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        cwd=folder,
        env={**os.environ, **WIDTH, **(environment or {})},
        preexec_fn=before,
    )
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


def judged(out: Path, subject: int = 0) -> dict[str, Any]:
    """What results.json in a folder says of one subject."""
    document = json.loads((out / "results.json").read_text("utf-8"))
    found: dict[str, Any] = document["judgement"]["subjects"][subject]
    return found


def rows(out: Path, subject: int = 0) -> dict[str, str]:
    """slug → outcome of the table in a folder."""
    return {check["slug"]: check["outcome"] for check in judged(out, subject)["checks"]}


def codes(out: Path, slug: str, subject: int = 0) -> list[str]:
    """The codes of the reasons that a row gives, each once."""
    check = next(check for check in judged(out, subject)["checks"] if check["slug"] == slug)
    return list(dict.fromkeys(verdict["reason"]["code"] for verdict in check["verdicts"] if verdict["reason"]))


def reasons(out: Path, slug: str, subject: int = 0) -> str:
    """The sentences of the reasons that a row gives."""
    judgements = read_results(out).judgements or ()
    verdicts = judgements[subject].check(slug).verdicts
    return "\n".join(text(verdict.reason) for verdict in verdicts if verdict.reason is not None)
