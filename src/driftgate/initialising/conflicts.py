"""Where the sources of a build contradict each other: its YAML, its log, the builds of other targets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import PurePath

from driftgate.domain.toolchain.common import InputContract
from driftgate.initialising.survey import Source, Subject
from driftgate.messages.message import Message, message
from driftgate.vendor.derived import Conflict, contract_conflicts

#: Fields of numbers, which one of the two may have rounded.
NUMBERS = ("mean", "scale", "std")
ROUNDED = 1e-5


def conflicts(subject: Subject) -> tuple[Message, ...]:
    """Every field that is told in two ways, with who tells what."""
    found: list[Message] = []
    for build in subject.builds:
        for one, other in combinations(build.sources, 2):
            found += _of_sources(one, other)
    first = [next((source for source in build.sources if source.inputs), None) for build in subject.builds]
    for one, other in combinations([source for source in first if source is not None], 2):
        found += _of_inputs(one, other)
    return tuple(dict.fromkeys(found))


def _of_sources(one: Source, other: Source) -> Iterator[Message]:
    yield from _of_inputs(one, other)
    if one.march and other.march and one.march != other.march:
        yield _said("march", one, one.march, other, other.march)
    ours, theirs = ([folder for _, folder in source.calibration] for source in (one, other))
    if ours and theirs and _names(ours) != _names(theirs):
        yield _said("cal_data_dir", one, " ".join(ours), other, " ".join(theirs))


def _of_inputs(one: Source, other: Source) -> Iterator[Message]:
    ours, theirs = ([contract.name for contract in source.inputs if contract.name] for source in (one, other))
    if ours and theirs and set(ours) != set(theirs):
        yield _said("input_name", one, " ".join(ours), other, " ".join(theirs))
    for conflict in contract_conflicts(one.inputs, other.inputs):
        if not _is_rounding(conflict, one.inputs, other.inputs):
            yield _said(f"{conflict.field} of {conflict.input}", one, conflict.found, other, conflict.other)


def _is_rounding(conflict: Conflict, ours: Sequence[InputContract], theirs: Sequence[InputContract]) -> bool:
    if conflict.field not in NUMBERS:
        return False
    a, b = (
        next(getattr(contract, conflict.field) for contract in told if contract.name == conflict.input)
        for told in (ours, theirs)
    )
    return len(a) == len(b) and all(math.isclose(x, y, rel_tol=ROUNDED) for x, y in zip(a, b, strict=True))


def _names(folders: Sequence[str]) -> list[str]:
    """Only the folders' own names: the log tells where they were, as a container saw them."""
    return [PurePath(folder).name for folder in folders]


def _said(what: str, one: Source, found: str, other: Source, said: str) -> Message:
    return message("init-conflict", what=what, source=one.name, found=found, other_source=other.name, other=said)
