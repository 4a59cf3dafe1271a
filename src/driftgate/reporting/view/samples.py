"""The samples on which the first failing link is worst, and pictures of samples with what each stage detects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from driftgate.domain.facts import Facts
from driftgate.domain.judgement import Judgement
from driftgate.domain.measurements import Measurement, Role
from driftgate.domain.pictures import Box, Picture
from driftgate.domain.scores import Flip
from driftgate.messages.message import Message, message
from driftgate.messages.text import number
from driftgate.reporting.view.links import LinkName, link_name
from driftgate.reporting.view.scores import call_told, item_of
from driftgate.reporting.view.table import first_failure, worst_first

MOST = 12  # samples
SMALL = 96  # pixels of a side
#: What tells the boxes of one stage from those of another, in the chain's order; further stages share the last one.
LOOKS = ("one", "two", "three")


@dataclass(frozen=True, slots=True)
class SampleLine:
    """One sample: its largest error on the link, and the decisions on it that changed, as (item, from, to)."""

    sample: str
    error: str
    flips: tuple[tuple[Message, Message, Message], ...]


@dataclass(frozen=True, slots=True)
class DrawnBox:
    """One detection at its place in the picture; its label stands above it, or within where there is no room."""

    x: float
    y: float
    width: float
    height: float
    text_y: float
    label: str
    score: str


@dataclass(frozen=True, slots=True)
class Side:
    """What one stage detects in a picture."""

    stage: str
    look: str
    boxes: tuple[DrawnBox, ...]


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A sample as an image; `letter` is the height of a letter in its pixels, which are shown as they are where it
    `is_small`."""

    sample: str
    png: bytes
    width: int
    height: int
    letter: float
    is_small: bool
    sides: tuple[Side, ...]


@dataclass(frozen=True, slots=True)
class Samples:
    """What is shown of single samples; `cut` says how many pictures had no room."""

    link: LinkName | None
    output: str
    lines: tuple[SampleLine, ...]
    pictures: tuple[ShownPicture, ...]
    cut: Message | None


def fitting_pictures(pictures: Sequence[Picture], limit: int) -> tuple[Picture, ...]:
    """The pictures, in their order, that take at most `limit` bytes of a page together."""
    kept = []
    for picture in pictures:
        size = picture_bytes(picture)
        if size <= limit:
            kept.append(picture)
            limit -= size
    return tuple(kept)


def picture_bytes(picture: Picture) -> int:
    """What the image takes of a page, in which three bytes are four letters."""
    return -(-len(picture.png) // 3) * 4


def samples(judgement: Judgement, facts: Facts | None, pictures: Sequence[Picture], kept: Sequence[Picture]) -> Samples:
    """The samples of one subject; of its `pictures` those are shown that are among the `kept`."""
    own = [picture for picture in pictures if (picture.subject, picture.target) == judgement.key]
    shown = [picture for picture in own if picture in kept]
    measured = _measured(judgement, facts)
    stages = tuple(stage.name for stage in facts.plan.chain.stages) if facts is not None else ()
    return Samples(
        link=None if measured is None else link_name(measured.link, facts),
        output="" if measured is None else measured.output,
        lines=() if measured is None else _lines(measured, judgement.flips),
        pictures=tuple(_picture(picture, stages) for picture in shown),
        cut=message("page-pictures-cut", count=len(own) - len(shown)) if len(own) > len(shown) else None,
    )


def _measured(judgement: Judgement, facts: Facts | None) -> Measurement | None:
    """The output that fails first, or another of its link where what fails is no output."""
    check = first_failure(judgement)
    broken = worst_first(check) if check is not None else []
    if facts is None or not broken:
        return None
    on_link = [one for one in facts.measurements if one.link == broken[0].target and one.role is Role.OUTPUT]
    return next((one for one in on_link if one.output == broken[0].output), on_link[0] if on_link else None)


def _lines(measured: Measurement, flips: Iterable[Flip]) -> tuple[SampleLine, ...]:
    by_sample: dict[str, list[tuple[Message, Message, Message]]] = {}
    for flip in flips:
        told = (item_of(flip), call_told(flip.calls[0]), call_told(flip.calls[-1]))
        by_sample.setdefault(flip.sample, []).append(told)
    errors = measured.rows.max_abs
    worst = np.argsort(-np.nan_to_num(errors, nan=math.inf), kind="stable")[:MOST]
    return tuple(
        SampleLine(
            measured.samples[place],
            number(float(f"{errors[place]:.4g}")),
            tuple(by_sample.get(measured.samples[place], ())),
        )
        for place in worst
    )


def _picture(picture: Picture, stages: Sequence[str]) -> ShownPicture:
    letter = round(max(picture.width, picture.height) / 28, 1)
    found: dict[str, list[DrawnBox]] = {}
    for box in sorted(picture.boxes, key=lambda box: stages.index(box[0]) if box[0] in stages else len(stages)):
        found.setdefault(box[0], [])
        if all(map(math.isfinite, box[1:5])):
            found[box[0]].append(_box(box, letter))
    return ShownPicture(
        sample=picture.sample,
        png=picture.png,
        width=picture.width,
        height=picture.height,
        letter=letter,
        is_small=max(picture.width, picture.height) <= SMALL,
        sides=tuple(
            Side(stage, LOOKS[min(place, len(LOOKS) - 1)], tuple(boxes))
            for place, (stage, boxes) in enumerate(found.items())
        ),
    )


def _box(box: Box, letter: float) -> DrawnBox:
    _, left, top, right, bottom, label, score = box
    x, y = round(min(left, right), 1), round(min(top, bottom), 1)
    above = y - letter / 3
    return DrawnBox(
        x=x,
        y=y,
        width=round(abs(right - left), 1),
        height=round(abs(bottom - top), 1),
        text_y=round(above if above > letter else y + letter, 1),
        label=label,
        score=f"{score:.2f}",
    )
