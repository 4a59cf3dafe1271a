"""Our workflows and those to copy: rights, pins, triggers, and that the README shows what is tested."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from driftgate.watchdog import BOARD, HOST

ROOT = Path(__file__).parents[2]
OURS = tuple(sorted((ROOT / ".github" / "workflows").glob("*.yml")))
EXAMPLES = tuple(sorted((ROOT / "examples" / "workflows").glob("*.yml")))
ALL = (*OURS, *EXAMPLES)
#: File, job → the rights to write that it has.
WRITES = {
    ("release.yml", "pypi"): {"id-token"},
    ("release.yml", "github"): {"contents"},
    ("driftgate.yml", "check"): {"pull-requests"},
    ("driftgate-baseline.yml", "check"): {"pull-requests"},
    ("driftgate-release.yml", "release"): {"contents"},
    ("driftgate-two-jobs.yml", "comment"): {"pull-requests"},
    ("driftgate-comment.yml", "comment"): {"pull-requests"},
    ("driftgate-four-segment.yml", "chain"): {"actions", "pull-requests"},  # for the jobs of the workflow it calls
    ("driftgate-four-segment.yml", "release"): {"contents"},
    ("four-segment.yml", "watch"): {"actions"},
    ("four-segment.yml", "publish"): {"pull-requests"},
    ("four-segment-ghes.yml", "watch"): {"actions"},
    ("four-segment-ghes.yml", "publish"): {"pull-requests"},
}
#: The jobs where user code and a token meet, in steps that keep them apart; driftgate-two-jobs.yml is the other way.
TOGETHER = {("driftgate.yml", "check"), ("driftgate-baseline.yml", "check")}
#: What a step of ours runs that runs code of the user's in turn, and what does not.
OF_THE_USER = ("driftgate.jobs plan", "driftgate.jobs host", "driftgate.jobs board", "driftgate.jobs judge")
OURS_ALONE = ("driftgate.jobs gate", "driftgate.watchdog", "driftgate.fetching")


def parsed(file: Path) -> dict[str, Any]:
    """A workflow; YAML 1.1 reads the key `on` as a truth value."""
    document = yaml.safe_load(file.read_text("utf-8"))
    document["on"] = document.pop(True)
    return dict(document)


def jobs() -> Iterator[tuple[Path, str, dict[str, Any]]]:
    for file in ALL:
        yield from ((file, name, job) for name, job in parsed(file)["jobs"].items())


def steps(job: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """None where it calls a workflow."""
    found: Sequence[Mapping[str, Any]] = job.get("steps", [])
    return found


def runs_user_code(step: Mapping[str, Any]) -> bool:
    """A checkout brings code of the user's; the action, jobs of ours and the user's own commands run it."""
    uses, script = step.get("uses", ""), step.get("run", "")
    if uses:
        return bool(uses.startswith(("actions/checkout@", "driftgate/driftgate@", "./")))
    return any(word in script for word in (*OF_THE_USER, "driftgate.building", "bash -euo pipefail -c", "make "))


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


def test_a_job_that_runs_user_code_may_write_nothing() -> None:
    found = {
        (file.name, name)
        for file, name, job in jobs()
        if any(level == "write" for level in job["permissions"].values()) and any(map(runs_user_code, steps(job)))
    }
    assert found == TOGETHER


def test_every_step_of_the_four_segment_workflow_is_known_to_run_user_code_or_not() -> None:
    workflow = parsed(ROOT / ".github" / "workflows" / "four-segment.yml")
    known = (*OF_THE_USER, *OURS_ALONE, "driftgate.building", 'bash -euo pipefail -c "$PREPARE"')
    scripts = [step["run"] for job in workflow["jobs"].values() for step in steps(job) if "run" in step]
    assert [script for script in scripts if not any(script.endswith(word) for word in known)] == []
    assert {word for word in known if any(script.endswith(word) for script in scripts)} == set(known)
    used = {
        step["uses"].partition("@")[0] for job in workflow["jobs"].values() for step in steps(job) if "uses" in step
    }
    ours = {"$/setup", "$/publish"}
    assert used == ours | {f"actions/{name}" for name in ("checkout", "upload-artifact", "download-artifact")}


def test_a_job_on_a_board_has_no_right_no_checkout_and_is_no_strangers() -> None:
    job = parsed(ROOT / ".github" / "workflows" / "four-segment.yml")["jobs"]["board"]
    assert job["permissions"] == {}
    assert [step["uses"] for step in steps(job) if "checkout" in step.get("uses", "")] == []
    condition = " ".join(job["if"].split())
    assert "github.event.pull_request.head.repo.full_name == github.repository" in condition
    (events,) = re.findall(r"fromJSON\('(\[.*?\])'\)", condition)
    assert set(json.loads(events)) == {"push", "merge_group", "schedule", "release", "workflow_dispatch"}
    (plan,) = (step for step in steps(four_segment("plan")) if step["name"] == "Plan")
    assert strict(plan["env"]["DRIFTGATE_BOARDS_ALLOWED"]) in strict(condition), "the plan and the job agree"


def test_the_secret_of_the_boards_is_given_to_their_step_alone() -> None:
    workflow = parsed(ROOT / ".github" / "workflows" / "four-segment.yml")
    given = [
        (name, step["name"])
        for name, job in workflow["jobs"].items()
        for step in steps(job)
        if "secrets.boards" in json.dumps(step)
    ]
    assert given == [("board", "Run the leg")]
    assert json.dumps(workflow).count("secrets.boards") == 1


def test_the_workflow_for_servers_of_ones_own_is_made_from_the_other() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "enterprise_workflow.py"))
    wanted = made["rewritten"](made["SOURCE"].read_text("utf-8"))
    assert made["TARGET"].read_text("utf-8") == wanted, "run python tools/enterprise_workflow.py"


def test_the_watchdog_knows_the_names_of_the_jobs() -> None:
    assert four_segment("host")["name"] == f"{HOST}${{{{ matrix.name }}}}"
    assert four_segment("board")["name"] == f"{BOARD}${{{{ matrix.name }}}}"


@pytest.mark.parametrize("name", ["judge", "publish"])
def test_what_tells_the_end_runs_whatever_happens(name: str) -> None:
    job = four_segment(name)
    assert job["if"] == "always()"
    assert {"plan", "host", "board"} <= set(job["needs"])
    assert "continue-on-error" not in job
    assert [step for step in steps(job) if step.get("continue-on-error")] == []


@pytest.mark.parametrize("kind", ["inputs", "secrets", "outputs"])
def test_everything_that_a_caller_may_give_or_take_is_documented(kind: str) -> None:
    call = parsed(ROOT / ".github" / "workflows" / "four-segment.yml")["on"]["workflow_call"]
    page = (ROOT / "docs" / "runners.md").read_text("utf-8")
    assert [name for name in call[kind] if f"`{name}`" not in page] == []


def four_segment(name: str) -> dict[str, Any]:
    found: dict[str, Any] = parsed(ROOT / ".github" / "workflows" / "four-segment.yml")["jobs"][name]
    return found


def strict(expression: str) -> str:
    """An expression without its braces and spaces."""
    return re.sub(r"\s|\$\{\{|\}\}", "", expression)


def test_a_job_with_user_code_beside_a_token_keeps_it_from_the_checkout() -> None:
    checkouts = [
        step for _, _, job in jobs() for step in steps(job) if step.get("uses", "").startswith("actions/checkout@")
    ]
    assert len(checkouts) > len(OURS)
    assert [step for step in checkouts if step["with"]["persist-credentials"] is not False] == []


def test_every_action_of_others_is_pinned_and_says_its_version() -> None:
    files = [file for file in ALL if file.name != "four-segment-ghes.yml"]  # made from another, for older versions
    lines = [line.strip() for file in files for line in file.read_text("utf-8").splitlines() if "uses:" in line]
    others = [line for line in lines if not re.search(r"uses: (driftgate/|\./|\$/)", line)]
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
