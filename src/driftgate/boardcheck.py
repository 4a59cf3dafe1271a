"""Where a board does not give what the .bc gives: is it the input, the board, or the compiler?

The worst sample is run with the inputs kept as the board saw them, replayed through the .bc where they are others, and
run by hbm_infer as well where that is there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driftgate.backends.board.session import BoardSession
from driftgate.backends.registry import backend
from driftgate.diagnosis.trials import SHARE
from driftgate.domain.chain import Link
from driftgate.domain.facts import Facts
from driftgate.domain.investigations import Explanation, Investigation
from driftgate.domain.runs import BOARD, INFER
from driftgate.domain.tensors import Signature
from driftgate.errors import DriftgateError
from driftgate.investigating import found_of
from driftgate.messages.message import Message, message
from driftgate.numerics.alignment import dequantised, same_shape
from driftgate.pipeline import stage_feeds
from driftgate.plan import Job
from driftgate.sessions import Artifact, Session, Tensor, Tensors

#: What compiled stages may differ by (vendor rules §2); and what six printed digits of a scale hide, of the largest.
DECIMALS, PRINTED = 1e-5, 6e-6


def board_checked(job: Job, link: Link, facts: Facts, sample: str) -> Investigation | None:
    """The link's investigation with what tells input, board and compiler apart; None where no board is in it.

    What cannot be run is a note.
    """
    artifact = job.artifact(link.candidate)
    if artifact.backend != BOARD:
        return None
    found = found_of(facts, link)
    try:
        explanations, notes = _looked_into(job, job.artifact(link.reference), artifact, sample)
    except DriftgateError as error:
        return replace(found, notes=(*found.notes, *error.problems))
    return replace(
        found, explanations=(*found.explanations, *explanations), notes=(*found.notes, *notes), runs=found.runs + 2
    )


def _looked_into(
    job: Job, reference: Artifact, artifact: Artifact, sample: str
) -> tuple[tuple[Explanation, ...], tuple[Message, ...]]:
    keeping = replace(artifact, options={**artifact.options, "keeps_inputs": True})
    with backend(BOARD).open(keeping) as session:
        if not isinstance(session, BoardSession):
            return (), ()
        feeds = stage_feeds(job, artifact, session)(sample)
        board = numbers(session.infer(feeds, sample=sample), session.signature)
        sent, seen = session.fitted(feeds), session.seen(sample)
        other = tuple(name for name, value in seen.items() if name in sent and not np.array_equal(value, sent[name]))
        with backend(reference.backend).open(reference) as mine:
            expected = numbers(mine.infer(stage_feeds(job, reference, mine)(sample), sample=sample), mine.signature)
            replayed = _replayed(mine, seen, sample) if other else None
        if other:
            return _other_inputs(other, sent, seen, replayed, board), ()
        note = message("board-check-inputs-same") if seen else message("board-check-inputs-unseen")
        session.hold()
        return (), (note, _by_infer(artifact, feeds, sample, board, expected))


def _other_inputs(
    names: tuple[str, ...], sent: Tensors, seen: Tensors, replayed: Tensors | None, board: Tensors
) -> tuple[Explanation, ...]:
    """The board saw other inputs than it was given; that these explain its outputs is tried on the .bc."""
    shares = tuple(
        (f"numbers of {name} that differ", float(np.mean(seen[name] != sent[name])), SHARE) for name in names
    )
    explains = replayed is not None and agree(replayed, board)
    told = ("the .bc gives the board's outputs for what the board saw", float(explains), "")
    return (Explanation("input-mismatch", explains, (*shares, told), subjects=names),)


def _replayed(session: Session, seen: Tensors, sample: str) -> Tensors | None:
    """What the reference gives for what the board saw; None where it does not take that."""
    signature = session.signature
    try:
        return numbers(session.infer(dict(seen), sample=sample), signature)
    except DriftgateError:
        return None


def _by_infer(artifact: Artifact, feeds: Tensors, sample: str, board: Tensors, expected: Tensors) -> Message:
    """What hbm_infer says of the same sample on the same board."""
    other = _infer_of(artifact)
    if other is None:
        return message("board-check-no-infer")
    try:
        with backend(INFER).open(other) as session:
            found = numbers(session.infer(feeds, sample=sample), session.signature)
    except DriftgateError as error:
        return message("board-check-infer-failed", reason=error.problems[0])
    if agree(found, board):
        return message("board-check-compiler")
    return message("board-check-board" if agree(found, expected) else "board-check-unclear")


def _infer_of(artifact: Artifact) -> Artifact | None:
    """The same .hbm on the same boards, run by hbm_infer; None where no interpreter has it."""
    python = artifact.options.get("vendor_python")
    if python is None:
        return None
    kept = {name: artifact.options[name] for name in ("boards", "model") if name in artifact.options}
    return replace(artifact, backend=INFER, options={**kept, "python": python})


def infer_outputs(job: Job, link: Link, sample: str) -> dict[str, Tensor]:
    """What hbm_infer gives for a sample, raw, where the link's candidate runs on a board and an interpreter has it; the
    board is held meanwhile. Raises what the sessions raise."""
    artifact = job.artifact(link.candidate)
    other = _infer_of(artifact) if artifact.backend == BOARD else None
    if other is None:
        return {}
    with backend(BOARD).open(artifact) as session:
        feeds = stage_feeds(job, artifact, session)(sample)
        if isinstance(session, BoardSession):
            session.hold()
        with backend(INFER).open(other) as asked:
            return asked.infer(feeds, sample=sample)


def numbers(outputs: Tensors, signature: Signature | None) -> dict[str, Tensor]:
    """Outputs with integers as what they stand for."""
    specs = {} if signature is None else {spec.name: spec.quantization for spec in signature.outputs}
    return {
        name: dequantised(value, scale) if (scale := specs.get(name)) and value.dtype.kind in "iu" else value
        for name, value in outputs.items()
    }


def agree(a: Tensors, b: Tensors) -> bool:
    """Whether two sides give the same numbers, as compiled stages must; by name, else in order."""
    pairs = [(a[name], b[name]) for name in a if name in b] or list(zip(a.values(), b.values(), strict=False))
    return bool(pairs) and all(map(_alike, *zip(*pairs, strict=True)))


def _alike(a: Tensor, b: Tensor) -> bool:
    shaped = same_shape(a, b)
    if shaped is None:
        return False
    x, y = np.asarray(a, np.float64), np.asarray(shaped, np.float64)
    peak = float(np.max(np.abs(x), initial=0.0))
    return bool(np.allclose(x, y, rtol=0.0, atol=max(DECIMALS, PRINTED * peak), equal_nan=True))
