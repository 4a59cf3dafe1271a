"""What check and demo share: capture every subject, judge, write the reports, show the table."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from driftgate import __version__
from driftgate.aside import Aside
from driftgate.boardcheck import board_checked
from driftgate.commands.bundles import NEVER, Failing, Ground, Wish, leave_bundle
from driftgate.commands.provenance import provenance, today
from driftgate.commands.speaking import (
    EXIT_ERROR,
    LogText,
    configured,
    hiding,
    log,
    progress,
    stdout,
    stopped_while_waiting,
)
from driftgate.commands.versions import base_configuration, held_against
from driftgate.comparing.history import continued
from driftgate.comparing.levels import levels
from driftgate.domain.chain import Link
from driftgate.domain.comparisons import Changed, PastRun
from driftgate.domain.facts import Facts
from driftgate.domain.investigations import Investigation
from driftgate.domain.judgement import Judgement, Policy
from driftgate.domain.pictures import Picture
from driftgate.domain.plan import Leg
from driftgate.domain.results import Results, Tool
from driftgate.escaping.commands import disarmed_json
from driftgate.escaping.terminal import inert
from driftgate.explaining import explain_link, first_failed
from driftgate.investigating import Effort, first_to_look_into, look_into, with_found, worst_samples
from driftgate.judgement.judge import judge
from driftgate.keeping import FOLDER as RECORDINGS
from driftgate.keeping import chosen, record
from driftgate.messages.message import message
from driftgate.messages.text import ENGLISH_LANGUAGE, in_language, spoken
from driftgate.picturing import pictures_of
from driftgate.pipeline import Breakable, Recorder, capture_together
from driftgate.plan import Job, prepare
from driftgate.recall import Recall
from driftgate.reporting.annotations import annotate, encoded
from driftgate.reporting.comment import CommentLinks, comment
from driftgate.reporting.junit import junit
from driftgate.reporting.markdown import summary
from driftgate.reporting.page import html_page
from driftgate.reporting.terminal import show
from driftgate.settings.load import Config, load
from driftgate.settings.ruling import ruled
from driftgate.storage.bundle import BUNDLE, forget_parts
from driftgate.storage.document import FACTS, RESULTS, encode_results
from driftgate.storage.folder import remove_tree, write_all
from driftgate.storage.history import HISTORY, encode_history
from driftgate.storage.planfile import ORIGIN, Provenance, write_origin
from driftgate.verifying import Verifier, second_opinion

TOOL = Tool("driftgate", __version__)
JUNIT, SUMMARY, PAGE, LOG_FILE = "junit.xml", "summary.md", "index.html", "driftgate.log"
#: What the action tells the runner, and what it may post: a token that can only read leaves the comment as a file.
ANNOTATIONS, COMMENT = "annotations.json", "comment.md"
OUTPUTS = (RESULTS, FACTS, JUNIT, SUMMARY, PAGE, ANNOTATIONS, COMMENT, LOG_FILE)
#: What of an earlier run must not be taken for this one's.
STALE = (*OUTPUTS, BUNDLE, ORIGIN, HISTORY)
#: The folder of the smallest part that shows the first divergence.
REPRO = "repro"
NOWHERE = CommentLinks()
#: What may be asked about a sample of a link.
Question = Callable[[Job, Link, Facts, str], Investigation | None]
NO_BUNDLE = Wish(when=NEVER)
NO_ORIGIN = Provenance()
NONE_ASIDE: Mapping[tuple[str, str], Aside] = {}


def check(
    config_path: Path,
    out: Path,
    *,
    subjects: Sequence[str] = (),
    policy: str | None = None,
    profile: str | None = None,
    as_json: bool = False,
    log_text: LogText,
    links: CommentLinks = NOWHERE,
    effort: Effort | None = None,
    recall: Recall | None = None,
    wish: Wish = NO_BUNDLE,
    baseline: Path | None = None,
    base_config: Path | None = None,
) -> int:
    """Run everything a configuration asks for and return the exit code; what an earlier run left in `out` must be
    gone already."""
    remove_tree(out / REPRO)
    remove_tree(out / RECORDINGS)
    forget_parts(out / BUNDLE)
    config = load(config_path)
    configured(config)
    jobs = prepare(config, subjects=subjects, profile=profile)
    ruling = ruled(config, base_configuration(base_config), policy, (job.plan.subject for job in jobs))
    policies = ruling.policies
    origin = provenance(os.environ)
    failing = Failing() if effort is None else Failing(effort.samples)
    with stopped_while_waiting() as breakable, private_folder(out, effort, wish) as repros:
        asides = {} if effort is None else {job.plan.key: effort.aside() for job in jobs}
        facts, interrupted = captured(jobs, breakable, asides, recall=recall)
        if recall is not None:
            recall.prune()
        if not interrupted:
            with breakable():
                judgements = judged(facts, policies)
                facts = recorded(jobs, facts, judgements, out)
                if effort is not None:
                    facts = investigated(jobs, facts, judgements, effort, repros, asides)
                    facts = explained(jobs, facts, judgements, effort, failing)
                    facts = cross_checked(jobs, facts, judgements)
                    facts = verified(jobs, facts, judgements, config)

        def pictures(results: Results) -> tuple[Picture, ...]:
            with breakable():
                return pictured(jobs, results, failing)

        done = deliver(
            facts,
            policies,
            out,
            as_json=as_json,
            log_text=log_text,
            interrupted=interrupted,
            config=config,
            links=links,
            pictures=no_pictures if interrupted else pictures,
            baseline=baseline,
            pending=ruling.pending,
            origin=origin,
        )
        if origin.sha:
            write_origin(out, origin)
        if not interrupted:
            with breakable():
                written = {} if repros is None else {job.plan.key: own_folder(repros, job, jobs) for job in jobs}
                leave_bundle(Ground(done.results, out, jobs, policies, failing, config, written), wish, quiet=as_json)
        return done.code


@contextmanager
def private_folder(out: Path, effort: Effort | None, wish: Wish) -> Iterator[Path | None]:
    """Where repros are written: beside the reports, or, where a part of the model must not be there, in a folder of
    our own for the bundle that stays on this machine; None where nobody wants one."""
    if effort is not None and effort.repro:
        yield out / REPRO
    elif effort is not None and wish.full is not None:
        with tempfile.TemporaryDirectory(prefix="driftgate-") as folder:
            yield Path(folder) / REPRO
    else:
        yield None


def captured(
    jobs: Sequence[Job],
    breakable: Breakable,
    asides: Mapping[tuple[str, str], Aside] = NONE_ASIDE,
    *,
    recorder: Recorder | None = None,
    recall: Recall | None = None,
) -> tuple[tuple[Facts, ...], bool]:
    """The facts of every leg of every job; True, and facts without runs, where it was stopped before their end.

    The `recorder` keeps what legs elsewhere need; `asides` takes outputs for an investigation, by the plan's key.
    Targets of one subject are run side by side.
    """
    found: dict[tuple[str, str], list[Facts]] = {}
    interrupted = False
    for together in _by_subject(jobs):
        for legs in zip(*(job.plan.legs for job in together), strict=True):
            if interrupted:
                captures = [Facts(job.plan) for job in together]
            else:
                work = [(job, leg, asides.get(job.plan.key)) for job, leg in zip(together, legs, strict=True)]
                captures, interrupted = _captured_together(work, breakable, recorder, recall)
            for job, facts in zip(together, captures, strict=True):
                found.setdefault(job.plan.key, []).append(facts)
    return tuple(facts for job in jobs for facts in found[job.plan.key]), interrupted


def _by_subject(jobs: Sequence[Job]) -> tuple[tuple[Job, ...], ...]:
    """The jobs in groups of one subject on its targets."""
    subjects: dict[str, list[Job]] = {}
    for job in jobs:
        subjects.setdefault(job.plan.subject, []).append(job)
    return tuple(map(tuple, subjects.values()))


def _captured_together(
    work: Sequence[tuple[Job, Leg, Aside | None]],
    breakable: Breakable,
    recorder: Recorder | None,
    recall: Recall | None,
) -> tuple[list[Facts], bool]:
    """The facts of one leg of each target, and whether one was interrupted."""
    for job, leg, _ in work:
        log(message("leg-started", leg=leg.id, stages=leg.stages, plan=job.plan.digest[:12]))
    with progress(message("progress-leg", leg=", ".join(leg.id for _, leg, _ in work))) as advance:
        got = capture_together(work, recorder=recorder, recall=recall, progress=advance, breakable=breakable)
    for capture in got:
        _log_runs(capture.facts)
    return [capture.facts for capture in got], any(capture.interrupted for capture in got)


def judged(facts: Sequence[Facts], policies: Mapping[str, Policy]) -> tuple[Judgement, ...]:
    """Every subject's facts, judged by its own policy."""
    return tuple(judge(one, policies[one.plan.subject]) for one in facts)


def own_folder(folder: Path, job: Job, jobs: Sequence[Job]) -> Path:
    """Where a job writes below a folder: of several subjects, and of several targets, each has its own."""
    if len(jobs) > 1:
        folder /= job.plan.subject
    return folder / job.plan.target if sum(other.plan.subject == job.plan.subject for other in jobs) > 1 else folder


def recorded(
    jobs: Sequence[Job], facts: Sequence[Facts], judgements: Sequence[Judgement], out: Path
) -> tuple[Facts, ...]:
    """The facts with recordings of each job's bad cases and worst flips, which lie below `out`."""
    found: list[Facts] = []
    for job, one, judgement in zip(jobs, facts, judgements, strict=True):
        samples = chosen(job, judgement) if not job.state else ()
        if samples:
            folder = own_folder(out / RECORDINGS, job, jobs)
            kept, problems = record(job, samples, folder)
            one = replace(one, recordings=(*one.recordings, *kept), problems=(*one.problems, *problems))
            log(message("recorded", samples=samples, count=len(kept)))
        found.append(one)
    return tuple(found)


def investigated(
    jobs: Sequence[Job],
    facts: Sequence[Facts],
    judgements: Sequence[Judgement],
    effort: Effort,
    repros: Path | None,
    asides: Mapping[tuple[str, str], Aside] = NONE_ASIDE,
) -> tuple[Facts, ...]:
    """The facts with what an investigation of each job's first failing link found, its repro below `repros`."""
    found: list[Facts] = []
    for job, one, judgement in zip(jobs, facts, judgements, strict=True):
        link = first_to_look_into(job, judgement)
        if link is None:
            found.append(one)
            continue
        samples = worst_samples(one, judgement, link, effort.samples)
        with progress(message("progress-nodes", link=link.name)) as advance:
            inquiry = look_into(job, link, samples, effort, aside=asides.get(job.plan.key), progress=advance)
        made = inquiry.found if repros is None else inquiry.write_repro(own_folder(repros, job, jobs))
        found.append(with_found(one, made))
        log(message("investigated", link=link.name, seconds=inquiry.found.seconds))
    return tuple(found)


def explained(
    jobs: Sequence[Job], facts: Sequence[Facts], judgements: Sequence[Judgement], effort: Effort, failing: Failing
) -> tuple[Facts, ...]:
    """The facts with what experiments on each job's first failing link say of its cause."""
    found: list[Facts] = []
    for job, one, judgement in zip(jobs, facts, judgements, strict=True):
        failure = failing.of(job, one, judgement) if effort.seconds > 0 else None
        if failure is None:
            found.append(one)
            continue
        name = failure.link.name
        with progress(message("progress-explain", link=name)):
            made = explain_link(job, failure, one, seconds=effort.seconds)
        found.append(with_found(one, made))
        log(message("explained", link=name, count=len(made.explanations)))
    return tuple(found)


def no_pictures(results: Results) -> tuple[Picture, ...]:
    """Of results whose samples are not here."""
    return ()


def pictured(jobs: Sequence[Job], results: Results, failing: Failing) -> tuple[Picture, ...]:
    """Pictures of the samples that show each job's first failing link, where they are images."""
    found: list[Picture] = []
    for job, one, judgement in zip(jobs, results.facts, results.judgements or (), strict=True):
        failure = failing.of(job, one, judgement)
        found += () if failure is None else pictures_of(job, failure, one)
    return tuple(found)


def cross_checked(jobs: Sequence[Job], facts: Sequence[Facts], judgements: Sequence[Judgement]) -> tuple[Facts, ...]:
    """The facts with what tells input, board and compiler apart, where a link to a board fails first."""
    return _of_first_failed(jobs, facts, judgements, board_checked, "progress-board")


def verified(
    jobs: Sequence[Job], facts: Sequence[Facts], judgements: Sequence[Judgement], config: Config
) -> tuple[Facts, ...]:
    """The facts with what the vendor's hb_verifier says of each job's first failing link, where it is configured."""
    settings = config.settings.defaults.verifier
    if settings is None:
        return tuple(facts)
    verifier = Verifier(settings.command, settings.digits, settings.timeout)
    ask = partial(second_opinion, verifier=verifier)
    return _of_first_failed(jobs, facts, judgements, ask, "progress-verifier")


def _of_first_failed(
    jobs: Sequence[Job], facts: Sequence[Facts], judgements: Sequence[Judgement], ask: Question, title: str
) -> tuple[Facts, ...]:
    """The facts with what a question about the worst sample of each job's first failing link adds, if anything."""
    found: list[Facts] = []
    for job, one, judgement in zip(jobs, facts, judgements, strict=True):
        link = first_failed(job, judgement)
        samples = () if link is None else worst_samples(one, judgement, link, 1)
        made = None
        if link is not None and samples:
            with progress(message(title, link=link.name)):
                made = ask(job, link, one, samples[0])
        found.append(one if made is None else with_found(one, made))
    return tuple(found)


def _log_runs(facts: Facts) -> None:
    for run in facts.runs:
        log(
            message(
                "leg-run",
                stage=run.stage,
                outcome=run.outcome.value,
                samples=run.samples_done,
                seconds=run.seconds,
            )
        )
        if run.reason is not None:
            log(run.reason)


@dataclass(frozen=True, slots=True)
class Delivered:
    """The results as they were written, and the exit code."""

    results: Results
    code: int


def deliver(
    facts: Sequence[Facts],
    policies: Mapping[str, Policy],
    out: Path | None,
    *,
    as_json: bool,
    log_text: LogText,
    interrupted: bool = False,
    config: Config | None = None,
    links: CommentLinks = NOWHERE,
    pictures: Callable[[Results], Sequence[Picture]] = no_pictures,
    baseline: Path | None = None,
    pending: tuple[Changed, ...] = (),
    origin: Provenance = NO_ORIGIN,
) -> Delivered:
    """Judge, write every report together where there is a folder for them, show the table. Of what tools and machines
    said, secrets and addresses are in none of them."""
    masked = tuple(map(hiding().facts, facts))
    results = Results(replace(TOOL, language=spoken()), masked, judged(masked, policies), pending=pending)
    is_kept = bool(origin.sha) or baseline is not None
    now = tuple(levels(results)) if is_kept else ()
    past = held_against(baseline, results, now, commit=origin.sha, policies=policies)
    results = replace(results, comparison=past.comparison)
    files = encode_results(results)
    if is_kept:
        run = PastRun(origin.sha, origin.run, today())
        files[HISTORY] = encode_history(continued(past.history, run, now))
    log(message("outcome", outcome=results.outcome.value))
    if out is not None:
        file, line = (str(config.lines.path), config.lines.of) if config is not None else (None, None)
        with in_language(ENGLISH_LANGUAGE):
            machines = {JUNIT: junit(results)}
        reports = {
            **machines,
            SUMMARY: summary(results).encode("utf-8", "backslashreplace"),
            ANNOTATIONS: encoded(annotate(results, file=file, line=line)),
            PAGE: html_page(results, pictures=pictures(results)),
            COMMENT: comment(results, links=links).encode("utf-8", "backslashreplace"),
        }
        write_all(out, {**files, **reports, LOG_FILE: log_text.content()})
    if as_json:
        document = json.loads(files[RESULTS])
        shown = disarmed_json(json.dumps(document["judgement"], ensure_ascii=False, indent=1))
        stdout().print(shown, markup=False)
    else:
        console = stdout()
        show(results, console)
        if out is not None:
            console.print(inert(str(out / SUMMARY)), markup=False, style="dim")
    return Delivered(results, EXIT_ERROR if interrupted else results.exit_code)


def write_shard(facts: Sequence[Facts], out: Path, log_text: LogText) -> None:
    """Facts without judgement, for `report` to merge."""
    masked = tuple(map(hiding().facts, facts))
    write_all(out, {**encode_results(Results(TOOL, masked)), LOG_FILE: log_text.content()})
