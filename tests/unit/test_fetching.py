"""What is fetched from the base branch, on a loopback GitHub: the right run's results, or why there are none."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from driftgate.action import artifact_pattern, read_inputs
from driftgate.errors import DriftgateError, GitHubError, UsageError
from driftgate.fetching import BASELINE, CONFIG, run
from driftgate.storage.baselines import Baseline, read_note
from driftgate.storage.document import read_results
from support.github import archives, payloads
from support.github.clock import FakeClock
from support.github.faults import reset
from support.github.past import Past, Ran, Uploaded
from support.github.runs import TOKEN, environment
from support.github.server import GitHub, Storage
from support.github.world import Actor, World

A, B, C, D, HEAD, LOST = ("a" * 40, "b" * 40, "c" * 40, "d" * 40, "e" * 40, "9" * 40)
FORK = "mallory/models"


@dataclass
class Lab:
    """A GitHub with its storage, and the runner of one job."""

    github: GitHub
    storage: Storage
    folder: Path
    past: Past
    clock: FakeClock
    token: str = TOKEN
    said: io.StringIO = field(default_factory=io.StringIO)

    def uploads(self, run: Ran, name: str | None = None, content: bytes | None = None, **more: Any) -> Uploaded:
        """The run has uploaded its report."""
        if run not in self.past.runs:
            self.past.runs.append(run)
        number = len(self.past.uploads) + 1
        made = Uploaded(number, run, name or self.name(run.attempt), content or archives.report(run), **more)
        self.past.uploads.append(made)
        return made

    def name(self, attempt: int = 1, **inputs: str) -> str:
        """What this job's upload is called in that attempt."""
        return read_inputs(self.variables(**inputs) | {"GITHUB_RUN_ATTEMPT": str(attempt)}).artifact

    def variables(self, event: str = "pull_request", **inputs: str) -> dict[str, str]:
        """What the step is given."""
        given = {"config": "driftgate.yaml", "out": "out", "upload": "always", "comment": "auto"}
        given |= {
            "delete-when-green": "false",
            "bundle": "never",
            "include-models": "false",
            "lang": "en",
            "gate": "false",
        }
        given |= inputs
        return {
            **environment(self.github.url, event=event),
            **{f"DRIFTGATE_{name.upper().replace('-', '_')}": value for name, value in given.items()},
            "GITHUB_JOB": "check",
            "GITHUB_TOKEN": self.token,
            "GITHUB_WORKSPACE": str(self.folder / "work"),
            "RUNNER_TEMP": str(self.folder / "temp"),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_EVENT_PATH": str(self.folder / "event.json"),
        }

    def fetch(self, payload: Mapping[str, Any] | None = None, event: str = "pull_request", **inputs: str) -> Path:
        """Run the step; the folder of the baseline."""
        (self.folder / "event.json").write_text(json.dumps(pull_request() if payload is None else payload), "utf-8")
        given = {"baseline": "auto", "policy-from": "head"} | {n.replace("_", "-"): v for n, v in inputs.items()}
        assert run(self.variables(event, **given), self.said, self.clock.timing()) == 0
        return self.folder / "temp" / BASELINE

    def outputs(self) -> dict[str, str]:
        """What the step tells the next ones."""
        text = (self.folder / "output").read_text("utf-8")
        return dict(re.findall(r"^([\w-]+)<<(?:\S+)\n(.*)\n", text, re.MULTILINE))


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    world = World(FakeClock())
    for sha, *parents in ((A,), (B, A), (C, B), (D, C), (HEAD, B)):
        world.past.commit(sha, *parents)
    (tmp_path / "temp").mkdir()
    with Storage(world) as storage, GitHub(world) as github:
        world.download_url = storage.address
        yield Lab(github, storage, tmp_path, world.past, world.clock)
    assert github.problems == storage.problems == []


def pull_request(base: str = D, head: str = HEAD, repository: str = payloads.REPOSITORY) -> dict[str, Any]:
    """The event: a change that left `main` at B, which is at D by now."""
    return {
        "number": 7,
        "pull_request": {
            "number": 7,
            "head": {"sha": head, "ref": "feat", "repo": {"full_name": repository}},
            "base": {"sha": base, "ref": "main"},
        },
        "repository": {"default_branch": "main"},
    }


def push(branch: str = "main") -> dict[str, Any]:
    return {"ref": f"refs/heads/{branch}", "repository": {"default_branch": "main"}}


def good(sha: str, number: int, **more: Any) -> Ran:
    return Ran(100 + number, sha, number, **more)


def note(folder: Path) -> Baseline:
    """What the folder says of itself."""
    found = read_note(folder)
    assert found is not None
    return found


def problem(folder: Path) -> str:
    """Why there is no baseline; nothing else is in the folder then."""
    found = note(folder).problem
    assert found is not None
    assert [file.name for file in folder.iterdir()] == ["baseline.json"]
    return found.code


# --- which run


def test_the_run_where_both_parted_and_not_the_latest(lab: Lab) -> None:
    for number, sha in enumerate((A, B, C, D), 1):
        lab.uploads(good(sha, number))
    folder = lab.fetch()
    found = note(folder)
    assert (found.problem, found.sha, found.run, found.label) == (None, B, "102", "main bbbbbbb (run 2)")
    assert len(found.sha256) == 64
    assert sorted(file.name for file in folder.iterdir()) == [
        "baseline.json",
        "facts.npz",
        "origin.json",
        "results.json",
    ]
    assert read_results(folder).judgements
    assert lab.outputs()["baseline"] == str(folder)
    assert "main bbbbbbb (run 2)" in lab.said.getvalue()


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "timed_out"])
def test_a_run_that_did_not_end_well_is_none(lab: Lab, conclusion: str) -> None:
    lab.uploads(good(A, 1))
    lab.uploads(good(B, 2, conclusion=conclusion))
    assert note(lab.fetch()).sha == A


def test_after_a_forced_push_only_what_both_have_counts(lab: Lab) -> None:
    """`main` was rewritten from A on: what was at B is on no branch any more, and C is not before the change."""
    lab.past.commit(LOST, A)
    lab.uploads(good(A, 1))
    lab.uploads(good(B, 2))
    lab.uploads(good(LOST, 3))
    assert note(lab.fetch(pull_request(base=LOST))).sha == A


def test_histories_without_a_common_commit(lab: Lab) -> None:
    lab.past.commit(LOST)
    lab.uploads(good(B, 1))
    assert problem(lab.fetch(pull_request(base=LOST))) == "baseline-unrelated"


@pytest.mark.parametrize("workflow", ["", "auto:other.yml"])
def test_a_first_run_has_no_baseline(lab: Lab, workflow: str) -> None:
    """None of this workflow at all, or none before the change."""
    lab.past.runs.append(good(C, 1))
    lab.past.runs.append(good(A, 2, path=".github/workflows/other.yml", conclusion="failure"))
    assert problem(lab.fetch(baseline=workflow or "auto")) == "baseline-none"


def test_another_workflow_of_the_branch_may_be_named(lab: Lab) -> None:
    nightly = good(B, 1, path=".github/workflows/nightly.yml", name="Nightly", event="schedule")
    lab.uploads(good(A, 2))
    lab.uploads(nightly, name=lab.name())
    assert note(lab.fetch(baseline="auto:nightly.yml")).run == "101"


def test_without_the_path_of_the_workflow_its_name_tells(lab: Lab) -> None:
    """As on servers that do not say which file it is."""
    lab.uploads(good(B, 1))
    lab.uploads(good(B, 2, name="Other", path=".github/workflows/other.yml"))
    (lab.folder / "event.json").write_text(json.dumps(pull_request()), "utf-8")
    given = lab.variables(baseline="auto", **{"policy-from": "head"})
    del given["GITHUB_WORKFLOW_REF"]
    assert run(given, lab.said, lab.clock.timing()) == 0
    assert note(lab.folder / "temp" / BASELINE).run == "101"


def test_a_push_is_held_against_the_run_before_it(lab: Lab) -> None:
    """Not against its own commit, which an earlier attempt or another event may have run."""
    for number, sha in enumerate((A, B, C), 1):
        lab.uploads(good(sha, number))
    lab.past.commit("f" * 40, C)
    lab.uploads(good("f" * 40, 9))
    assert note(lab.fetch(push(), event="push")).sha == C


def test_a_tag_is_held_against_the_default_branch(lab: Lab) -> None:
    lab.past.commit("f" * 40, C)
    lab.uploads(good(C, 1))
    payload = {"ref": "refs/tags/v1", "repository": {"default_branch": "main"}}
    assert note(lab.fetch(payload, event="push")).sha == C


def test_a_merge_queue_is_held_against_its_branch(lab: Lab) -> None:
    lab.uploads(good(B, 1))
    group = {"head_sha": HEAD, "head_ref": "refs/heads/gh-readonly-queue/main/pr-7", "base_sha": D}
    payload = {"merge_group": {**group, "base_ref": "refs/heads/main"}}
    assert note(lab.fetch(payload, event="merge_group")).sha == B


# --- whose run


@pytest.mark.parametrize(
    "more",
    [
        {"event": "pull_request", "head_repository": FORK},
        {"event": "pull_request"},
        {"event": "pull_request_target"},
        {"event": "workflow_run"},
        {"event": "push", "head_repository": FORK},
        {"branch": "feat"},
    ],
    ids=str,
)
def test_only_a_push_to_the_branch_itself_makes_a_baseline(lab: Lab, more: Mapping[str, Any]) -> None:
    """A fork may call its branch `main`, and its archive whatever it likes."""
    lab.uploads(good(A, 1))
    lab.uploads(good(B, 2, **more))
    assert note(lab.fetch()).sha == A


def test_an_archive_that_github_says_is_of_another_run_is_not_taken(lab: Lab) -> None:
    trusted = good(B, 1)
    lab.uploads(trusted, claims=good(B, 2, head_repository=FORK))
    assert problem(lab.fetch()) == "baseline-no-archive"


def test_a_change_from_a_fork_has_a_baseline_like_any_other(lab: Lab) -> None:
    lab.github.world.tokens["ghs_fork"] = Actor(may_write=False)
    lab.token = "ghs_fork"
    lab.uploads(good(B, 1))
    assert note(lab.fetch(pull_request(repository=FORK))).sha == B


# --- which archive


def test_the_latest_attempt_that_ran_the_job_counts(lab: Lab) -> None:
    ran = good(B, 1, attempt=3)
    old = archives.report(ran, archives.failed(archives.healthy()))
    lab.uploads(ran, name=lab.name(1), content=old)
    lab.uploads(ran, name=lab.name(2))
    assert note(lab.fetch()).problem is None


def test_other_inputs_give_another_archive_which_is_taken_where_it_is_the_only_one(lab: Lab) -> None:
    ran = good(B, 1)
    lab.uploads(ran, name=lab.name(profile="nightly"))
    assert note(lab.fetch(profile="pull-request")).sha == B
    lab.uploads(ran, name=lab.name(profile="weekly"))
    assert problem(lab.fetch(profile="pull-request")) == "baseline-no-archive"


def test_a_name_that_is_given_goes_first(lab: Lab) -> None:
    """Before that of another workflow, which has given none."""
    ran = good(B, 1)
    lab.uploads(ran, name="driftgate-report")
    assert note(lab.fetch(artifact="driftgate-report")).problem is None
    assert problem(lab.fetch(artifact="driftgate.report")) == "baseline-no-archive"
    lab.uploads(ran, content=b"no zip")
    assert note(lab.fetch(artifact="driftgate-report")).problem is None
    assert problem(lab.fetch(artifact="driftgate.report")) == "baseline-unusable"


def test_the_pattern_fits_the_name_in_every_attempt(lab: Lab) -> None:
    first, second = artifact_pattern(lab.variables(config="nets/a b.yaml", subject="c/d"))
    name = lab.name(12, config="nets/a b.yaml", subject="c/d")
    assert [found["attempt"] for one in (first, second) if (found := one.fullmatch(name))] == ["12", "12"]
    assert not first.fullmatch(lab.name(12, config="nets/a b.yaml", subject="other"))


def test_an_archive_that_is_gone_is_none(lab: Lab) -> None:
    lab.uploads(good(A, 1))
    lab.uploads(good(B, 2), expired=True)
    assert note(lab.fetch()).sha == A


# --- what is in it


def test_servers_that_tell_no_digest_are_believed_by_the_content(lab: Lab) -> None:
    lab.uploads(good(B, 1), is_old_server=True)
    assert note(lab.fetch()).sha == B


def without(name: str, ran: Ran) -> bytes:
    """A report that lacks a file."""
    archive = zipfile.ZipFile(io.BytesIO(archives.report(ran)))
    return archives.zipped({one: archive.read(one) for one in archive.namelist() if one != name})


def escaping(ran: Ran) -> bytes:
    archive = zipfile.ZipFile(io.BytesIO(archives.report(ran)))
    return archives.zipped({one: archive.read(one) for one in archive.namelist()} | {"../../evil": b"!"})


def unjudged(ran: Ran) -> bytes:
    return archives.report(ran, replace(archives.healthy(), judgements=None))


def of_other_facts(ran: Ran) -> bytes:
    healthy = archives.healthy()
    return archives.report(
        ran, replace(healthy, judgements=tuple(replace(one, plan="0" * 64) for one in healthy.judgements or ()))
    )


UNUSABLE: Mapping[str, tuple[Callable[[Ran], bytes], str]] = {
    "another commit's": (lambda ran: archives.report(good(LOST, 1)), "baseline-other-run"),
    "another run's": (lambda ran: archives.report(good(B, 7)), "baseline-other-run"),
    "a newer version": (lambda ran: archives.report(ran, version=2), "results-version"),
    "another document": (lambda ran: archives.report(ran, schema="driftgate.bundle"), "results-other"),
    "garbled": (lambda ran: archives.report(ran, facts=3), "results-invalid"),
    "failed": (lambda ran: archives.report(ran, archives.failed(archives.healthy())), "baseline-not-passed"),
    "a shard": (unjudged, "baseline-plan"),
    "judged from other facts": (of_other_facts, "baseline-plan"),
    "without results": (lambda ran: without("results.json", ran), "baseline-incomplete"),
    "without facts": (lambda ran: without("facts.npz", ran), "baseline-incomplete"),
    "without origin": (lambda ran: without("origin.json", ran), "baseline-incomplete"),
    "no zip": (lambda ran: b"<html>sorry</html>", "archive-damaged"),
    "half a zip": (lambda ran: archives.report(ran)[:-40], "archive-damaged"),
    "names that lead elsewhere": (escaping, "archive-name"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_an_archive_that_cannot_be_believed_is_told_and_left(lab: Lab, kind: str) -> None:
    make, code = UNUSABLE[kind]
    ran = good(B, 1)
    lab.uploads(ran, content=make(ran))
    folder = lab.fetch()
    assert problem(folder) == "baseline-unusable"
    found = note(folder).problem
    reason = None if found is None else found.get("reason")
    assert getattr(reason, "code", None) == code
    assert str(lab.folder) not in lab.said.getvalue()
    assert "::warning" in lab.said.getvalue()
    assert not list(lab.folder.parent.rglob("evil"))


def test_bytes_that_are_not_what_github_says_are_refused(lab: Lab) -> None:
    lab.uploads(good(B, 1), digest="sha256:" + "0" * 64)
    found = note(lab.fetch()).problem
    assert found is not None
    assert "baseline-digest" in repr(found)


def test_behind_one_that_cannot_be_used_the_next_good_run_stands(lab: Lab) -> None:
    lab.uploads(good(A, 1))
    lab.uploads(good(B, 2), content=b"no zip")
    assert note(lab.fetch()).sha == A


# --- GitHub that refuses


@pytest.mark.parametrize("blind", [("actions",), ("compare", "commits")], ids=str)
def test_a_token_that_may_not_read_is_told(lab: Lab, blind: tuple[str, ...]) -> None:
    lab.uploads(good(B, 1))
    lab.github.world.tokens[TOKEN] = Actor(blind=blind)
    assert problem(lab.fetch()) == "baseline-refused"


def test_a_workflow_that_is_not_there_is_told(lab: Lab) -> None:
    lab.uploads(good(B, 1))
    assert problem(lab.fetch(baseline="auto:nightly.yml")) == "baseline-refused"


def test_no_token_and_no_server_are_told(lab: Lab) -> None:
    lab.uploads(good(B, 1))
    lab.github.plan("GET", "runs", *[reset] * 20)
    assert problem(lab.fetch()) == "github-attempts"
    lab.token = ""
    assert problem(lab.fetch()) == "baseline-no-token"


def test_what_an_earlier_step_left_is_not_taken_for_a_baseline(lab: Lab) -> None:
    lab.uploads(good(B, 1))
    folder = lab.fetch()
    lab.past.uploads.clear()
    assert lab.fetch() == folder
    assert problem(folder) == "baseline-no-archive"


# --- the base branch's configuration


CONFIGURED = b"version: 1\nsubjects: {net: {artifacts: {onnx: net.onnx}, samples: {raw: eval.npz}}}\n"


def test_the_configuration_is_that_of_the_branchs_tip(lab: Lab) -> None:
    """Not of where both parted: a policy that was tightened since holds."""
    lab.past.files[D, "nets/driftgate.yaml"] = CONFIGURED
    lab.past.files[B, "nets/driftgate.yaml"] = b"loose"
    lab.fetch(config="nets/driftgate.yaml", baseline="", policy_from="base")
    place = lab.outputs()["base-config"]
    assert place == str(lab.folder / "temp" / CONFIG)
    assert Path(place).read_bytes() == CONFIGURED


def test_a_branch_without_a_configuration_has_no_policies(lab: Lab) -> None:
    lab.fetch(baseline="", policy_from="base")
    assert lab.outputs()["base-config"] == ""
    assert "::notice" in lab.said.getvalue()


@pytest.mark.parametrize("content", [b"version: 1\nsubjects: {}\n", b"version: 9\n", b"\x00", b"["])
def test_a_configuration_of_the_branch_that_is_not_valid_is_warned_of(lab: Lab, content: bytes) -> None:
    lab.past.files[D, "driftgate.yaml"] = content
    lab.fetch(baseline="", policy_from="base")
    assert lab.outputs()["base-config"] == ""
    said = lab.said.getvalue()
    assert "::warning" in said
    assert "not valid" in said
    assert str(lab.folder) not in said
    assert not (lab.folder / "temp" / CONFIG).exists()


def test_nobody_passes_by_own_policies_because_the_branchs_could_not_be_read(lab: Lab) -> None:
    """GitHub says "not found" of what a token may not see."""
    lab.past.files[D, "driftgate.yaml"] = CONFIGURED
    lab.github.world.tokens[TOKEN] = Actor(blind=("contents", "commits"))
    with pytest.raises(GitHubError, match="contents: read"):
        lab.fetch(baseline="", policy_from="base")
    lab.github.world.tokens[TOKEN] = Actor()
    lab.github.plan("GET", "contents", *[reset] * 20)
    with pytest.raises(GitHubError, match="policy-from: head"):
        lab.fetch(baseline="", policy_from="base")
    lab.token = ""
    with pytest.raises(GitHubError, match="no token"):
        lab.fetch(baseline="", policy_from="base")


@pytest.mark.parametrize(
    ("inputs", "event"),
    [
        ({"policy_from": "head"}, "pull_request"),
        ({"policy_from": "base"}, "push"),
        ({"policy_from": "base", "config": "demo:nhwc"}, "pull_request"),
        ({"policy_from": "base", "config": "/etc/driftgate.yaml"}, "pull_request"),
        ({"policy_from": "base", "config": "../driftgate.yaml"}, "pull_request"),
    ],
    ids=str,
)
def test_where_nobody_asks_for_it_nothing_is_asked_of_github(lab: Lab, inputs: dict[str, str], event: str) -> None:
    lab.fetch(push() if event == "push" else None, event=event, baseline="", **inputs)
    assert lab.outputs() == {"baseline": "", "base-config": ""}
    assert lab.github.log == []


def test_a_path_is_handed_on(lab: Lab) -> None:
    lab.fetch(baseline="autos/v1")
    assert lab.outputs()["baseline"] == "autos/v1"
    assert lab.github.log == []


def test_a_wrong_word_is_refused(lab: Lab) -> None:
    with pytest.raises(UsageError, match="policy-from"):
        lab.fetch(policy_from="main")


@pytest.mark.parametrize("field", ["ref", "sha"])
def test_an_event_without_its_base_is_refused(lab: Lab, field: str) -> None:
    payload = pull_request()
    payload["pull_request"]["base"][field] = ""
    with pytest.raises(DriftgateError, match="base"):
        lab.fetch(payload)
