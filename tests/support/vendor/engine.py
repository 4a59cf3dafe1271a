"""From a float network and its samples to all stages that hb_compile leaves (toolchain facts §2.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from support.vendor.graph import Array, graph_of, optimised, original
from support.vendor.integers import FixedPoint, fixed_point
from support.vendor.options import Options
from support.vendor.quantising import FakeQuantiser, Plan, planned


@dataclass(frozen=True, slots=True)
class Stages:
    """The networks of one build. `probe` is the integer network that eats what the float one does; `removed` are the
    edge nodes that were taken away."""

    original_float: onnx.ModelProto
    optimized_float: onnx.ModelProto
    calibrated: onnx.ModelProto
    ptq: onnx.ModelProto
    quantized: FixedPoint
    quantized_removed: FixedPoint | None
    plan: Plan
    probe: FixedPoint
    removed: tuple[tuple[str, str], ...] = ()

    @property
    def compiled(self) -> FixedPoint:
        """What the .hbm is made of."""
        return self.quantized_removed or self.quantized


def stages(model: onnx.ModelProto, options: Options, samples: Sequence[Mapping[str, Array]]) -> Stages:
    """All of them; without samples every threshold is 1."""
    first = original(model)
    second = optimised(first)
    plan = planned(graph_of(second), samples)
    settings = {one.name: one for one in options.inputs}
    quantized = fixed_point(plan, options.march, settings=settings)
    gone = [
        (node, kind, tensor)
        for node, kind, tensor in quantized.removable
        if kind in options.removed_types or node in options.removed_names
    ]
    edges = [tensor for _, _, tensor in gone]
    removed = fixed_point(plan, options.march, settings=settings, removed=edges) if gone else None
    return Stages(
        original_float=first,
        optimized_float=second,
        calibrated=FakeQuantiser(plan, tables=False).model(),
        ptq=FakeQuantiser(plan, tables=True).model(),
        quantized=quantized,
        quantized_removed=removed,
        plan=plan,
        probe=fixed_point(plan, options.march) if any(one.is_picture for one in options.inputs) else quantized,
        removed=tuple((node, kind) for node, kind, _ in gone),
    )
