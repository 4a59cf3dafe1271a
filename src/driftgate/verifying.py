"""The vendor's hb_verifier as a second opinion on a link: run in a private folder, its sentence and tables read."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from driftgate.backends.registry import backend
from driftgate.domain.chain import Link
from driftgate.domain.facts import Facts
from driftgate.domain.investigations import Investigation, VendorNode, VendorTable
from driftgate.domain.toolchain.comparisons import ConsistencyReport, CosineReport
from driftgate.errors import BackendError, DriftgateError
from driftgate.investigating import found_of
from driftgate.messages.message import Message, message
from driftgate.numerics.alignment import equal
from driftgate.pipeline import stage_feeds
from driftgate.plan import Job
from driftgate.programs import printed
from driftgate.sessions import Tensors
from driftgate.vendor.verifier import parse_verifier

#: Pairs that the tool compares, by the endings of the files (toolchain facts §1.2).
PAIRS = frozenset({(".onnx", ".onnx"), (".onnx", ".bc"), (".bc", ".bc"), (".bc", ".hbm"), (".hbm", ".hbm")})
LOG = "hb_verifier.log"
COLUMN = "CosineSimilarity"


@dataclass(frozen=True, slots=True)
class Verifier:
    """How the tool is started, how many decimals must agree, and how long it may take."""

    command: tuple[str, ...]
    digits: int = 5
    seconds: float = 1800.0


def second_opinion(job: Job, link: Link, facts: Facts, sample: str, verifier: Verifier) -> Investigation | None:
    """The link's investigation with what the tool says of one sample; None where it does not compare such files.

    Whatever goes wrong is a note of the investigation, which names the tool.
    """
    pair = [job.artifact(stage) for stage in (link.reference, link.candidate)]
    files = [artifact.path for artifact in pair if artifact.path is not None and artifact.path.is_file()]
    if len(files) != len(pair) or tuple(file.suffix for file in files) not in PAIRS:
        return None
    found = found_of(facts, link)
    try:
        feeds = []
        for artifact in pair:
            with backend(artifact.backend).open(artifact) as session:
                feeds.append(stage_feeds(job, artifact, session)(sample))
        report = run_verifier(files, feeds, verifier)
    except DriftgateError as error:
        return replace(found, notes=(*found.notes, *error.problems))
    table = _table(report) if isinstance(report, CosineReport) and not found.nodes else found.vendor
    return replace(found, vendor=table, notes=(*found.notes, _said(report)))


def run_verifier(
    files: Sequence[Path], feeds: Sequence[Tensors], verifier: Verifier
) -> CosineReport | ConsistencyReport:
    """What the tool says of two files on one sample; the same feeds are given once. Raises BackendError where it is
    absent, hangs or dies without a word, ArtifactError for output that cannot be understood."""
    with tempfile.TemporaryDirectory(prefix="driftgate-verifier-") as name:
        folder = Path(name)
        sets = [feeds[0]] if _same(feeds[0], feeds[1]) else list(feeds)
        given = [("-i", ",".join(_written(folder / str(number), one))) for number, one in enumerate(sets)]
        board = ("--ip", "None,None") if files[-1].suffix == ".hbm" else ()
        command = (
            *verifier.command,
            *("-m", ",".join(str(file.absolute()) for file in files)),
            *(word for pair in given for word in pair),
            *("-c", str(verifier.digits)),
            *board,
        )
        printed = _run(command, folder, verifier)
        log = folder / LOG
        written = log.read_text("utf-8", "replace") if log.is_file() else ""
    return parse_verifier(printed if printed.strip() else written, name=" ".join(verifier.command))


def _written(folder: Path, feeds: Tensors) -> list[str]:
    """Feeds as files, in the order of the inputs."""
    folder.mkdir()
    paths = []
    for number, value in enumerate(feeds.values()):
        path = folder / f"{number}.npy"
        np.save(path, value, allow_pickle=False)
        paths.append(str(path))
    return paths


def _run(command: Sequence[str], folder: Path, verifier: Verifier) -> str:
    tool = " ".join(verifier.command)
    try:
        said, code = printed(command, folder=folder, seconds=verifier.seconds)
    except OSError as error:
        raise BackendError(message("verifier-absent", tool=tool, reason=error.strerror or str(error))) from error
    except subprocess.TimeoutExpired:
        raise BackendError(message("verifier-hangs", tool=tool, seconds=verifier.seconds)) from None
    if code and not said.strip():
        raise BackendError(message("verifier-died", tool=tool, exit_code=code))
    return said


def _same(a: Tensors, b: Tensors) -> bool:
    values_a, values_b = list(a.values()), list(b.values())
    return len(values_a) == len(values_b) and all(map(equal, values_a, values_b))


def _table(report: CosineReport) -> VendorTable:
    rows = tuple(VendorNode(row.node, row.cosine, row.tensor) for row in report.rows)
    return VendorTable("hb_verifier", COLUMN, rows, report.unread)


def _said(report: CosineReport | ConsistencyReport) -> Message:
    version: Mapping[str, str] = {"version": report.versions.tool or "?"}
    if isinstance(report, CosineReport):
        return message("verifier-cosines", count=len(report.rows), **version)
    code = "verifier-consistent" if report.is_consistent else "verifier-inconsistent"
    return message(code, outputs=tuple(row.output for row in report.rows if not row.equal) or ("-",), **version)
