"""Whether a stage's artifact belongs to another build: its neighbours agree without it, or it is older than what it
would have been made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from driftgate.diagnosis.bench import INTEGER_FLOOR
from driftgate.diagnosis.residuals import widest
from driftgate.diagnosis.trials import SHARE
from driftgate.domain.chain import Link
from driftgate.domain.investigations import Explanation
from driftgate.sessions import Tensors

CODE = "stale-artifact"
#: How many times farther the odd one must be from both than they are from one another.
APART = 4.0
#: A file may be copied or unpacked this much before another one of its build.
LEAST_SECONDS = 60.0


def odd_one_out(link: Link, reference: Tensors, candidate: Tensors, behind: Tensors) -> Iterator[Explanation]:
    """The stages before and behind the candidate agree as two of one network do, and it agrees with neither."""
    common = [name for name in reference if name in candidate and name in behind]
    a, b, c = ({name: side[name] for name in common} for side in (reference, candidate, behind))
    if not common or any(a[name].shape != b[name].shape or a[name].shape != c[name].shape for name in common):
        return
    around, before, after = widest(a, c), widest(a, b), widest(c, b)
    if around <= INTEGER_FLOOR and min(before, after) > max(APART * around, INTEGER_FLOOR):
        facts = (
            ("the stages around it, from one another", around, SHARE),
            ("it, from the stage before", before, SHARE),
            ("it, from the stage behind", after, SHARE),
        )
        yield Explanation(CODE, True, facts, subjects=(link.candidate,))


def written_before(link: Link, reference: Path | None, candidate: Path | None) -> Iterator[Explanation]:
    """An .hbm that was written before the .bc beside it, of which it would have been compiled."""
    if reference is None or candidate is None or (reference.suffix, candidate.suffix) != (".bc", ".hbm"):
        return
    if reference.resolve().parent != candidate.resolve().parent:
        return
    seconds = reference.stat().st_mtime - candidate.stat().st_mtime
    if seconds > LEAST_SECONDS:
        facts = (("written before what it is made of, by", seconds, "s"),)
        yield Explanation(CODE, True, facts, subjects=(candidate.name, reference.name))
