"""Pull requests against the base branch: its last good run, its history and its policies, from a loopback GitHub."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from driftgate.demo.build import build
from driftgate.storage.document import read_results
from support.act.events import FORK, TOKEN, pull_request
from support.act.rig import ActRun, Rig, Trigger
from support.github import payloads
from support.github.archives import zipped
from support.github.past import Ran, Uploaded
from support.github.server import GitHub, Storage
from support.github.world import SHA, Actor

STRICT = {"pull-request": {"bc-hbm": {"integers": 0}}}
LOOSE = {"pull-request": {"bc-hbm": {"integers": 1}}}


@dataclass
class Branch:
    """`main` of acme/models, a runner, and what was run so far."""

    rig: Rig
    workflow: Path
    folder: Path
    github: GitHub
    storage: Storage
    count: int = 0

    def _attempt(self, trigger: Trigger, fault: str | None, policies: dict[str, Any]) -> tuple[ActRun, Path]:
        self.count += 1
        folder = self.folder / str(self.count)
        config = build(folder / "consumer", fault)
        document = {**yaml.safe_load(config.read_text("utf-8")), "policies": policies}
        config.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
        own = replace(self.rig, variables={"GITHUB_RUN_ID": str(200 + self.count)})
        return own.attempt(folder, self.workflow, replace(trigger, number=self.count)), folder

    def push(self, policies: dict[str, Any] = STRICT) -> Uploaded:
        """A push to the branch that passes; GitHub keeps what it uploaded, and the pull request leaves from there."""
        payload = {"ref": "refs/heads/main", "repository": payloads.repository(payloads.REPOSITORY, fork=False)}
        done, folder = self._attempt(Trigger("push", payload, self.github.url, TOKEN), None, policies)
        done.require({"check": "success"})
        (report,) = (each for each in (folder / "artifacts").iterdir() if each.is_dir())
        origin = json.loads((report / "origin.json").read_bytes())
        past = self.github.world.past
        before = past.runs[-1].sha if past.runs else ()
        sha = past.commit(origin["sha"], *([before] if before and before != origin["sha"] else []))
        for one in (payloads.BASE_SHA, SHA):
            past.commit(one, sha)
        content = zipped({file.name: file.read_bytes() for file in report.iterdir() if file.is_file()})
        ran = Ran(int(origin["run"]), sha, self.count)
        past.runs.append(ran)
        past.uploads.append(Uploaded(self.count, ran, report.name, content))
        past.files[payloads.BASE_SHA, "driftgate.yaml"] = (folder / "consumer" / "driftgate.yaml").read_bytes()
        return past.uploads[-1]

    def change(self, result: str, fault: str | None = None, policies: dict[str, Any] = STRICT) -> tuple[ActRun, Path]:
        """The pull request; its report."""
        done, folder = self._attempt(pull_request(self.github), fault, policies)
        done.require({"check": result})
        (report,) = (each for each in (folder / "artifacts").iterdir() if each.is_dir())
        return done, report

    @property
    def comment(self) -> str:
        """What stands on the pull request."""
        (body,) = (each for each in self.github.world.bodies() if each.startswith("<!-- driftgate v1 "))
        return body


@pytest.fixture
def branch(rig: Rig, workflows: Path, tmp_path: Path) -> Iterator[Branch]:
    with GitHub() as github, Storage(github.world) as storage:
        github.world.download_url = storage.address
        yield Branch(rig, workflows / "baseline.yml", tmp_path, github, storage)
        assert github.problems == storage.problems == []


def test_the_first_run_has_no_baseline_and_the_next_one_has(branch: Branch) -> None:
    _, report = branch.change("success")
    assert "no comparison with the baseline" in branch.comment
    assert "no good run of CI on main" in branch.comment
    assert read_results(report).comparison is not None

    branch.push()
    branch.change("success")
    assert "no comparison" not in branch.comment
    assert "the same as main " in branch.comment

    _, report = branch.change("failure", "board-padding")
    assert "worse than main " in branch.comment
    found = read_results(report).comparison
    assert found is not None
    assert found.subjects[0].moved is not None
    assert found.subjects[0].moved.at == "quantized..hbm"
    runs = json.loads((report / "history.json").read_bytes())["runs"]
    assert [run["run"] for run in runs] == ["202", "204"], "the branch's run, and this one"


def test_what_a_fork_forged_and_what_a_newer_driftgate_wrote_are_not_taken(branch: Branch) -> None:
    """The fork's run is of the same commit, its branch is called `main`, and its archive says that all was well."""
    kept = branch.push()
    past = branch.github.world.past
    forged = replace(kept.run, id=900, number=90, head_repository=FORK, event="pull_request")
    past.runs.append(forged)
    past.uploads.append(replace(kept, id=90, run=forged))
    claimed = replace(kept, id=91, claims=forged)
    past.uploads.append(claimed)
    _, report = branch.change("success")
    assert "the same as main " in branch.comment
    found = read_results(report).comparison
    assert found is not None
    assert (found.base.label, found.base.commit) == (f"main {kept.run.sha[:7]} (run 1)", kept.run.sha)
    assert [line for line in branch.storage.lines if "/90.zip" in line or "/91.zip" in line] == []

    archive = zipfile.ZipFile(BytesIO(kept.content))
    files = {name: archive.read(name) for name in archive.namelist()}
    files["results.json"] = json.dumps({**json.loads(files["results.json"]), "version": 2}).encode()
    past.uploads[:] = [replace(kept, content=zipped(files))]
    branch.change("success")
    assert "has version 2, this driftgate reads version 1" in branch.comment


def test_an_attempt_that_was_run_again_counts_by_its_last(branch: Branch) -> None:
    kept = branch.push()
    past = branch.github.world.past
    again = replace(kept.run, attempt=2)
    stem, _, leg = kept.name.rpartition("-1-")
    past.runs[:] = [again]
    past.uploads[:] = [
        replace(kept, run=again, content=b"no zip"),
        replace(kept, id=5, run=again, name=f"{stem}-2-{leg}"),
    ]
    branch.change("success")
    assert "the same as main " in branch.comment


def test_after_a_forced_push_only_what_both_have_is_the_baseline(branch: Branch) -> None:
    """The branch was rewritten; the run that the change came from is on it no more."""
    kept = branch.push()
    past = branch.github.world.past
    past.commit("c" * 40)
    past.commit(payloads.BASE_SHA, "c" * 40)
    past.commit(SHA, kept.run.sha)
    past.commit(kept.run.sha, "c" * 40)
    branch.change("success")
    assert "no good run of CI on main" in branch.comment


def test_a_pull_request_cannot_loosen_its_own_gate(branch: Branch) -> None:
    branch.push()
    _, report = branch.change("failure", "board-padding", LOOSE)
    assert "judged by the policy of the base branch" in branch.comment
    assert [(one.name, one.base, one.head) for one in read_results(report).pending] == [
        ("digits bc-hbm integers", "0", "1")
    ]

    branch.github.world.tokens[TOKEN] = Actor(blind=("contents", "commits"))
    done, _ = branch._attempt(pull_request(branch.github), None, STRICT)
    done.require({"check": "failure"})
    assert any("by whose policies this change is judged" in error for error in done.errors)
