"""Our workflows and those to copy: rights, pins, triggers, and that the README shows what is tested."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
OURS = tuple(sorted((ROOT / ".github" / "workflows").glob("*.yml")))
EXAMPLES = tuple(sorted((ROOT / "examples" / "workflows").glob("*.yml")))
ALL = (*OURS, *EXAMPLES)
#: File, job → the rights to write that it has.
WRITES = {
    ("release.yml", "pypi"): {"id-token"},
    ("release.yml", "github"): {"contents"},
    ("driftgate.yml", "check"): {"pull-requests"},
    ("driftgate-two-jobs.yml", "comment"): {"pull-requests"},
    ("driftgate-comment.yml", "comment"): {"pull-requests"},
}


def parsed(file: Path) -> dict[str, Any]:
    """A workflow; YAML 1.1 reads the key `on` as a truth value."""
    document = yaml.safe_load(file.read_text("utf-8"))
    document["on"] = document.pop(True)
    return dict(document)


def jobs() -> Iterator[tuple[Path, str, dict[str, Any]]]:
    for file in ALL:
        yield from ((file, name, job) for name, job in parsed(file)["jobs"].items())


def test_the_readme_shows_the_workflow_that_is_tested() -> None:
    shown = (ROOT / "examples" / "workflows" / "driftgate.yml").read_text("utf-8")
    assert f"```yaml\n{shown}```\n" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("file", ALL, ids=lambda file: str(file.name))
def test_no_workflow_runs_with_the_rights_of_the_base_for_a_pull_request(file: Path) -> None:
    on = parsed(file)["on"]
    events = {on} if isinstance(on, str) else set(on)
    assert "pull_request_target" not in events
    assert ("workflow_run" in events) == (file.name == "driftgate-comment.yml")


def test_a_job_may_write_only_what_it_is_there_for() -> None:
    found = {
        (file.name, name): {right for right, level in job["permissions"].items() if level == "write"}
        for file, name, job in jobs()
    }
    assert {place: rights for place, rights in found.items() if rights} == WRITES


def test_a_job_with_user_code_beside_a_token_keeps_it_from_the_checkout() -> None:
    checkouts = [
        step for _, _, job in jobs() for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")
    ]
    assert len(checkouts) > len(OURS)
    assert [step for step in checkouts if step["with"]["persist-credentials"] is not False] == []


def test_every_action_of_others_is_pinned_and_says_its_version() -> None:
    lines = [line.strip() for file in ALL for line in file.read_text("utf-8").splitlines() if "uses:" in line]
    others = [line for line in lines if "uses: driftgate/" not in line and "uses: ./" not in line]
    assert others
    assert [line for line in others if not re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)] == []
    pins = {match[1] for line in others if (match := re.search(r"uses: (\S+@\S+)", line))}
    assert len({pin.partition("@")[0] for pin in pins}) == len(pins), "one version of each"


@pytest.mark.parametrize("file", OURS, ids=lambda file: str(file.name))
def test_no_workflow_has_rights_beyond_its_jobs_nor_runs_beside_itself(file: Path) -> None:
    workflow = parsed(file)
    assert workflow["permissions"] == {}
    assert workflow["concurrency"]["group"]


def test_ci_makes_what_a_submission_makes() -> None:
    ci = parsed(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    (steps,) = re.findall(r"^for step in ([\w -]+);", script, re.M)
    assert {"test", *ci["target"]["strategy"]["matrix"]["target"]} == set(steps.split())


def test_attempts_of_a_run_are_told_apart_by_the_artifacts_name() -> None:
    """As `driftgate.action` names it: the attempt, then eight digits."""
    for name in ("driftgate-comment.yml", "driftgate-two-jobs.yml"):
        text = (ROOT / "examples" / "workflows" / name).read_text("utf-8")
        assert re.search(r"pattern: driftgate-\*-\$\{\{ github\.[\w.]*run_attempt \}\}-\?{8}\n", text)
