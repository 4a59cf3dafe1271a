"""Runs a workflow with `act` on this machine, against a copy of the working tree, and reads what happened."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[3]
STUB = Path(__file__).parent / "upload-artifact"
ACTION = "driftgate/driftgate@v0"
#: A label without a mapping makes act skip the job, so the rig maps one and no other.
LABEL = "ubuntu-24.04"
ACT_SECONDS = 300


class NotRun(AssertionError):
    """A job of the workflow did not run to its end: act itself calls that a success."""


@dataclass(frozen=True, slots=True)
class ActRun:
    """What act reported: one mapping a line."""

    code: int
    lines: tuple[Mapping[str, Any], ...]

    @property
    def results(self) -> dict[str, str]:
        """Job, by the name act shows (a matrix numbers its legs) → `success` or `failure`."""
        return {line["job"].split("/", 1)[1]: line["jobResult"] for line in self.lines if "jobResult" in line}

    @property
    def summaries(self) -> tuple[str, ...]:
        """What the steps put into the job summary; act reports a page again for the action around its step."""
        return tuple(dict.fromkeys(line["content"] for line in self.lines if line.get("command") == "summary"))

    @property
    def errors(self) -> tuple[str, ...]:
        """The messages of the `::error::` commands that the runner took for commands."""
        return tuple(line["arg"] for line in self.lines if line.get("command") == "error")

    @property
    def text(self) -> str:
        """Everything said, a line each."""
        return "\n".join(str(line.get("msg", "")).rstrip("\n") for line in self.lines)

    def require(self, jobs: Mapping[str, str]) -> None:
        """Raise NotRun unless exactly these jobs ran, AssertionError unless each came to its result."""
        if sorted(self.results) != sorted(jobs):
            raise NotRun(f"jobs with a result: {sorted(self.results)}, wanted: {sorted(jobs)}\n{self.text}")
        if self.results != dict(jobs):
            raise AssertionError(f"{self.results}, wanted: {dict(jobs)}\n{self.text}")


def act_program() -> Path | None:
    """The act of this Python's environment, or of the machine."""
    beside = Path(sys.executable).parent / "act"
    found = str(beside) if beside.exists() else shutil.which("act")
    return Path(found) if found else None


def copy_tree(target: Path) -> Path:
    """The working tree as a checkout has it: files of git and new ones, nothing that is ignored."""
    listed = _git(REPOSITORY, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in filter(None, listed):
        source, copy = REPOSITORY / name, target / name
        if source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
    return target


def upload_reference() -> str:
    """The action that action.yml uploads with, as it is pinned there."""
    found = re.search(r"uses: (actions/upload-artifact@[0-9a-f]{40})\b", (REPOSITORY / "action.yml").read_text("utf-8"))
    assert found, "action.yml does not pin actions/upload-artifact to a commit"
    return found[1]


@dataclass(frozen=True, slots=True)
class Rig:
    """An act program, the copy of our tree that it takes for the action, and the folder of its runner.

    The runner keeps its tools there from run to run, as a self-hosted one does; act deletes the workspaces.
    """

    act: Path
    tree: Path
    runner: Path

    def run(self, folder: Path, workflow: Path, jobs: Mapping[str, str]) -> ActRun:
        """Push a new repository with this one workflow; uploads land in `folder`/artifacts.

        `jobs` are all of the workflow's jobs with the result each must come to; see `ActRun.require`.
        """
        done = self.attempt(folder, workflow)
        done.require(jobs)
        return done

    def attempt(self, folder: Path, workflow: Path) -> ActRun:
        """The same, whatever comes of it."""
        consumer, artifacts = folder / "consumer", folder / "artifacts"
        for made in (consumer / ".github" / "workflows", artifacts, self.runner):
            made.mkdir(parents=True, exist_ok=True)
        shutil.copy2(workflow, consumer / ".github" / "workflows")
        _commit(consumer)
        passed = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        passed["ARTIFACTS"] = str(artifacts)
        done = subprocess.run(
            [
                *(str(self.act), "push", "--json", "--no-cache-server"),
                *("--platform", f"{LABEL}=-self-hosted"),
                *("--local-repository", f"{ACTION}={self.tree}"),
                *("--local-repository", f"{upload_reference()}={STUB}"),
                *("--action-cache-path", str(self.runner)),
                *(part for name in sorted(passed) for part in ("--env", f"{name}={passed[name]}")),
            ],
            cwd=consumer,
            env={**os.environ, "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=ACT_SECONDS,
        )
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        return ActRun(done.returncode, tuple(json.loads(line) for line in lines if line.startswith("{")))


def _commit(folder: Path) -> None:
    _git(folder, "init", "--quiet", "--initial-branch", "main")
    _git(folder, "remote", "add", "origin", "https://github.com/acme/models.git")
    _git(folder, "add", "--all")
    _git(folder, "-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "--quiet", "-m", "Models")


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
