"""Every event that a workflow may run for, with a GitHub on the loopback interface that sees every request."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from driftgate.demo.build import build
from driftgate.storage.bundle import open_bundle
from support.act.events import FORK, TOKEN, finished, pull_request, without_pull_request
from support.act.rig import REPOSITORY, ActRun, Rig, Trigger
from support.github.server import GitHub
from support.github.world import NOT_ACCESSIBLE, Pull

EXAMPLES = REPOSITORY / "examples" / "workflows"
EVENTS = without_pull_request()
ADDRESS = "https://github.com/acme/models/pull/7#issuecomment-"


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub() as server:
        yield server
        assert server.problems == []


@pytest.fixture
def fork(github: GitHub) -> Pull:
    """Pull request 7 comes from a fork."""
    github.world.pulls[7] = replace(github.world.pulls[7], head_repository=FORK)
    return github.world.pulls[7]


@pytest.mark.parametrize("trigger", EVENTS, ids=[trigger.event for trigger in EVENTS])
def test_an_event_without_a_pull_request_has_summary_and_outputs_and_asks_github_nothing(
    rig: Rig, workflows: Path, tmp_path: Path, github: GitHub, trigger: Trigger
) -> None:
    build(tmp_path / "consumer", "board-padding")
    trigger = replace(trigger, api_url=github.url, token=TOKEN)
    done = rig.run(tmp_path, workflows / "gate.yml", {"gate": "failure"}, trigger)

    assert cell(done, "BC ↔ HBM") == "FAIL"
    given = outputs(tmp_path)
    assert (given["outcome"], given["first-failure"], given["comment-url"]) == ("failed", "bc-hbm", "")
    assert "artifacts/" not in given["report"]
    assert report(tmp_path).joinpath("comment.md").is_file()
    asked = {line.split()[1].split("/")[4] for line in github.lines}
    assert asked == ({"contents", "commits"} if trigger.event == "merge_group" else set()), "the branch's policies"


def test_a_pull_request_has_one_comment_that_the_next_run_renews(
    rig: Rig, workflows: Path, tmp_path: Path, github: GitHub
) -> None:
    github.world.say("Looks good to me")
    build(tmp_path / "1" / "consumer", "board-padding")
    first = rig.run(tmp_path / "1", workflows / "gate.yml", {"gate": "failure"}, pull_request(github, number=1))
    (made,) = ours(github)
    assert "BC ↔ HBM" in made[1]
    assert "/acme/models/actions/runs/1/artifacts/1" in made[1]
    assert "ab" * 32 in made[1]
    bundle = report(tmp_path / "1") / "bundle.zip"
    assert sha256(bundle.read_bytes()).hexdigest() in made[1], (
        "the archive has the bundle, whose digest the comment names"
    )
    with open_bundle(bundle) as opened:
        assert [link.link for link in opened.manifest.links] == ["quantized..hbm"]
        assert not opened.manifest.models_included
    assert outputs(tmp_path / "1")["comment-url"] == f"{ADDRESS}{made[0]}"
    assert first.errors[0].startswith("digits: the first check that fails is bc-hbm")
    assert first.error_places[1][0] == "driftgate.yaml", "an annotation on the line of the artifact"

    build(tmp_path / "2" / "consumer")
    rig.run(tmp_path / "2", workflows / "gate.yml", {"gate": "success"}, pull_request(github, number=2))
    (renewed,) = ours(github)
    assert renewed[0] == made[0]
    assert "PASS" in renewed[1]
    assert "FAIL" not in renewed[1]
    assert "bundle.zip" not in renewed[1]
    assert outputs(tmp_path / "2")["comment-url"] == f"{ADDRESS}{made[0]}"
    assert [line.split()[0] for line in github.lines if not line.startswith("GET")] == ["POST", "PATCH"]


def test_the_workflow_to_copy_comments(rig: Rig, tmp_path: Path, github: GitHub) -> None:
    assert (EXAMPLES / "driftgate.yml").read_text("utf-8") in (REPOSITORY / "README.md").read_text("utf-8")
    build(tmp_path / "consumer")
    rig.run(tmp_path, EXAMPLES / "driftgate.yml", {"check": "success"}, pull_request(github))
    assert len(ours(github)) == 1


@pytest.mark.parametrize(("fault", "result"), [("board-padding", "failure"), (None, "success")])
def test_a_fork_without_the_right_to_comment_keeps_the_result_of_its_check(
    rig: Rig, workflows: Path, tmp_path: Path, github: GitHub, fork: Pull, fault: str | None, result: str
) -> None:
    build(tmp_path / "consumer", fault)
    done = rig.run(tmp_path, workflows / "gate.yml", {"gate": result}, pull_request(github))

    assert [logged.line for logged in github.log if logged.reply and logged.reply.status == 403], "it was refused"
    assert NOT_ACCESSIBLE in done.text
    assert ours(github) == []
    assert cell(done, "BC ↔ HBM") == ("FAIL" if fault else "PASS")
    assert "BC ↔ HBM" in report(tmp_path).joinpath("comment.md").read_text("utf-8")
    assert outputs(tmp_path)["comment-url"] == ""


def test_a_comment_that_must_be_and_cannot_fails_the_job_of_a_passing_check(
    rig: Rig, workflows: Path, tmp_path: Path, github: GitHub, fork: Pull
) -> None:
    build(tmp_path / "consumer")
    done = rig.run(tmp_path, workflows / "required.yml", {"gate": "failure"}, pull_request(github))
    assert cell(done, "BC ↔ HBM") == "PASS"
    assert [error for error in done.errors if "comment could not be published" in error]


def test_the_workflow_after_a_forks_run_comments_on_the_pull_request_that_github_names(
    rig: Rig, workflows: Path, tmp_path: Path, github: GitHub, fork: Pull
) -> None:
    """What the fork has written into its artifact chooses neither the pull request nor the text."""
    build(tmp_path / "run" / "consumer", "board-padding")
    rig.run(tmp_path / "run", workflows / "gate.yml", {"gate": "failure"}, pull_request(github))
    artifact = report(tmp_path / "run")
    (artifact / "comment.md").write_text("Merge this, it is fine. @acme/admins")
    (artifact / "pr_number").write_text("1")
    (artifact / "event.json").write_text('{"pull_request": {"number": 1}}')
    github.world.pulls[1] = Pull(number=1, branch="other", sha="d" * 40)

    shutil.copytree(tmp_path / "run" / "artifacts", tmp_path / "after" / "artifacts")
    for _ in range(2):
        rig.run(tmp_path / "after", EXAMPLES / "driftgate-comment.yml", {"Comment": "success"}, finished(github, fork))
    (made,) = ours(github)
    assert github.world.comments[made[0]].issue == 7
    assert "BC ↔ HBM" in made[1]
    assert "@acme" not in made[1]


def test_the_workflow_after_a_forks_run_has_nothing_to_say_without_a_report(
    rig: Rig, tmp_path: Path, github: GitHub, fork: Pull
) -> None:
    rig.run(tmp_path, EXAMPLES / "driftgate-comment.yml", {"Comment": "success"}, finished(github, fork))
    assert github.log == []


def test_two_jobs_keep_user_code_and_the_token_apart(rig: Rig, tmp_path: Path, github: GitHub) -> None:
    build(tmp_path / "consumer", "board-padding")
    jobs = {"Check": "failure", "Comment": "success"}
    rig.run(tmp_path, EXAMPLES / "driftgate-two-jobs.yml", jobs, pull_request(github))
    (made,) = ours(github)
    assert "BC ↔ HBM" in made[1]
    assert sha256((report(tmp_path) / "bundle.zip").read_bytes()).hexdigest() in made[1]


def test_user_code_sees_no_token(rig: Rig, workflows: Path, tmp_path: Path, github: GitHub) -> None:
    """A worker's interpreter is whatever the configuration names; this one writes down what it is given."""
    consumer = tmp_path / "consumer"
    config = build(consumer)
    recorded = "{backend: recorded, path: stages/pytorch.npz}"
    spy = '{backend: torch, load: "net:load", python: [sh, -c, "env > $ARTIFACTS/environment; exit 3"]}'
    text = config.read_text("utf-8")
    assert recorded in text
    config.write_text(text.replace(recorded, spy), "utf-8")
    rig.run(tmp_path, workflows / "gate.yml", {"gate": "failure"}, pull_request(github))

    environment = (tmp_path / "artifacts" / "environment").read_text("utf-8")
    assert "GITHUB_WORKSPACE=" in environment
    assert TOKEN not in environment
    assert [line for line in environment.splitlines() if "TOKEN" in line.partition("=")[0]] == []
    assert [line for line in environment.splitlines() if line.startswith(("GITHUB_ENV=", "GITHUB_OUTPUT="))] == []
    assert outputs(tmp_path)["outcome"] == "error"
    assert len(ours(github)) == 1, "the publishing step had the token"


def test_the_actions_own_repository_tests_it(rig: Rig, tmp_path: Path) -> None:
    shutil.copytree(rig.tree, tmp_path / "consumer")
    jobs = {"A healthy network passes": "success", "A faulty network is found": "success"}
    done = rig.run(tmp_path, REPOSITORY / ".github" / "workflows" / "self-test.yml", jobs)
    assert "result=[failure] outcome=[failed] first-failure=[bc-hbm]" in done.text


def ours(github: GitHub) -> list[tuple[int, str]]:
    """Id and text of the comments with our marker."""
    standing = sorted(github.world.comments.items())
    return [(number, comment.body) for number, comment in standing if comment.body.startswith("<!-- driftgate v1 ")]


def outputs(folder: Path) -> dict[str, str]:
    """The action's outputs, as gate.yml writes them down."""
    found: dict[str, str] = json.loads((folder / "artifacts" / "outputs.json").read_text("utf-8"))
    return found


def report(folder: Path) -> Path:
    """The one report that was uploaded."""
    (uploaded,) = (each for each in (folder / "artifacts").iterdir() if each.is_dir())
    return uploaded


def cell(done: ActRun, check: str) -> str:
    """The result of one check in the one page that the job summary shows."""
    (page,) = done.summaries
    rows = [line.split("|") for line in page.splitlines() if line.startswith("|")]
    return next(re.sub(r"[^A-Z]", "", parts[2]) for parts in rows if parts[1].strip(" *") == check)
