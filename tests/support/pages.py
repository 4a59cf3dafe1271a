"""Results for the page: a graph of very many nodes, pictures with boxes, a vendor's table."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from driftgate.domain.facts import Facts
from driftgate.domain.investigations import (
    Histogram,
    Investigation,
    NodeError,
    Pair,
    VendorNode,
    VendorTable,
)
from driftgate.domain.judgement import Judgement
from driftgate.domain.measurements import Moments
from driftgate.domain.pictures import Box, Picture
from driftgate.domain.results import Results
from driftgate.judgement.nodes import by_badness, divergences
from driftgate.numerics.moments import by_channel
from support.measured import LINK, measured
from support.results import failing_pair, results

OPERATORS = ("Conv", "Sigmoid", "Mul", "Concat", "Add", "MaxPool", "Resize", "Softmax")
STEP = 0.0157


def node_name(number: int) -> str:
    """A name as exporters give them."""
    operator = OPERATORS[number % len(OPERATORS)]
    return f"/model.{number // 60}/cv{number // 20 % 3}/m.{number // 8 % 5}/{operator.lower()}_{number}/{operator}"


def nodes(count: int, name: Callable[[int], str] = node_name) -> tuple[NodeError, ...]:
    """Nodes along a graph: the whole error grows, every 50th adds more than its precision explains."""
    generator = np.random.default_rng(7)
    reference = generator.normal(size=(1, 32)).astype(np.float32)
    made = []
    for number in range(count):
        is_off = number % 50 == 49
        own = 0.004 * (30 if is_off else 1)
        total = 0.004 * (1 + number) ** 0.5 + own
        tensor = f"{name(number)}_output_0"
        made.append(
            NodeError(
                pair=Pair(tensor, f"{tensor}_DequantizeLinear_Output", "structure", 1.0),
                op=OPERATORS[number % len(OPERATORS)],
                order=3 * number,
                region=(name(number),),
                total=_moments(reference, total, generator),
                own=_moments(reference, own, generator),
                excess=37.5 if is_off else 1.25,
                top_channels=tuple((channel, 37.5 / (channel + 1)) for channel in range(5)),
                step=STEP,
                shape=(1, 32, 80, 80),
                clipped=0.03 if is_off else 0.0,
            )
        )
    return tuple(made)


#: Excesses of 256 channels: falling, with one that is not a number.
CHANNELS = (*(37.5 / (channel + 1) for channel in range(255)), float("nan"))


def histogram(tensor: str) -> Histogram:
    """A bell on one side, and on the other the part of it that a range holds."""
    edges = np.linspace(-4, 4, 65)
    values = np.random.default_rng(3).normal(size=100_000)
    low, high = -1.5, 1.5
    return Histogram(
        tensor=tensor,
        low=-4.0,
        high=4.0,
        counts_a=tuple(map(int, np.histogram(values, edges)[0])),
        counts_b=tuple(map(int, np.histogram(values.clip(low, high), edges)[0])),
        clip=(low, high),
        percentiles=tuple(
            (q, float(np.percentile(values, q)), float(np.percentile(values.clip(low, high), q)))
            for q in (0.1, 50.0, 99.9)
        ),
    )


def with_nodes(
    pair: tuple[Facts, Judgement], count: int, name: Callable[[int], str] = node_name
) -> tuple[Facts, Judgement]:
    """The failing link after an investigation of so many nodes, and the errors of some samples on it."""
    found = nodes(count, name)
    worst = {node.order: node for node in by_badness(found)[:200]}
    found = tuple(replace(node, channel_excess=CHANNELS) if node.order in worst else node for node in found)
    investigation = Investigation(
        LINK,
        pairs=tuple(node.pair for node in found),
        nodes=found,
        samples=4,
        runs=24,
        seconds=1.5,
        histograms=tuple(histogram(node.pair.tensor_b) for node in worst.values()),
    )
    facts, judged = pair
    facts = measured(facts, [0.5625 if sample == 137 else sample / 1000 for sample in range(200)])
    return replace(facts, investigations=(investigation,)), replace(judged, divergences=divergences(investigation))


def many_nodes(count: int) -> Results:
    """One subject that fails on the board, whose nodes were compared."""
    return results(with_nodes(failing_pair(), count))


def with_vendor_table(pair: tuple[Facts, Judgement], count: int) -> tuple[Facts, Judgement]:
    """The failing link with a table of the vendor's tool in the place of nodes."""
    rows = tuple(
        VendorNode(node_name(number), 0.999 if number % 7 else 0.9 - number / 1000, node_name(number) + "_0", "Conv")
        for number in range(count)
    )
    table = VendorTable("hb_compile.log", "Cosine Similarity", rows)
    investigation = Investigation(LINK, vendor=table)
    facts, judged = pair
    return replace(facts, investigations=(investigation,)), replace(judged, divergences=divergences(investigation))


def picture(sample: str, *, side: int = 96, is_noise: bool = False, boxes: tuple[Box, ...] = ()) -> Picture:
    """A PNG of a sample of `failing()`: a gradient, or noise, which nothing packs."""
    if is_noise:
        pixels = np.random.default_rng(int(sample)).integers(0, 256, (side, side, 3), np.uint8)
    else:
        ramp = np.linspace(40, 200, side).astype(np.uint8)
        pixels = np.broadcast_to(ramp[:, None, None], (side, side, 3))
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "PNG")
    return Picture("digits", "J6M", sample, file.getvalue(), side, side, boxes)


BOXES: tuple[Box, ...] = (
    ("quantized", 10.0, 12.0, 50.0, 60.0, "car", 0.91),
    ("quantized", 55.0, 30.0, 90.0, 80.0, "person", 0.75),
    ("hbm", 14.0, 15.0, 56.0, 66.0, "car", 0.62),
)


def _moments(reference: NDArray[np.float32], error: float, generator: np.random.Generator) -> Moments:
    noise = generator.normal(scale=error, size=reference.shape).astype(np.float32)
    return by_channel(reference, reference + noise, axis=None)
