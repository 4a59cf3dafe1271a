"""`driftgate explain`: why the two sides of an evidence folder differ."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import driftgate.messages.terms as terms
from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.commands.believing import of_file
from driftgate.commands.speaking import EXIT_ERROR, LogText, complain, guarded, log, say, stdout, verbose_option
from driftgate.diagnosis.bench import SECONDS
from driftgate.diagnosis.engine import Diagnosis, diagnose
from driftgate.domain.bundles import BundleManifest
from driftgate.domain.judgement import Finding, Judgement, Outcome, Policy
from driftgate.domain.results import Results
from driftgate.escaping.commands import disarmed_json
from driftgate.escaping.terminal import LIMIT, inert
from driftgate.judgement.codes import CODES, Verdict
from driftgate.judgement.judge import judge
from driftgate.localisation.subject import Parts
from driftgate.messages.message import Message, message
from driftgate.messages.text import ENGLISH_LANGUAGE, in_language, number, text
from driftgate.sessions import Artifact
from driftgate.storage.bundle import looks_like_bundle, unpacked_bundle
from driftgate.storage.document import RESULTS, read_results
from driftgate.storage.evidence import read_evidence

EXITS = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.ERROR: EXIT_ERROR}
OUTCOMES = {
    Outcome.PASSED: Verdict.PASS,
    Outcome.FAILED: Verdict.FAIL,
    Outcome.ERROR: Verdict.ERROR,
    Outcome.SKIPPED: Verdict.ERROR,
}
WORST_FIRST = (Verdict.FAIL, Verdict.ERROR, Verdict.PASS)
SHOWN = 12  # numbers of one finding


@click.command("explain")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print verdict and findings as JSON.")
@click.option(
    "--seconds", type=click.FloatRange(min=0.0), default=SECONDS, show_default=True, help="Time for experiments."
)
@verbose_option
@guarded
def command(folder: Path, as_json: bool, seconds: float, verbose: bool) -> int:
    """Say why the candidate in FOLDER differs from its reference, best explanation first.

    FOLDER has what was recorded of one link: inputs, outputs, layers, models, what the board told. Every part is
    optional. The folder that `check` wrote does as well, and so does a bundle.zip: then the findings of its results are
    shown.
    """
    LogText(verbose=verbose)
    if looks_like_bundle(folder):
        with unpacked_bundle(folder) as (manifest, unpacked), of_file(folder):
            return _told(_judged_again(read_results(unpacked), manifest, folder), as_json=as_json)
    if (folder / RESULTS).is_file():
        with of_file(folder):
            return _told(read_results(folder), as_json=as_json)
    evidence = read_evidence(folder)
    found = diagnose(evidence, _parts, seconds=seconds)
    inferred = () if evidence.link.candidate else (message("explain-inferred"),)
    for note in (*found.notes, *inferred):
        log(note)
    if as_json:
        click.echo(disarmed_json(json.dumps(_document(found), indent=1, ensure_ascii=False, allow_nan=False)))
    else:
        _show(found, (*found.notes, *inferred))
    return EXITS[found.verdict]


def _judged_again(results: Results, manifest: BundleManifest, path: Path) -> Results:
    """A bundle's facts, judged by the policies in it; that this gives what stands there is told where it does not."""
    policies = {one.subject: one.policy for one in manifest.policies}
    judged = tuple(judge(one, policies.get(one.plan.subject, Policy())) for one in results.facts)
    if results.judgements is not None and judged != results.judgements:
        complain(message("bundle-judged-other", path=str(path)))
    return replace(results, judgements=judged)


def _told(results: Results, *, as_json: bool) -> int:
    """What a check has found out already, of all subjects."""
    facts = {one.plan.key: one for one in results.facts}
    if not results.facts:
        raise ValueError("no subject")  # told by whoever read the file
    judged = results.judgements or tuple(judge(one, Policy()) for one in results.facts)
    found = tuple(
        Diagnosis(
            verdict=_verdict(judgement),
            explanations=(),
            findings=_shown(judgement),
            ruled_out=tuple(c for i in facts[judgement.key].investigations for c in i.ruled_out),
            notes=tuple(note for i in facts[judgement.key].investigations for note in i.notes),
            residual=math.nan,
            runs=0,
            compared=judgement.outcome is not Outcome.ERROR,
        )
        for judgement in judged
    )
    worst = next(one for verdict in WORST_FIRST for one in found if one.verdict is verdict)
    if as_json:
        document = {**_document(worst), "subjects": [_document(one) for one in found]}
        click.echo(disarmed_json(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)))
    else:
        for judgement, one in zip(judged, found, strict=True):
            stdout().print(f"{inert(judgement.subject, LIMIT)} {inert(judgement.target, LIMIT)}", markup=False)
            _show(one, one.notes)
    return EXITS[worst.verdict]


def _shown(judgement: Judgement) -> tuple[Finding, ...]:
    """The findings of the first link that has any, those of the first failure before others."""
    links = dict.fromkeys(
        verdict.target
        for check in sorted(judgement.checks, key=lambda check: check.slug != judgement.first_failure)
        for verdict in check.verdicts
    )
    by_link = ([one for one in judgement.findings if one.link == link] for link in links)
    return tuple(next((found for found in by_link if found), ()))


def _verdict(judgement: Judgement) -> Verdict:
    """That of the first confirmed finding, else of the outcome."""
    first = next((one for one in _shown(judgement) if one.confirmed and one.code in CODES), None)
    return CODES[first.code].verdict if first is not None else OUTCOMES[judgement.outcome]


def _parts(path: Path) -> Parts:
    return OnnxRuntimeBackend().take_apart(Artifact(path.stem, "onnxruntime", path, {}))


@in_language(ENGLISH_LANGUAGE)
def _document(found: Diagnosis) -> dict[str, Any]:
    return {
        "verdict": found.verdict.value,
        "findings": [_entry(finding) for finding in found.findings],
        "ruled_out": list(found.ruled_out),
        "notes": [_clean(text(note)) for note in found.notes],
    }


def _entry(finding: Finding) -> dict[str, Any]:
    code = CODES[finding.code]
    return {
        "code": finding.code,
        "confirmed": finding.confirmed,
        "verdict": code.verdict.value,
        "segment": code.segment.value,
        "cause": text(code.cause),
        "subjects": [_clean(subject) for subject in finding.subjects],
        "evidence": [
            {"name": _clean(name), "value": value if math.isfinite(value) else str(value), "unit": unit}
            for name, value, unit in finding.evidence
        ],
        "next": text(finding.next or code.next),
        "who": code.who.value,
        "untouched": None if code.untouched is None else text(code.untouched),
    }


def _clean(told: str) -> str:
    """Text that UTF-8 can hold."""
    return told.encode("utf-8", "backslashreplace").decode("utf-8")


def _show(found: Diagnosis, notes: tuple[Message, ...]) -> None:
    console = stdout()

    def line(said: str) -> None:
        console.print(said, markup=False)

    if not found.findings:
        line(say(_nothing(found)))
    for place, finding in enumerate(found.findings):
        code = CODES[finding.code]
        sure = say(message("explain-confirmed" if finding.confirmed else "explain-suspected"))
        if place:
            line("")
        line(f"{code.verdict.value} {finding.code} ({sure})")
        line(f"  {say(code.cause)}")
        if finding.subjects:
            shown = tuple(inert(subject, LIMIT) for subject in finding.subjects)
            line(f"  {say(message('explain-about', subjects=shown))}")
        for name, value, unit in finding.evidence[:SHOWN]:
            of = terms.unit(unit)
            line(f"  {say(terms.name(name))}: {number(value)}{'' if of is None else f' {say(of)}'}")
        line(f"  {say(message('explain-next', act=finding.next or code.next))}")
        line(f"  {say(code.actor)}")
        if code.untouched is not None:
            line(f"  {say(code.untouched)}")
    if found.ruled_out and (not found.findings or not found.findings[0].confirmed):
        line(say(message("explain-ruled-out", codes=found.ruled_out)))
    for note in notes:
        line(say(note))


def _nothing(found: Diagnosis) -> Message:
    if found.verdict is Verdict.ERROR:
        return message("explain-nothing-compared")
    if math.isnan(found.residual):
        return message("explain-none") if found.verdict is Verdict.FAIL else message("explain-passed")
    if found.verdict is Verdict.PASS:
        return message("explain-equal", residual=found.residual)
    if not found.compared:
        return message("explain-unloaded")
    return message("explain-nothing", residual=found.residual)
