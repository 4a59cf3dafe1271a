"""Faults of the output contract: activation, decoding, order, layout, padding, type and scale of what comes out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

from faultgen.graph import Graph
from faultgen.networks import IMAGE_TRUNKS, TRUNKS, Plan, build, draw_feeds, draw_plan
from faultgen.planting import Array, Planter, Random, chance, chosen, floats, need
from faultgen.quantiser import quantised
from faultgen.running import run
from faultgen.sides import candidate_of, recorded


def _ended(random: Random, folder: Path, endings: tuple[tuple[str, str], ...]) -> None:
    """A's network ends in an activation that B's does not have."""
    plan = draw_plan(random, TRUNKS)
    kind, axis = chosen(random, endings)

    def after(g: Graph, y: str) -> str:
        return g.op(kind, [y], axis=-1) if axis else g.op(kind, [y])

    bare = build(plan)
    other, level, is_there = candidate_of(random, plan, bare)
    feeds = draw_feeds(random, plan)
    full = build(plan, after=after)
    outputs = (run(full, feeds), run(other, feeds, level=level))
    recorded(folder, full, feeds, outputs, model_b=other if is_there else None)


def _missing_sigmoid(random: Random, folder: Path) -> None:
    _ended(random, folder, (("Sigmoid", ""),))


def _missing_softmax(random: Random, folder: Path) -> None:
    _ended(random, folder, (("Softmax", "-1"),))


def _taken(
    random: Random, trunks: tuple[str, ...] = TRUNKS, **fixed: object
) -> tuple[Plan, onnx.ModelProto, dict[str, Array]]:
    plan = draw_plan(random, trunks, **fixed)
    return plan, build(plan), draw_feeds(random, plan)


def _changed(
    random: Random,
    folder: Path,
    taken: tuple[Plan, onnx.ModelProto, dict[str, Array]],
    change: Callable[[dict[str, Array]], dict[str, Array]],
    *,
    documents: dict[str, object] | None = None,
    buffers: Callable[[dict[str, Array]], dict[str, bytes]] | None = None,
) -> None:
    """A candidate's outputs, healthy or of a healthy INT8 form, changed on their way to the comparison."""
    plan, model, feeds = taken
    other, level, _ = candidate_of(random, plan, model)
    healthy = run(other, feeds, level=level)
    recorded(
        folder,
        model,
        feeds,
        (run(model, feeds), change(healthy)),
        documents=documents,
        buffers=buffers(healthy) if buffers else None,
    )


def _permuted(random: Random, folder: Path) -> None:
    """The same heads under the names of one another: as a graph, or as a list taken by index."""
    taken = _taken(random, outputs=int(random.integers(2, 4)))
    names = list(taken[0].output_names[: taken[0].outputs])
    order = [int(place) for place in random.permutation(len(names))]
    need(order != sorted(order))
    _changed(random, folder, taken, lambda out: {name: out[names[at]] for name, at in zip(names, order, strict=True)})


def _transposed(random: Random, folder: Path) -> None:
    """(samples, attributes, places) against (samples, places, attributes), with its shape or read as the other."""
    taken = _taken(random, ("cnn", "residual", "transformer"), head="detect")
    is_reread = chance(random, 0.5)
    chosen_name = taken[0].output_names[int(random.integers(taken[0].outputs))]

    def change(out: dict[str, Array]) -> dict[str, Array]:
        turned = floats(out[chosen_name].transpose(0, 2, 1))
        return {**out, chosen_name: turned.reshape(out[chosen_name].shape) if is_reread else turned}

    _changed(random, folder, taken, change)


def _map(random: Random) -> tuple[Plan, onnx.ModelProto, dict[str, Array]]:
    return _taken(random, IMAGE_TRUNKS, head="map")


def _channels_last(random: Random, folder: Path) -> None:
    """The device's buffer is NHWC and read as NCHW."""
    _changed(
        random, folder, _map(random), lambda out: {n: a.transpose(0, 2, 3, 1).reshape(a.shape) for n, a in out.items()}
    )


def _padded_outputs(random: Random, folder: Path) -> None:
    """Rows are aligned in the device's buffer; the consumer reads the first elements tightly."""
    taken = _taken(random, IMAGE_TRUNKS, head="map", samples=1, outputs=1)
    plan, model, feeds = taken
    name = plan.output_names[0]
    _, channels, height, width = run(model, feeds)[name].shape
    unit = int(chosen(random, (8, 16, 32)))
    need(width % unit > 0)
    aligned = (1, channels, height, -(-width // unit) * unit)
    strides = [int(np.prod(aligned[axis + 1 :])) * 4 for axis in range(4)]
    board = {
        "outputs": [
            {
                "name": name,
                "dtype": "float32",
                "valid_shape": [1, channels, height, width],
                "aligned_shape": list(aligned),
                "stride": strides,
            }
        ]
    }

    def padded(array: Array) -> Array:
        return floats(np.pad(array, ((0, 0), (0, 0), (0, 0), (0, aligned[3] - width))))

    is_kept = chance(random, 0.5)
    _changed(
        random,
        folder,
        taken,
        lambda out: {name: padded(out[name]).reshape(-1)[: out[name].size].reshape(out[name].shape)},
        documents={"board": board},
        buffers=(lambda out: {f"raw_{name}.bin": padded(out[name]).tobytes()}) if is_kept else None,
    )


def _halves_as_floats(random: Random, folder: Path) -> None:
    """A float16 buffer, taken for float32; behind its end the reader finds zeros."""
    taken = _taken(random, outputs=1)
    name = taken[0].output_names[0]

    def bytes_of(out: dict[str, Array]) -> bytes:
        return out[name].astype(np.float16).tobytes()

    def change(out: dict[str, Array]) -> dict[str, Array]:
        content = bytes_of(out).ljust(out[name].size * 4, b"\0")
        return {name: np.frombuffer(content, np.float32).reshape(out[name].shape)}

    board = {"outputs": [{"name": name, "dtype": "float16"}]}
    _changed(
        random,
        folder,
        taken,
        change,
        documents={"board": board} if chance(random, 0.5) else None,
        buffers=lambda out: {f"raw_{name}.bin": bytes_of(out)},
    )


def _signed_as_unsigned(random: Random, folder: Path) -> None:
    """int8 levels read as uint8, then multiplied by the right scale."""
    taken = _taken(random, outputs=1)
    plan, model, feeds = taken
    name = plan.output_names[0]
    a = run(model, feeds)
    scale = float(np.abs(a[name]).max()) / 127
    levels = np.clip(np.rint(a[name] / scale), -127, 127).astype(np.int8)
    board = {"outputs": [{"name": name, "dtype": "int8", "quanti_type": "SCALE", "scale": scale}]}
    recorded(
        folder,
        model,
        feeds,
        (a, {name: floats(levels.view(np.uint8) * scale)}),
        documents={"board": board},
        buffers={f"raw_{name}.bin": levels.tobytes()},
    )


def _integer_tail(random: Random, folder: Path) -> None:
    """int32 sums of the last convolution, never multiplied by their scales."""
    _, model, feeds = _map(random) if chance(random, 0.7) else _taken(random, head="classify")
    a, tails, entries = run(model, feeds), {}, []
    for name, array in a.items():
        channels = array.shape[1] if array.ndim == 4 else 1
        per_channel = channels > 1 and chance(random, 0.7)
        scales = 10 ** random.uniform(-5, -3, channels if per_channel else 1)
        shape = (1, channels, 1, 1) if per_channel else (1,) * array.ndim
        tails[name] = np.rint(array / scales.reshape(shape)).astype(np.int32)
        axis: dict[str, object] = {"quantize_axis": 1} if per_channel else {}
        told = [float(scale) for scale in scales]
        entries.append(
            {"name": name, "dtype": "int32", "quanti_type": "SCALE", "scale": told if per_channel else told[0], **axis}
        )
    recorded(folder, model, feeds, (a, tails), documents={"board": {"outputs": entries}})


def _scaled(random: Random, folder: Path, *, least: int, twice: bool) -> None:
    """Outputs of a board with integer tails: the scale of another output is taken, or the scale is applied again."""
    _, model, feeds = _taken(random, outputs=int(random.integers(least, 4)))
    a = run(model, feeds)
    names = list(a)
    scales = {name: float(10 ** random.uniform(-5, -2)) for name in names}
    order = names[1:] + names[:1] if len(names) < 3 or chance(random, 0.5) else [names[1], names[0], *names[2:]]
    if twice:
        hit = names if chance(random, 0.6) else names[:1]
        b = {name: floats(array * (scales[name] if name in hit else 1)) for name, array in a.items()}
    else:
        taken = dict(zip(names, order, strict=True))
        b = {name: floats(np.rint(array / scales[name]) * scales[taken[name]]) for name, array in a.items()}
    dtype = "float32" if twice else "int32"
    entries = [{"name": name, "dtype": dtype, "quanti_type": "SCALE", "scale": scale} for name, scale in scales.items()]
    recorded(folder, model, feeds, (a, b), documents={"board": {"outputs": entries}})


def _other_scale(random: Random, folder: Path) -> None:
    _scaled(random, folder, least=2, twice=False)


def _double_scale(random: Random, folder: Path) -> None:
    _scaled(random, folder, least=1, twice=True)


def _comparator(random: Random, folder: Path) -> None:
    """The dump is NHWC and says so; only the comparison flattens it against NCHW."""
    _, model, feeds = _map(random)
    a = run(model, feeds)
    is_flat = chance(random, 0.4)
    turned = {name: floats(array.transpose(0, 2, 3, 1)) for name, array in a.items()}
    need(all(array.shape != a[name].shape for name, array in turned.items()))
    entries = [{"name": name, "dtype": "float32", "valid_shape": list(array.shape)} for name, array in turned.items()]
    b = {name: array.reshape(len(array), -1) if is_flat else array for name, array in turned.items()}
    recorded(folder, model, feeds, (a, b), documents={"board": {"outputs": entries}})


def _quantised_tail(random: Random, folder: Path) -> None:
    """As the integer tail, of an INT8 form whose file lies there too and ends in floats."""
    _, model, feeds = _map(random)
    made, _ = quantised(model, feeds)
    a = run(made, feeds)
    entries, tails = [], {}
    for name, array in a.items():
        scales = np.power(10.0, random.uniform(-5, -3, array.shape[1]))
        tails[name] = np.rint(array / scales.reshape(1, -1, 1, 1)).astype(np.int32)
        told = [float(scale) for scale in scales]
        entries.append({"name": name, "dtype": "int32", "quanti_type": "SCALE", "quantize_axis": 1, "scale": told})
    recorded(folder, made, feeds, (a, tails), documents={"board": {"outputs": entries}})


PLANTERS = (
    Planter("missing-sigmoid", "output", _missing_sigmoid),
    Planter("missing-sigmoid", "output", _missing_softmax, ("missing-decode",), "softmax"),
    Planter("output-permuted", "output", _permuted),
    Planter("output-transposed", "output", _transposed),
    Planter("output-layout-nhwc", "output", _channels_last),
    Planter("output-stride-padding", "output", _padded_outputs),
    Planter("dtype-misread", "output", _halves_as_floats, variant="half"),
    Planter("dtype-misread", "output", _signed_as_unsigned, ("int8-wraparound",), "unsigned"),
    Planter("tail-int32-undequantized", "output", _integer_tail),
    Planter("tail-int32-undequantized", "output", _quantised_tail, variant="int8"),
    Planter("dequant-scale-mismatch", "output", _other_scale),
    Planter("double-dequantization", "output", _double_scale),
    Planter("comparator-layout", "output", _comparator),
)
