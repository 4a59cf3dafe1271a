"""What check and demo share: capture every subject, judge, write the reports, show the table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from driftgate import __version__
from driftgate.commands.speaking import EXIT_ERROR, LogText, log, progress, stdout, stopped_by_signals
from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Policy
from driftgate.domain.results import Results, Tool
from driftgate.judgement.judge import judge
from driftgate.messages.message import message
from driftgate.pipeline import capture
from driftgate.plan import Job, prepare
from driftgate.reporting.junit import junit
from driftgate.reporting.markdown import summary
from driftgate.reporting.terminal import show
from driftgate.settings.load import load
from driftgate.storage.document import FACTS, RESULTS, encode_results
from driftgate.storage.folder import remove_all, write_all

TOOL = Tool("driftgate", __version__)
JUNIT, SUMMARY, LOG_FILE = "junit.xml", "summary.md", "driftgate.log"
OUTPUTS = (RESULTS, FACTS, JUNIT, SUMMARY, LOG_FILE)


def check(
    config_path: Path,
    out: Path,
    *,
    subjects: Sequence[str] = (),
    policy: str | None = None,
    profile: str | None = None,
    as_json: bool = False,
    log_text: LogText,
) -> int:
    """Run everything a configuration asks for and return the exit code."""
    remove_all(out, OUTPUTS)
    config = load(config_path)
    jobs = prepare(config, subjects=subjects, profile=profile)
    policies = {job.plan.subject: config.policy(policy, job.plan.subject) for job in jobs}
    facts, interrupted = captured(jobs)
    return deliver(facts, policies, out, as_json=as_json, log_text=log_text, interrupted=interrupted)


def captured(jobs: Sequence[Job]) -> tuple[tuple[Facts, ...], bool]:
    """The facts of every leg of every job; fewer, and True, where it was stopped."""
    found: list[Facts] = []
    with stopped_by_signals():
        for job in jobs:
            for leg in job.plan.legs:
                log(message("leg-started", leg=leg.id, stages=leg.stages, plan=job.plan.digest[:12]))
                with progress(message("progress-leg", leg=leg.id)) as advance:
                    got = capture(job, leg, progress=advance)
                found.append(got.facts)
                for run in got.facts.runs:
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
                if got.interrupted:
                    return tuple(found), True
    return tuple(found), False


def deliver(
    facts: Sequence[Facts],
    policies: Mapping[str, Policy],
    out: Path,
    *,
    as_json: bool,
    log_text: LogText,
    interrupted: bool = False,
) -> int:
    """Judge, write every report together, show the table; the exit code."""
    judgements = tuple(judge(one, policies[one.plan.subject]) for one in facts)
    results = Results(TOOL, tuple(facts), judgements)
    files = encode_results(results)
    log(message("outcome", outcome=results.outcome.value))
    write_all(
        out,
        {
            **files,
            JUNIT: junit(results),
            SUMMARY: summary(results).encode("utf-8", "backslashreplace"),
            LOG_FILE: log_text.content(),
        },
    )
    if as_json:
        document = json.loads(files[RESULTS])
        stdout().print(json.dumps(document["judgement"], ensure_ascii=False, indent=1), markup=False)
    else:
        console = stdout()
        show(results, console)
        console.print(f"{out / SUMMARY}", markup=False, style="dim")
    return EXIT_ERROR if interrupted else results.exit_code


def write_shard(facts: Sequence[Facts], out: Path, log_text: LogText) -> None:
    """Facts without judgement, for `report` to merge."""
    write_all(out, {**encode_results(Results(TOOL, tuple(facts))), LOG_FILE: log_text.content()})
