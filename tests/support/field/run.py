"""Runs driftgate as its users do, as a process, and reads the results it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECK_SECONDS = 200


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check of one subject said: exit code, what it printed, facts and judgement of the subject."""

    code: int
    printed: str
    facts: dict[str, Any]
    judgement: dict[str, Any]

    @property
    def outcomes(self) -> dict[str, str]:
        """Outcome by the slug of the check."""
        return {check["slug"]: check["outcome"] for check in self.judgement["checks"]}

    @property
    def scores(self) -> dict[str, str]:
        """Score as written (200/200) by stage."""
        return {score["stage"]: score["text"] for score in self.judgement["scores"]}

    def metric(self, link: str, output: str, name: str) -> float:
        """A metric of one output over all samples."""
        (summary,) = [s for s in self.judgement["summaries"] if (s["link"], s["output"]) == (link, output)]
        return float(dict(summary["metrics"])[name])

    def run_of(self, stage: str) -> dict[str, Any]:
        """The facts of the run of one stage."""
        (run,) = [run for run in self.facts["runs"] if run["stage"] == stage]
        return dict(run)


def check(folder: Path, config: str) -> Checked:
    """`driftgate check` of a configuration with one subject, in a project folder.

    Raises AssertionError with all that was printed where no results were written.
    """
    settings = folder / "driftgate.yaml"
    settings.write_text(config, encoding="utf-8")
    out = folder / "out"
    command = [sys.executable, "-m", "driftgate", "check", "-c", str(settings), "--out", str(out)]
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=CHECK_SECONDS, check=False
    )
    printed = done.stdout + done.stderr
    assert (out / "results.json").is_file(), printed
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert (results["schema"], results["version"]) == ("driftgate.results", 1)
    (facts,) = results["facts"]
    (judgement,) = results["judgement"]["subjects"]
    return Checked(done.returncode, printed, facts, judgement)
