"""What each segment costs of a score, and which decisions changed on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from driftgate.domain.chain import Chain
from driftgate.domain.judgement import Score, SegmentLoss
from driftgate.domain.plan import ScoreSpec
from driftgate.domain.scores import Flip, ScoreRecords
from driftgate.scoring.flips import Step, erosion
from driftgate.scoring.parameters import as_parameters
from driftgate.scoring.summary import flips
from driftgate.scoring.tasks import TASKS

MOST_FLIPS = 50  # kept in the judgement, the largest losses first


def segment_losses(
    chain: Chain, spec: ScoreSpec, scores: Sequence[Score], found: Sequence[Flip]
) -> tuple[SegmentLoss, ...]:
    """The waterfall of one score: each segment's last stage against the last stage before the segment."""
    shares = dict(erosion(found))
    by_stage = {score.stage: score for score in scores if score.name == spec.name}
    losses: list[SegmentLoss] = []
    before: Score | None = None
    along = [
        (chain.stage(stage.name).segment, by_stage[stage.name]) for stage in chain.stages if stage.name in by_stage
    ]
    for place, (segment, score) in enumerate(along):
        first = before is None
        ends = place + 1 == len(along) or along[place + 1][0] != segment
        if first:
            before = along[0][1]
        if not ends or before is None or before is score:
            continue
        lost = before.value - score.value if spec.better == "higher" else score.value - before.value
        losses.append(SegmentLoss(spec.name, segment, before.stage, score.stage, lost, shares.get(segment)))
        before = score
    return tuple(losses)


def flipped(chain: Chain, spec: ScoreSpec, records: Mapping[str, ScoreRecords]) -> tuple[Flip, ...]:
    """The items whose decision changed between the first and the last stage that has records, worst first."""
    if spec.task not in TASKS:
        return ()
    stages = [stage for stage in chain.stages if stage.name in records]
    found = flips(
        TASKS[spec.task],
        [records[stage.name] for stage in stages],
        [Step(stage.name, stage.segment) for stage in stages],
        as_parameters(spec.params),
    )
    return tuple(sorted(found, key=lambda flip: (not flip.lost, -flip.loss, flip.sample, flip.item)))
