"""Faults of a camera input: NV12 planes sent with the wrong pitch, the wrong chroma order, to the wrong input."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from faultgen.cameras import Matrix, draw_matrix, from_nv12, padded_rows, read_rows, to_nv12
from faultgen.networks import IMAGE_TRUNKS, Plan, build, draw_plan, pictures
from faultgen.planting import Array, Planter, Random, chance, chosen, floats, gap, need
from faultgen.running import run
from faultgen.sides import two_inputs


def _camera(random: Random) -> tuple[Plan, Matrix, Array]:
    """A network that eats one picture in 0 … 1, and the picture in 0 … 255."""
    plan = draw_plan(random, IMAGE_TRUNKS, samples=1)
    picture = np.rint(pictures(random, 1, plan.height, plan.width)[0] * 255)
    return plan, draw_matrix(random), picture


def _sent(
    random: Random,
    folder: Path,
    plan: Plan,
    picture: Array,
    seen: Array,
    *,
    buffers: tuple[Array, Array],
    stride: int,
    kind: str = "nv12",
    visible: float = 0.02,
    matrix: Matrix | None = None,
) -> None:
    """Write what was sent and seen; where `matrix` is given, the fault must weigh more than that conversion's loss."""
    model = build(plan)
    board = {"input": {"type": kind, "height": plan.height, "width": plan.width, "stride": stride}}
    feeds = ({plan.input_name: floats(picture[None] / 255)}, {plan.input_name: floats(seen[None] / 255)})
    if matrix is not None:
        right = {plan.input_name: floats(from_nv12(*to_nv12(picture, matrix), matrix)[None] / 255)}
        whole, wrong, lossy = (run(model, side) for side in (*feeds, right))
        need(gap(whole, wrong) > 2 * gap(whole, lossy))
    two_inputs(
        random,
        folder,
        plan,
        model,
        feeds,
        calib=feeds[0],
        documents={"board": board},
        buffers={name: part.tobytes() for name, part in zip(("y.bin", "uv.bin"), buffers, strict=True)},
        visible=visible,
    )


def _stride_of(random: Random, plan: Plan) -> int:
    """The row pitch of the board: a width aligned to 32 or 64 bytes, larger than the width."""
    unit = int(chosen(random, (32, 64)))
    need(plan.width % unit > 0)
    return -(-plan.width // unit) * unit


def _tight_in_padded(random: Random, folder: Path) -> None:
    """The board reads rows of the stride; the buffer has the size for it and is filled tightly."""
    plan, matrix, picture = _camera(random)
    stride = _stride_of(random, plan)
    planes = to_nv12(picture, matrix)
    buffers, seen = [], []
    for plane in planes:
        content = np.zeros(plane.shape[0] * stride, np.uint8)
        content[: plane.size] = plane.reshape(-1)
        buffers.append(content)
        seen.append(read_rows(content, plane.shape[0], plan.width, stride))
    _sent(
        random,
        folder,
        plan,
        picture,
        from_nv12(seen[0], seen[1], matrix),
        buffers=(buffers[0], buffers[1]),
        stride=stride,
        matrix=matrix,
    )


def _padded_in_tight(random: Random, folder: Path) -> None:
    """The buffer's rows are padded; the board reads them tightly."""
    plan, matrix, picture = _camera(random)
    pitch = _stride_of(random, plan)
    buffers = [padded_rows(plane, pitch) for plane in to_nv12(picture, matrix)]
    seen = [read_rows(content, content.shape[0], plan.width, plan.width) for content in buffers]
    _sent(
        random,
        folder,
        plan,
        picture,
        from_nv12(seen[0], seen[1], matrix),
        buffers=(buffers[0], buffers[1]),
        stride=plan.width,
        matrix=matrix,
    )


def _chroma_order(random: Random, folder: Path) -> None:
    """The buffer holds v before u; the board reads u before v."""
    plan, matrix, picture = _camera(random)
    y, uv = to_nv12(picture, matrix)
    vu = uv.reshape(uv.shape[0], -1, 2)[..., ::-1].reshape(uv.shape)
    stride = -(-plan.width // 32) * 32 if chance(random, 0.5) else plan.width
    buffers = (padded_rows(y, stride), padded_rows(vu, stride))
    _sent(random, folder, plan, picture, from_nv12(y, vu, matrix), buffers=buffers, stride=stride, matrix=matrix)


def _conversion_loss(random: Random, folder: Path) -> None:
    plan, matrix, picture = _camera(random)
    y, uv = to_nv12(picture, matrix)
    seen = from_nv12(y, uv, matrix)
    model = build(plan)
    a, b = (run(model, {plan.input_name: floats(side[None] / 255)}) for side in (picture, seen))
    need(1e-3 <= gap(a, b) <= 0.1)
    stride = -(-plan.width // 32) * 32 if chance(random, 0.5) else plan.width
    buffers = (padded_rows(y, stride), padded_rows(uv, stride))
    _sent(random, folder, plan, picture, seen, buffers=buffers, stride=stride, visible=1e-3)


def _nv12_to_features(random: Random, folder: Path) -> None:
    """The input is a tensor of three planes of bytes; it is filled with the bytes of luma and chroma."""
    plan, matrix, picture = _camera(random)
    y, uv = to_nv12(picture, matrix)
    content = np.zeros(picture.size, np.uint8)
    content[: y.size + uv.size] = np.concatenate([y.reshape(-1), uv.reshape(-1)])
    kind = chosen(random, ("featuremap", "rgb", "tensor_u8"))
    seen = content.reshape(picture.shape)
    _sent(random, folder, plan, picture, seen, buffers=(y, uv), stride=plan.width, kind=kind, matrix=matrix)


def _features_to_nv12(random: Random, folder: Path) -> None:
    """The input is nv12; its planes are filled with the first bytes of the RGB picture."""
    plan, matrix, picture = _camera(random)
    is_planar = chance(random, 0.5)
    content = (picture if is_planar else picture.transpose(1, 2, 0)).astype(np.uint8).reshape(-1)
    size = plan.height * plan.width
    y = content[:size].reshape(plan.height, plan.width)
    uv = content[size : size + size // 2].reshape(plan.height // 2, plan.width)
    _sent(random, folder, plan, picture, from_nv12(y, uv, matrix), buffers=(y, uv), stride=plan.width, matrix=matrix)


PLANTERS = (
    Planter("nv12-stride-padding", "input", _tight_in_padded, variant="tight"),
    Planter("nv12-stride-padding", "input", _padded_in_tight, variant="padded"),
    Planter("nv12-uv-order", "input", _chroma_order),
    Planter("nv12-conversion-loss", "input", _conversion_loss),
    Planter("wrong-input-kind", "input", _nv12_to_features, variant="nv12"),
    Planter("wrong-input-kind", "input", _features_to_nv12, variant="features"),
)
