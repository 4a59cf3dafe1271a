"""`driftgate replay`: run the failing link of a bundle again, and say whether it still fails."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import click

from driftgate.commands.believing import of_file
from driftgate.commands.speaking import EXIT_ERROR, LogText, configured, guarded, hiding, say, stdout, verbose_option
from driftgate.domain.bundles import BundledLink, BundleManifest, Side
from driftgate.domain.judgement import Outcome, Policy
from driftgate.domain.results import Results
from driftgate.errors import UsageError
from driftgate.escaping.commands import disarmed_json
from driftgate.escaping.terminal import LIMIT, inert
from driftgate.evidencing import LINK_FOLDER, RECORDED
from driftgate.messages.message import Message, message
from driftgate.messages.text import ENGLISH_LANGUAGE, in_language, number, text
from driftgate.plan import Job, prepare
from driftgate.replaying import Replay, artifact_in, artifact_of, replay_link
from driftgate.sessions import Artifact
from driftgate.settings.artifacts import BY_SUFFIX
from driftgate.settings.load import Config, load
from driftgate.storage.bundle import unpacked_bundle
from driftgate.storage.document import read_results
from driftgate.storage.evidence import read_evidence
from driftgate.storage.hashing import file_digest

SAID = {Outcome.FAILED: "replay-still", Outcome.PASSED: "replay-passes", Outcome.ERROR: "replay-unknown"}
WORDS = {Outcome.FAILED: "still-fails", Outcome.PASSED: "passes", Outcome.ERROR: "unknown"}
#: Backends that need nothing but the file.
ALONE = ("onnxruntime",)


@click.command("replay")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option(
    "-c", "--config", type=click.Path(path_type=Path), help="Run the artifacts of this configuration, as they are now."
)
@click.option(
    "--artifacts",
    type=click.Path(path_type=Path),
    help="A folder in which artifacts that the bundle only names are looked for, by their SHA-256.",
)
@click.option("--subject", "subjects", multiple=True, help="Only this subject; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
@verbose_option
@guarded
def command(
    bundle: Path,
    config: Path | None,
    artifacts: Path | None,
    subjects: tuple[str, ...],
    as_json: bool,
    verbose: bool,
) -> int:
    """Run the failing link of BUNDLE again on the samples in it, and say whether it still fails.

    A side that is neither in the bundle nor found otherwise stands as it was recorded. Exit code: 1 it still fails,
    0 it does no longer, 2 that cannot be told.
    """
    LogText(verbose=verbose)
    loaded = None if config is None else load(config)
    if loaded is not None:
        configured(loaded)
    if artifacts is not None and not artifacts.is_dir():
        raise UsageError(message("paths-absent", paths=(str(artifacts),)))
    with unpacked_bundle(bundle) as (manifest, folder):
        chosen = [
            link
            for link in manifest.links
            if link.samples and link.sides and (not subjects or link.subject in subjects)
        ]
        if not chosen:
            raise UsageError(message("replay-nothing", path=str(bundle)))
        with of_file(bundle):
            results = read_results(folder)
            found = [_replayed(link, manifest, results, folder, loaded, artifacts) for link in chosen]
    found = [hiding().value(one) for one in found]
    if as_json:
        document = {"outcome": WORDS[_worst(found)], "links": [_entry(one) for one in found]}
        click.echo(disarmed_json(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)))
    else:
        for one in found:
            _show(one)
    return {Outcome.FAILED: 1, Outcome.PASSED: 0}.get(_worst(found), EXIT_ERROR)


def _worst(found: list[Replay]) -> Outcome:
    outcomes = {one.outcome for one in found}
    return next(one for one in (Outcome.FAILED, Outcome.ERROR, Outcome.PASSED) if one in outcomes)


def _replayed(
    link: BundledLink,
    manifest: BundleManifest,
    results: Results,
    folder: Path,
    config: Config | None,
    artifacts: Path | None,
) -> Replay:
    facts = next((one for one in results.facts if one.plan.key == (link.subject, link.target)), None)
    policy = next((one.policy for one in manifest.policies if one.subject == link.subject), Policy())
    if facts is None:
        raise UsageError(message("replay-nothing", path=link.folder))
    evidence = read_evidence(folder / link.folder / LINK_FOLDER)
    source = partial(_source, folder=folder, job=_job(link, config), artifacts=artifacts)
    return replay_link(link, evidence, facts, policy, source)


def _job(link: BundledLink, config: Config | None) -> Job | None:
    """The job of the configuration for this subject and target; None without one. Raises UsageError where it has none
    such."""
    if config is None:
        return None
    jobs = prepare(config, subjects=(link.subject,))
    found = next((job for job in jobs if job.plan.target == link.target), None)
    if found is None:
        raise UsageError(message("replay-no-target", subject=link.subject, target=link.target))
    return found


def _source(side: Side, *, folder: Path, job: Job | None, artifacts: Path | None) -> Artifact | Message:
    """What runs a side now: the configuration's artifact, else the bundle's, else one that is found by its hash."""
    if job is not None and side.stage in job.plan.stages:
        return job.artifact(side.stage)
    if side.backend == RECORDED:
        return message("replay-is-recording")
    held = artifact_in(side, folder)
    if held is None and artifacts is not None and side.file is not None:
        path = _found(side, artifacts)
        held = None if path is None else artifact_of(side, path)
    if held is None:
        return message("replay-no-artifact")
    return held if held.backend in ALONE else message("replay-no-backend", backend=side.backend)


def _found(side: Side, folder: Path) -> Path | None:
    """The file of this SHA-256 below a folder."""
    endings = {ending for ending, kind in BY_SUFFIX.items() if kind == side.backend}
    for path in sorted(folder.rglob("*")):
        try:
            if path.suffix.lower() in endings and path.is_file() and file_digest(path) == side.digest:
                return path
        except OSError:
            continue
    return None


@in_language(ENGLISH_LANGUAGE)
def _entry(one: Replay) -> dict[str, Any]:
    return {
        "subject": one.subject,
        "target": one.target,
        "link": one.link,
        "outcome": WORDS[one.outcome],
        "notes": [text(note) for note in one.notes],
        "numbers": [
            {
                "output": line.output,
                "criterion": line.criterion,
                "before": _plain(line.before),
                "after": _plain(line.after),
                "limit": _plain(line.limit),
            }
            for line in one.lines
        ],
    }


def _plain(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)


def _show(one: Replay) -> None:
    console = stdout()
    told = {"subject": inert(one.subject, LIMIT), "target": inert(one.target, LIMIT), "link": one.link}
    console.print(say(message(SAID[one.outcome], **told)), markup=False)
    for line in one.lines:
        shown = {
            name: "-" if value is None else number(value)
            for name, value in (("before", line.before), ("after", line.after), ("limit", line.limit))
        }
        title = text(message(f"criterion-{line.criterion}"))
        said = message("replay-line", output=inert(line.output, LIMIT), criterion=title, **shown)
        console.print(f"  {say(said)}", markup=False)
    for note in one.notes:
        console.print(f"  {say(note)}", markup=False)
