"""The release workflow to copy: it releases where checks and clauses hold, and nothing else is a release."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from driftgate.demo.build import build
from support.act.events import TOKEN
from support.act.rig import REPOSITORY, Rig, Trigger
from support.github import payloads
from support.github.archives import zipped
from support.github.past import Ran, Uploaded
from support.github.server import GitHub, Storage

EXAMPLES = REPOSITORY / "examples" / "workflows"
BASELINE, RELEASE = EXAMPLES / "driftgate-baseline.yml", EXAMPLES / "driftgate-release.yml"
POLICIES: dict[str, Any] = {
    "pull-request": {"float-int8": {"score-drop": "1%"}},
    "release": {"extends": "pull-request", "require": "all", "regressions": "fail", "same-commit": True},
}
GH = """#!/bin/sh
[ -n "$GH_TOKEN" ] || exit 3
printf '%s\\n' "$@" > "$ARTIFACTS/released"
for word in "$@"; do
  case "$word" in *.json|*.npz|*.md|*.xml|*.zip) [ -s "$word" ] || { echo "no $word"; exit 4; } ;; esac
done
"""


@pytest.fixture
def github() -> Iterator[GitHub]:
    """One on which the branch has a good run, made by the other workflow to copy."""
    with GitHub() as server, Storage(server.world) as storage:
        server.world.download_url = storage.address
        yield server
        assert server.problems == storage.problems == []


def repository(ref: str) -> Mapping[str, Any]:
    return {"ref": ref, "repository": payloads.repository(payloads.REPOSITORY, fork=False)}


def configured(folder: Path, fault: str | None = None, **release: Any) -> None:
    """The demo, with a policy for releases."""
    config = build(folder / "consumer", fault)
    policies = {**POLICIES, "release": POLICIES["release"] | release}
    document = {**yaml.safe_load(config.read_text("utf-8")), "policies": policies}
    config.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")


def pushed(rig: Rig, folder: Path, github: GitHub) -> None:
    """A push to the default branch, whose archive GitHub keeps."""
    configured(folder)
    trigger = Trigger("push", repository("refs/heads/main"), github.url, TOKEN)
    replace(rig, variables={"GITHUB_RUN_ID": "301"}).run(folder, BASELINE, {"Check": "success"}, trigger)
    (report,) = (each for each in (folder / "artifacts").iterdir() if each.is_dir())
    sha = json.loads((report / "origin.json").read_bytes())["sha"]
    past = github.world.past
    ran = Ran(301, sha, path=f".github/workflows/{BASELINE.name}", name="driftgate")
    past.runs.append(ran)
    content = zipped({file.name: file.read_bytes() for file in report.iterdir() if file.is_file()})
    past.uploads.append(Uploaded(1, ran, report.name, content))
    past.commit(sha)
    past.tip = sha


def released(rig: Rig, folder: Path, github: GitHub, jobs: Mapping[str, str]) -> list[str]:
    """Push a tag; what `gh` was asked for, nothing where it was not."""
    tools = folder / "tools"
    tools.mkdir()
    (tools / "gh").write_text(GH, "utf-8")
    (tools / "gh").chmod(0o755)
    variables = {"GITHUB_RUN_ID": "302", "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    trigger = Trigger("push", repository("refs/tags/v1.2.0"), github.url, TOKEN)
    replace(rig, variables=variables).run(folder, RELEASE, jobs, trigger)
    said = folder / "artifacts" / "released"
    return said.read_text("utf-8").split() if said.exists() else []


def test_a_release_has_its_results_attached(rig: Rig, tmp_path: Path, github: GitHub) -> None:
    pushed(rig, tmp_path / "main", github)
    folder = tmp_path / "tag"
    configured(folder)
    asked = released(rig, folder, github, {"Check": "success", "Release": "success"})
    assert asked[:2] == ["release", "create"]
    assert {"--verify-tag", "results.json", "facts.npz", "gate.json", "gate.md", "bundle.zip"} <= set(asked)
    gate = json.loads((folder / "artifacts" / "driftgate-release" / "gate.json").read_bytes())
    assert gate["outcome"] == "passed"
    assert {line["clause"] for line in gate["lines"]} == {"check", "regressions", "commit"}


@pytest.mark.parametrize(
    ("fault", "release", "clause"),
    [
        ("board-padding", {}, "check"),
        (None, {"samples": 5000}, "samples"),
        (None, {"board-days": 30}, "board-age"),
    ],
)
def test_what_does_not_hold_is_no_release(
    rig: Rig, tmp_path: Path, github: GitHub, fault: str | None, release: Mapping[str, Any], clause: str
) -> None:
    pushed(rig, tmp_path / "main", github)
    folder = tmp_path / "tag"
    configured(folder, fault, **release)
    assert released(rig, folder, github, {"Check": "failure"}) == []
    gate = json.loads((folder / "artifacts" / "driftgate-release" / "gate.json").read_bytes())
    assert clause in {line["clause"] for line in gate["lines"] if line["outcome"] != "passed"}


def test_without_a_baseline_nobody_can_say_that_nothing_is_worse(rig: Rig, tmp_path: Path, github: GitHub) -> None:
    configured(tmp_path)
    assert released(rig, tmp_path, github, {"Check": "failure"}) == []
    gate = json.loads((tmp_path / "artifacts" / "driftgate-release" / "gate.json").read_bytes())
    assert [line["outcome"] for line in gate["lines"] if line["clause"] == "regressions"] == ["error"]
