"""Pictures of the samples on which a link fails worst, with what each stage detects in them, for the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from driftgate.diagnosis.unseen_planes import plane_names
from driftgate.domain.chain import FeedKind
from driftgate.domain.facts import Facts
from driftgate.domain.pictures import Box, Picture
from driftgate.errors import DriftgateError
from driftgate.explaining import Failure
from driftgate.plan import Job
from driftgate.scoring.detection import BOX, FIELDS, FOUND
from driftgate.sessions import Tensor
from driftgate.transforms.nv12 import rgb_of, ycbcr_of
from driftgate.transforms.resampling import Pixels
from driftgate.transforms.thumbnails import pixels_of, png

DETECTION = "detection"
MOST_BOXES = 20  # of one stage, the surest ones
_KIND, _CLASS, _SCORE = (FIELDS.index(name) for name in ("kind", "class", "score"))


def pictures_of(job: Job, failure: Failure, facts: Facts) -> tuple[Picture, ...]:
    """One of each sample of a failing link that is an image; what cannot be read or is none has none."""
    found = []
    for sample in failure.samples:
        pixels = _pixels(job, sample)
        if pixels is None:
            continue
        content, scale = png(pixels)
        height, width = (max(1, round(length * scale)) for length in pixels.shape[:2])
        boxes = tuple(_boxes(job, failure, facts, sample, scale))
        found.append(Picture(job.plan.subject, job.plan.target, sample, content, width, height, boxes))
    return tuple(found)


def _pixels(job: Job, sample: str) -> Pixels | None:
    """The first of the sample's tensors that is an image, raw ones before those that the deployed model eats."""
    try:
        feeds = job.data.read(sample)
    except DriftgateError:
        return None
    for kind in (FeedKind.RAW, FeedKind.RUNTIME):
        tensors: Mapping[str, Tensor] = feeds.get(kind, {})
        for luma, chroma in plane_names(tensors):
            return rgb_of(ycbcr_of(tensors[luma], tensors[chroma]))
        for tensor in tensors.values():
            made = pixels_of(tensor)
            if made is not None:
                return made
    return None


def _boxes(job: Job, failure: Failure, facts: Facts, sample: str, scale: float) -> Iterator[Box]:
    """What both sides of the link detect, as the score has recorded it, in pixels of the picture."""
    limit = _confidence(facts)
    for records in facts.scores:
        if records.score != DETECTION or records.stage not in (failure.link.reference, failure.link.candidate):
            continue
        rows = records.by_sample().get(sample)
        if rows is None:
            continue
        kept = rows[(rows[:, _KIND] == FOUND) & (rows[:, _SCORE] >= limit)]
        for row in kept[np.argsort(-kept[:, _SCORE], kind="stable")][:MOST_BOXES]:
            x, y, width, height = row[BOX]
            corners = np.array([[x, y, x + width, y + height]])
            geometry = None if job.keeping is None else job.keeping.geometry.get(sample)
            if geometry is not None:
                corners = geometry.to_network(corners)
            x0, y0, x1, y1 = (float(value) * scale for value in corners[0])
            yield records.stage, x0, y0, x1, y1, str(int(row[_CLASS])), float(row[_SCORE])


def _confidence(facts: Facts) -> float:
    """The confidence from which on a detection counts."""
    for spec in facts.plan.scores:
        if spec.task == DETECTION:
            return float(dict(spec.params).get("confidence", 0.0))
    return 0.0
