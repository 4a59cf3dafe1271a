"""One generated instance, explained the way `driftgate explain` does it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TypeVar

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.diagnosis.engine import Diagnosis, diagnose
from driftgate.judgement.codes import CODES, Verdict
from driftgate.localisation.subject import Parts
from driftgate.sessions import Artifact
from driftgate.storage.evidence import read_evidence
from faultgen.catalogue import Instance
from faultgen.healthy import Pair

FIXED = "driftgate"

Given = TypeVar("Given")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said about one instance: codes best first, whether the first is confirmed, seconds of each step."""

    instance: Instance
    folder: Path
    verdict: str
    codes: tuple[str, ...]
    confirmed: bool
    planting: float
    explaining: float

    @property
    def is_right(self) -> bool:
        """Whether the first finding is the planted cause, or one as good."""
        return bool(self.codes) and self.codes[0] in (self.instance.planter.code, *self.instance.planter.also)


def commit() -> tuple[str, ...]:
    """The current commit; nothing outside of a repository."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return (done.stdout.strip()[:12],)


def explained(folder: Path) -> Diagnosis:
    """The diagnosis of a folder."""

    def parts(path: Path) -> Parts:
        return OnnxRuntimeBackend().take_apart(Artifact(path.stem, "onnxruntime", path, {}))

    return diagnose(read_evidence(folder), parts)


def answer(instance: Instance, root: Path) -> Answer:
    """Plant one instance below `root` and have it explained."""
    folder = root / instance.name.replace(":", "_")
    begun = perf_counter()
    instance.plant(folder)
    planted = perf_counter()
    found = explained(folder)
    return Answer(
        instance,
        folder,
        found.verdict.value,
        tuple(finding.code for finding in found.findings),
        bool(found.findings) and found.findings[0].confirmed,
        planted - begun,
        perf_counter() - planted,
    )


def blamed(pair: Pair, root: Path) -> tuple[str, ...]:
    """The codes of the findings that call a healthy pair faulty."""
    folder = root / pair.name.replace(":", "_")
    pair.plant(folder)
    found = explained(folder)
    return tuple(finding.code for finding in found.findings if CODES[finding.code].verdict is Verdict.FAIL)


def answers(instances: Sequence[Instance], root: Path, jobs: int) -> list[Answer]:
    """All instances in that many processes, in order."""
    return _each(partial(answer, root=root), instances, jobs)


def blamed_pairs(pairs: Sequence[Pair], root: Path, jobs: int) -> dict[str, tuple[str, ...]]:
    """The healthy pairs that are called faulty, and how."""
    found = zip(pairs, _each(partial(blamed, root=root), pairs, jobs), strict=True)
    return {pair.name: codes for pair, codes in found if codes}


def _each(work: Callable[[Given], Made], items: Sequence[Given], jobs: int) -> list[Made]:
    if jobs == 1:
        return [work(item) for item in items]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(work, items, chunksize=4))
