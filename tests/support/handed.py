"""Bundles handed on: alone in an empty folder they must say what the check said."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from driftgate.domain.judgement import Judgement, Outcome
from driftgate.storage.bundle import BUNDLE, open_bundle
from driftgate.storage.document import read_results
from support.commandline import call

WORST_FIRST = (Outcome.FAILED, Outcome.ERROR, Outcome.PASSED)


def hand_on(out: Path, folder: Path) -> dict[str, Any]:
    """Move a copy of the bundle in `out` to an empty folder and demand the same findings and the same judgement of it;
    what `explain` says of it."""
    results = read_results(out)
    folder.mkdir()
    bundle = Path(shutil.copy(out / BUNDLE, folder / BUNDLE))
    told = call("explain", bundle, "--json")
    assert told.err == ""
    said: dict[str, Any] = told.json
    for judgement, one in zip(results.judgements or (), said["subjects"], strict=True):
        assert [entry["code"] for entry in one["findings"]] == first_findings(judgement)
    again = call("report", bundle, "--out", folder / "report")
    assert again.code == results.exit_code, again.out + again.err
    assert read_results(folder / "report").judgements == results.judgements
    with open_bundle(bundle) as opened:
        failed = {one.key for one in results.judgements or () if one.outcome is not Outcome.PASSED}
        assert {(link.subject, link.target) for link in opened.manifest.links} == failed
    return said


def first_findings(judgement: Judgement) -> list[str]:
    """The codes of the first link that has findings, those of the first failure first."""
    by_link: dict[str, list[str]] = {}
    order = [verdict.target for check in judgement.checks for verdict in check.verdicts]
    if judgement.first_failure is not None:
        order = [*(verdict.target for verdict in judgement.check(judgement.first_failure).verdicts), *order]
    for finding in judgement.findings:
        by_link.setdefault(finding.link, []).append(finding.code)
    return next((by_link[link] for link in order if link in by_link), [])
