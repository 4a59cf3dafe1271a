"""Pooling as it may have been meant: padding that counts, sizes that are rounded up."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from driftgate.diagnosis.bench import Side
from driftgate.diagnosis.graphs.variants import Variant, varied
from driftgate.diagnosis.surgery import attribute


def vary_average_pool(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """Padding that counts or does not; a size that is rounded the other way."""
    now = int(attribute(node, "count_include_pad", 0))
    yield varied(side, "pooling-count-include-pad", f"count_include_pad={1 - now}", place, count_include_pad=1 - now)
    yield from vary_pool(side, place, node)


def vary_pool(side: Side, place: int, node: onnx.NodeProto) -> Iterator[Variant]:
    """A size that is rounded the other way."""
    now = int(attribute(node, "ceil_mode", 0))
    yield varied(side, "pooling-ceil-mode", f"ceil_mode={1 - now}", place, ceil_mode=1 - now)
