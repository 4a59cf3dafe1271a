"""Runs a workflow with `act` on this machine, for any event, with a copy of the working tree for the action."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[3]
#: Action → what stands for it here.
STUBS = {f"actions/{name}": Path(__file__).parent / name for name in ("upload-artifact", "download-artifact")}
ACTION = "driftgate/driftgate@v0"
#: A label without a mapping makes act skip the job, so the rig maps these and no other.
LABELS = ("ubuntu-24.04", "ubuntu-latest")
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
        return {line["job"].split("/", 1)[1].strip(): line["jobResult"] for line in self.lines if "jobResult" in line}

    @property
    def summaries(self) -> tuple[str, ...]:
        """What the steps put into the job summary; act reports a page again for the action around its step."""
        return tuple(dict.fromkeys(line["content"] for line in self.lines if line.get("command") == "summary"))

    @property
    def errors(self) -> tuple[str, ...]:
        """The messages of the `::error::` commands that the runner took for commands."""
        return tuple(line["arg"] for line in self.lines if line.get("command") == "error")

    @property
    def error_places(self) -> tuple[tuple[str, str], ...]:
        """File and line of each of them; empty where it has none."""
        found = (line.get("kvPairs") or {} for line in self.lines if line.get("command") == "error")
        return tuple((pairs.get("file", ""), pairs.get("line", "")) for pairs in found)

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


def pinned_actions() -> dict[str, Path]:
    """The actions that ours and the workflows use, as they are pinned there, with what stands for each."""
    files = [
        REPOSITORY / "action.yml",
        *REPOSITORY.glob(".github/workflows/*.yml"),
        *REPOSITORY.glob("examples/**/*.yml"),
    ]
    pins = {
        pin for file in files for pin in re.findall(r"uses: ([\w-]+/[\w-]+@[0-9a-f]{40})\b", file.read_text("utf-8"))
    }
    return {pin: STUBS[name] for pin in sorted(pins) if (name := pin.partition("@")[0]) in STUBS}


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a workflow runs: the event with its payload, the API it speaks to, the token it has, its run number."""

    event: str = "push"
    payload: Mapping[str, Any] = field(default_factory=dict)
    api_url: str = "http://127.0.0.1:9"
    token: str = ""
    number: int = 1


PUSH = Trigger()


@dataclass(frozen=True, slots=True)
class Rig:
    """An act program, the copy of our tree that it takes for the action, and the folder of its runner.

    The runner keeps its tools there from run to run, as a self-hosted one does; act deletes the workspaces. Only jobs
    with one of these labels run; `secrets` are the repository's, `variables` every job's.
    """

    act: Path
    tree: Path
    runner: Path
    labels: tuple[str, ...] = LABELS
    secrets: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self, folder: Path, workflow: Path, jobs: Mapping[str, str], trigger: Trigger = PUSH) -> ActRun:
        """Run this one workflow in a new repository, with what `folder`/consumer holds; uploads land in
        `folder`/artifacts.

        `jobs` are all of the workflow's jobs with the result each must come to; see `ActRun.require`.
        """
        done = self.attempt(folder, workflow, trigger)
        done.require(jobs)
        return done

    def attempt(self, folder: Path, workflow: Path, trigger: Trigger = PUSH) -> ActRun:
        """The same, whatever comes of it."""
        consumer, artifacts = folder / "consumer", folder / "artifacts"
        workflows = consumer / ".github" / "workflows"
        for made in (workflows, artifacts, self.runner):
            made.mkdir(parents=True, exist_ok=True)
        for other in workflows.iterdir():
            other.unlink()
        shutil.copy2(workflow, workflows)
        _commit(consumer)
        event = folder / "event.json"
        event.write_text(json.dumps(trigger.payload), "utf-8")
        passed = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        passed |= {
            "ARTIFACTS": str(artifacts),
            "GITHUB_API_URL": trigger.api_url,
            "GITHUB_RUN_NUMBER": str(trigger.number),
            **self.variables,
        }
        secrets = folder / "secrets"  # not by the environment, which a job on this machine would inherit
        secrets.write_text("".join(f"{name}={json.dumps(value)}\n" for name, value in self.secrets.items()), "utf-8")
        places = {ACTION: self.tree, **pinned_actions()}
        done = subprocess.run(
            [
                *(str(self.act), trigger.event, "--json", "--no-cache-server", "--eventpath", str(event)),
                *(part for label in self.labels for part in ("--platform", f"{label}=-self-hosted")),
                *(part for name in places for part in ("--local-repository", f"{name}={places[name]}")),
                *("--action-cache-path", str(self.runner)),
                *(part for name in sorted(passed) for part in ("--env", f"{name}={passed[name]}")),
                *(("--secret", "GITHUB_TOKEN") if trigger.token else ()),
                *("--secret-file", str(secrets)),
            ],
            cwd=consumer,
            env={**os.environ, "HOME": str(folder), "GITHUB_TOKEN": trigger.token},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=ACT_SECONDS,
        )
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        return ActRun(done.returncode, tuple(json.loads(line) for line in lines if line.startswith("{")))


def _commit(folder: Path) -> None:
    """The folder's content as a new repository's first commit."""
    shutil.rmtree(folder / ".git", ignore_errors=True)
    _git(folder, "init", "--quiet", "--initial-branch", "main")
    _git(folder, "remote", "add", "origin", "https://github.com/acme/models.git")
    _git(folder, "add", "--all", "--force")
    _git(folder, "-c", "user.name=Test", "-c", "user.email=test@example.com", "commit", "--quiet", "-m", "Models")


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
