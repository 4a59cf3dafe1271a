"""The action's step before the check: fetches what a change is held against from the base branch, and may read only.

The branch's configuration, by whose policies the change is judged, and the archive of its last good run before the two
parted. The step runs nothing of the user's; what it fetched is looked at here, and read as numbers later.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TextIO

from driftgate.action import artifact_pattern
from driftgate.commands.believing import of_file
from driftgate.errors import ConfigError, DriftgateError, GitHubError, Gone, NotAllowed, StorageError, UsageError
from driftgate.github.api import Client
from driftgate.github.environment import RunContext, read_context, read_event
from driftgate.github.former import (
    MOST_CANDIDATES,
    Base,
    FormerRun,
    Upload,
    base_of,
    file_at,
    good_runs,
    parted_at,
    uploads,
)
from driftgate.github.patience import Timing, machine_timing
from driftgate.messages.message import Message, Param, message
from driftgate.messages.text import text
from driftgate.runner import annotate, fail, speak_as_asked, write_outputs
from driftgate.settings.load import load
from driftgate.storage.atomic import write_bytes
from driftgate.storage.baselines import MOST_BYTES, Baseline, unpack_baseline, write_note
from driftgate.storage.folder import remove_tree
from driftgate.storage.planfile import Provenance

#: What the input `baseline` says for the base branch's last good run; a workflow's file may stand behind a colon.
AUTO = "auto"
#: What the input `policy-from` may say.
BASE, HEAD = "base", "head"
#: Events of a change that is held against a branch which it is not part of.
CHANGES = ("pull_request", "pull_request_target", "merge_group")
BASELINE, CONFIG = "driftgate-baseline", "driftgate-base.yaml"
_DEMO = re.compile(r"demo(:.*)?")


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be fetched: the former results as `baseline` says, the configuration at `config` of the repository;
    empty where it is not wanted. `archives` are the names that the former run's archive may have, best first."""

    baseline: str
    config: str
    archives: tuple[re.Pattern[str], ...]
    folder: Path


def run(environment: Mapping[str, str], log: TextIO, timing: Timing) -> int:
    """Fetch, and write the outputs `baseline` and `base-config`; the step's exit code.

    What cannot be fetched of a baseline is told by the report. Raises GitHubError where the base branch's policies
    cannot be read: nobody may pass by policies of their own because those of the branch were out of reach.
    """
    wish = wished(environment)
    given = _given(environment, "baseline")
    outputs = {"baseline": "" if is_auto(given) else given, "base-config": ""}
    if wish.baseline or wish.config:
        context, event = _read(environment)
        base = base_of(context, event)
        token = environment.get("GITHUB_TOKEN", "").strip()
        if wish.config:
            outputs["base-config"] = _configuration(wish, context, base, token, timing, log)
        if wish.baseline:
            outputs["baseline"] = _baseline(wish, context, base, token, timing, log)
    write_outputs(environment, outputs)
    return 0


def is_auto(baseline: str) -> bool:
    """Whether the base branch's last good run is meant, and no path."""
    return baseline == AUTO or baseline.startswith(f"{AUTO}:")


def wished(environment: Mapping[str, str]) -> Wish:
    """What the inputs ask for. Raises UsageError for one that is none of its choices."""
    policy_from = _given(environment, "policy-from") or BASE
    if policy_from not in (BASE, HEAD):
        raise UsageError(message("action-input-choice", name="policy-from", value=policy_from, wanted=(BASE, HEAD)))
    baseline, config = _given(environment, "baseline"), _given(environment, "config")
    is_change = environment.get("GITHUB_EVENT_NAME", "") in CHANGES
    return Wish(
        baseline=baseline if is_auto(baseline) else "",
        config=_in_repository(config, environment) if policy_from == BASE and is_change else "",
        archives=tuple(artifact_pattern(environment)),
        folder=Path(environment.get("RUNNER_TEMP") or environment.get("GITHUB_WORKSPACE") or ".").absolute(),
    )


def main() -> None:
    """The step."""
    speak_as_asked(os.environ)
    timing = machine_timing()
    try:
        code = run(os.environ, sys.stdout, timing)
    except DriftgateError as error:
        fail(error)
    sys.exit(code)


def _configuration(wish: Wish, context: RunContext, base: Base, token: str, timing: Timing, log: TextIO) -> str:
    """The path of the base branch's configuration; empty where that branch has none yet, or one that is not valid,
    of which a warning tells: it may be what the change mends."""
    place = {"path": wish.config, "branch": base.branch}
    if not token:
        raise GitHubError(message("base-config-no-token", **place))
    try:
        with Client(context.api_url, token, timing=timing) as client:
            content = file_at(client, context, wish.config, base.sha)
    except GitHubError as error:
        raise GitHubError(message("base-config-refused", **place, reason=error.problems[0])) from error
    if content is None:
        annotate("notice", message("base-config-absent", **place), log)
        return ""
    target = wish.folder / CONFIG
    write_bytes(target, content)
    try:
        load(target, for_policy=True)
    except ConfigError as error:
        told = _without(error.problems[0], wish.folder)
        annotate("warning", message("base-config-broken", reason=told), log)
        target.unlink()
        return ""
    print(text(message("base-config-found", branch=base.branch, sha=base.sha[:12])), file=log, flush=True)
    return str(target)


def _baseline(wish: Wish, context: RunContext, base: Base, token: str, timing: Timing, log: TextIO) -> str:
    """The folder of the baseline; one that says why there is none, where it cannot be fetched."""
    folder = wish.folder / BASELINE
    remove_tree(folder)
    workflow = wish.baseline.removeprefix(AUTO).removeprefix(":") or context.workflow_path or context.workflow
    try:
        if not token:
            raise GitHubError(message("baseline-no-token"))
        with Client(context.api_url, token, timing=timing) as client:
            found = fetched(client, context, base, workflow, wish.archives, folder)
    except (Gone, NotAllowed) as refused:
        found = _none(base, message("baseline-refused", reason=refused.problems[0]))
    except GitHubError as error:
        found = _none(base, error.problems[0])
    write_note(folder, found)
    if found.problem is not None:
        annotate("warning", message("compare-baseline-absent", reason=found.problem), log)
    else:
        print(text(message("baseline-found", label=found.label)), file=log, flush=True)
    return str(folder)


def fetched(
    client: Client,
    context: RunContext,
    base: Base,
    workflow: str,
    archives: Sequence[re.Pattern[str]],
    folder: Path,
) -> Baseline:
    """The results of the last good run before head and base parted, unpacked into the folder; a note of why there are
    none where no such run has any that can be believed. Raises GitHubError."""
    start = parted_at(client, context, base)
    if start is None:
        return _none(base, message("baseline-unrelated", head=base.head_sha[:12], branch=base.branch))
    problem: Message | None = None
    for run in islice(good_runs(client, context, base, workflow, start), MOST_CANDIDATES):
        found = _tried(client, context, base, run, archives, folder)
        if found.problem is None:
            return replace(found, parted_at=start)
        problem = problem or found.problem
    absent = message("baseline-none", workflow=workflow, branch=base.branch, sha=start[:12])
    return _none(base, problem or absent)


def _tried(
    client: Client,
    context: RunContext,
    base: Base,
    run: FormerRun,
    archives: Iterable[re.Pattern[str]],
    folder: Path,
) -> Baseline:
    """One run's results, or why they cannot be used."""
    there = uploads(client, context, run)
    upload = chosen(there, archives)
    if upload is None:
        names = tuple(one.name for one in there) or ("-",)
        wanted = next((pattern.pattern for pattern in archives), "")
        return _none(
            base, message("baseline-no-archive", branch=base.branch, run=run.number, wanted=wanted, found=names)
        )
    path = f"/repos/{context.repository}/actions/artifacts/{upload.id}/zip"
    origin = Provenance(run.sha, str(run.id))
    try:
        content = client.download(path, limit_bytes=MOST_BYTES)
        with of_file(Path(upload.name)):
            sha256 = unpack_baseline(content, upload.sha256, origin, folder)
    except (Gone, StorageError) as error:
        return _none(base, message("baseline-unusable", run=run.number, reason=_without(error.problems[0], folder)))
    label = f"{base.branch} {run.sha[:7]} (run {run.number})"
    return Baseline(label, run.sha, str(run.id), sha256=sha256)


def chosen(there: Sequence[Upload], archives: Iterable[re.Pattern[str]]) -> Upload | None:
    """The archive of the latest attempt under the best name; None where none fits, or several jobs' do."""
    for pattern in archives:
        found = [(match, one) for one in there if (match := pattern.fullmatch(one.name))]
        kinds = {match["leg"] for match, _ in found if "leg" in pattern.groupindex}
        if found and len(kinds) <= 1:
            numbered = "attempt" in pattern.groupindex
            return max(found, key=lambda pair: (int(pair[0]["attempt"]) if numbered else 0, pair[1].id))[1]
    return None


def _none(base: Base, problem: Message) -> Baseline:
    return Baseline(base.branch, problem=problem)


def _without(problem: Message, folder: Path) -> Message:
    """A problem without the runner's folder, which is nobody's business on a pull request."""

    def shown(value: Param) -> Param:
        if isinstance(value, Message):
            return _without(value, folder)
        return value.replace(f"{folder}{os.sep}", "") if isinstance(value, str) else value

    return message(problem.code, **{name: shown(value) for name, value in problem.params})


def _read(environment: Mapping[str, str]) -> tuple[RunContext, Mapping[str, object]]:
    path = environment.get("GITHUB_EVENT_PATH", "")
    event = read_event(Path(path))
    return read_context(environment, event), event


def _in_repository(config: str, environment: Mapping[str, str]) -> str:
    """The path of the configuration in the repository; empty for the demo, and for one that lies outside of it, which
    no change of the repository alters."""
    if not config or _DEMO.fullmatch(config):
        return ""
    workspace = Path(environment.get("GITHUB_WORKSPACE") or ".").absolute()
    path = Path(os.path.normpath(workspace / config))
    return str(PurePosixPath(path.relative_to(workspace))) if path.is_relative_to(workspace) else ""


def _given(environment: Mapping[str, str], name: str) -> str:
    return environment.get(f"DRIFTGATE_{name.upper().replace('-', '_')}", "").strip()


if __name__ == "__main__":
    main()
