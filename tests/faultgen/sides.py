"""The two sides of a link as engineers have them: the same network again, optimised, quantised, or on a board."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx

from faultgen.networks import Plan, draw_feeds
from faultgen.planting import VISIBLE, Random, Tensors, all_live, chance, chosen, gap, need, save
from faultgen.quantiser import WEIGHT_FORMS, quantised
from faultgen.running import layers_of, run

#: What runs on the candidate's side of an input or output fault, as often as it stands here.
_CANDIDATES = ("same", "same", "same", "optimised", "optimised", "int8", "board")


def candidate_of(
    random: Random, plan: Plan, model: onnx.ModelProto, calib: Tensors | None = None
) -> tuple[onnx.ModelProto, str, bool]:
    """(model, level it runs at, whether its file lies in the folder) of a healthy candidate."""
    kind = chosen(random, _CANDIDATES)
    if kind == "int8":
        feeds = calib or draw_feeds(random, plan, 8 if not plan.fixed_batch else plan.samples)
        made, _ = quantised(model, feeds, form=chosen(random, WEIGHT_FORMS))
        need(gap(run(model, feeds), run(made, feeds)) < 0.05)
        return made, "none", True
    return model, "extended" if kind == "optimised" else "none", kind != "board"


def two_inputs(
    random: Random,
    folder: Path,
    plan: Plan,
    model: onnx.ModelProto,
    feeds: tuple[Tensors, Tensors],
    *,
    raw: Tensors | None = None,
    documents: Mapping[str, object] | None = None,
    buffers: Mapping[str, bytes] | None = None,
    calib: Tensors | None = None,
    visible: float = VISIBLE,
) -> None:
    """A fault of the inputs: the same network is fed differently on the two sides."""
    other, level, is_there = candidate_of(random, plan, model, calib)
    taps = layers_of(model) if chance(random, 0.3) else []
    a, b = run(model, feeds[0], taps), run(other, feeds[1], taps, level=level if not taps else "none")
    names = [output.name for output in model.graph.output]
    outputs_a, outputs_b = ({name: side[name] for name in names} for side in (a, b))
    need(all_live(outputs_a) and gap(outputs_a, outputs_b) >= visible)
    save(
        folder,
        tensors={
            "inputs": feeds[0],
            "inputs_b": feeds[1],
            "outputs_a": outputs_a,
            "outputs_b": outputs_b,
            "layers_a": a if taps else None,
            "layers_b": b if taps else None,
            "raw": raw,
        },
        models={"model_a": model, "model_b": other if is_there else None},
        documents=documents,
        buffers=buffers,
    )


def two_models(
    random: Random,
    folder: Path,
    models: tuple[onnx.ModelProto, onnx.ModelProto],
    feeds: Tensors,
    *,
    layers: float = 0.5,
    visible: float = VISIBLE,
    documents: Mapping[str, object] | None = None,
    more: Mapping[str, Tensors | None] | None = None,
) -> None:
    """A fault of the graph: two networks see the same data; intermediate tensors lie there in a share of the cases."""
    is_layered = chance(random, layers)
    a, b = (run(model, feeds, layers_of(model) if is_layered else ()) for model in models)
    names = [output.name for output in models[0].graph.output]
    outputs_a, outputs_b = ({name: side[name] for name in names} for side in (a, b))
    need(all_live(outputs_a) and gap(outputs_a, outputs_b) >= visible)
    save(
        folder,
        tensors={
            "inputs": feeds,
            "outputs_a": outputs_a,
            "outputs_b": outputs_b,
            "layers_a": a if is_layered else None,
            "layers_b": b if is_layered else None,
            **(more or {}),
        },
        models={"model_a": models[0], "model_b": models[1]},
        documents=documents,
    )


def recorded(
    folder: Path,
    model: onnx.ModelProto | None,
    feeds: Tensors,
    outputs: tuple[Tensors, Tensors],
    *,
    visible: float = VISIBLE,
    documents: Mapping[str, object] | None = None,
    buffers: Mapping[str, bytes] | None = None,
    model_b: onnx.ModelProto | None = None,
) -> None:
    """A fault of the outputs: what a board or a consumer gave stands against what the reference gave."""
    need(all_live(outputs[0]))
    shared = [name for name in outputs[0] if name in outputs[1]]
    need(max(gap({n: outputs[0][n]}, {n: outputs[1][n]}) for n in shared) >= visible)
    save(
        folder,
        tensors={"inputs": feeds, "outputs_a": outputs[0], "outputs_b": outputs[1]},
        models={"model_a": model, "model_b": model_b},
        documents=documents,
        buffers=buffers,
    )
