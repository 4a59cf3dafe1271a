"""The modules of a network that is code, as points: in the order in which one run calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from driftgate.errors import BackendError
from driftgate.localisation.points import Point
from driftgate.messages.message import message
from driftgate.sessions import Artifact, Backend, Session, Tensors

#: Modules and the ONNX operators that compute the same.
OPERATORS: Mapping[str, str] = {
    **{f"Conv{n}d": "Conv" for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": "ConvTranspose" for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": "BatchNormalization" for n in (1, 2, 3)},
    **{f"MaxPool{n}d": "MaxPool" for n in (1, 2, 3)},
    **{f"AvgPool{n}d": "AveragePool" for n in (1, 2, 3)},
    "AdaptiveAvgPool2d": "GlobalAveragePool",
    "Linear": "Gemm",
    "ReLU": "Relu",
    "ReLU6": "Clip",
    "PReLU": "PRelu",
    "LeakyReLU": "LeakyRelu",
    "ELU": "Elu",
    "GELU": "Gelu",
    "Hardsigmoid": "HardSigmoid",
    "Hardswish": "HardSwish",
    "LayerNorm": "LayerNormalization",
    "GroupNorm": "GroupNormalization",
    "Upsample": "Resize",
}


class Call(Protocol):
    """One tensor that a module returned: its name, its module, how many numbers it holds, and the name under
    which the same tensor was returned before, if it was. The module of the network's outputs is ""."""

    @property
    def tensor(self) -> str: ...

    @property
    def module(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def same(self) -> str: ...


@runtime_checkable
class Traceable(Protocol):
    """A session that knows its modules; `tappable` has their names and types and may be empty."""

    @property
    def tappable(self) -> Sequence[tuple[str, str]]: ...

    def trace(self, feeds: Tensors, *, sample: str) -> Sequence[Call]:
        """The floating tensors that modules return in one run, in order."""


@dataclass(frozen=True, slots=True)
class Modules:
    """`taps` has what to tap by the name of the tensor, nothing for the network's outputs; `sizes` the count of
    numbers by point."""

    points: tuple[Point, ...]
    outputs: tuple[str, ...]
    taps: Mapping[str, str]
    sizes: Mapping[int, int]


def read_modules(stage: str, artifact: Artifact, backend: Backend, feeds: Tensors, sample: str) -> Modules:
    """The points of an artifact whose session knows its modules; they have no sources.

    Inputs are the first points. Raises BackendError if nothing inside can be tapped, and what the backend raises.
    """
    with backend.open(artifact) as session:
        types, calls = _traced(session, feeds, sample)
    if not calls:
        raise BackendError(message("taps-none", stage=stage, backend=artifact.backend))
    names: dict[str, list[str]] = {}
    for call in calls:
        names.setdefault(call.same or call.tensor, []).append(call.tensor)
    inputs = tuple(Point(index, name, (name,), "Input", name) for index, name in enumerate(feeds))
    own = [call for call in calls if not call.same]
    points = tuple(
        _point(index, call, names[call.tensor], types.get(call.module, ""))
        for index, call in enumerate(own, len(inputs))
    )
    return Modules(
        points=(*inputs, *points),
        outputs=tuple(call.tensor for call in calls if not call.module),
        taps={call.tensor: call.module for call in own},
        sizes={
            **{index: feeds[name].size for index, name in enumerate(feeds)},
            **{index: call.size for index, call in enumerate(own, len(inputs))},
        },
    )


def _point(index: int, call: Call, names: Sequence[str], kind: str) -> Point:
    operator = OPERATORS.get(kind, kind)
    return Point(
        index=index,
        tensor=call.tensor,
        names=tuple(dict.fromkeys((*names, *(f"{scope(name)}/{operator}_output_0" for name in names if name)))),
        op=operator,
        node=call.module,
    )


def scope(module: str) -> str:
    """The scope in which the TorchScript exporter names what a module computes: `layer1.0.conv` is
    `/layer1/layer1.0/conv`."""
    parts: list[str] = []
    for part in module.split("."):
        parts.append(f"{parts[-1]}.{part}" if part.isdigit() and parts else part)
    return "/" + "/".join(parts)


def _traced(session: Session, feeds: Tensors, sample: str) -> tuple[Mapping[str, str], Sequence[Call]]:
    if not isinstance(session, Traceable) or not session.tappable:
        return {}, ()
    return dict(session.tappable), session.trace(feeds, sample=sample)
