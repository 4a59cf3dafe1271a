"""Batches: samples that disturb each other, sizes that are constant in the model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from driftgate.diagnosis.bench import Bench
from driftgate.diagnosis.surgery import label
from driftgate.diagnosis.trials import explained, fact, trial
from driftgate.domain.investigations import Explanation


def find_batch(bench: Bench) -> Iterator[Explanation]:
    """Samples one by one give what the batch does not."""
    e = bench.evidence
    feeds = e.feeds_b or e.feeds_a
    counts = {value.shape[0] for value in feeds.values() if value.ndim}
    if len(counts) != 1 or not bench.b.runs or not bench.outputs_a:
        return
    count = counts.pop()
    if not 1 < count <= 64:
        return
    rows = []
    for sample in range(count):
        made = bench.run(bench.b, {name: value[sample : sample + 1] for name, value in feeds.items()})
        if made is None:
            return
        rows.append(made)
    stacked = {
        name: np.concatenate([row[name] for row in rows]) for name in rows[0] if all(row[name].ndim for row in rows)
    }
    whole = bench.run(bench.b, feeds)
    before = bench.distance(bench.outputs_a, whole)
    after = bench.distance(bench.outputs_a, {n: stacked[n] for n in bench.outputs_a if n in stacked})
    tried = trial("batch-shape-mismatch", "one sample at a time", before, after, bench.floor)
    if tried.result.value == "confirmed" and before > bench.floor:
        yield from explained(tried, facts=(("samples", float(count), ""),))


def find_batch_shape(bench: Bench) -> Iterator[Explanation]:
    """The candidate gives fewer samples than it was fed, or its model has another constant batch."""
    model = bench.b.model
    batch = max(
        (value.shape[0] for value in (bench.evidence.feeds_b or bench.evidence.feeds_a).values() if value.ndim),
        default=0,
    )
    if model is None or batch < 2 or bench.rerun_b is not None:
        return
    held = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name not in held and dims and dims[0].HasField("dim_value") and dims[0].dim_value not in (0, batch):
            yield from fact(
                "batch-shape-mismatch",
                ("batch of the model", float(dims[0].dim_value), ""),
                ("batch that is fed", float(batch), ""),
                subjects=(value.name,),
            )
            return
    for node in model.graph.node:
        to = bench.b.value(node.input[1]) if node.op_type == "Reshape" and len(node.input) > 1 else None
        if to is not None and to.size and int(to[0]) not in (0, -1, batch):
            yield from fact(
                "batch-shape-mismatch",
                ("batch in a reshape", float(to[0]), ""),
                ("batch that is fed", float(batch), ""),
                subjects=(label(node),),
            )
            return
