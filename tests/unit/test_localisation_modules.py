"""Networks that are code, as points: what a session that knows its modules says of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driftgate.domain.runs import Environment
from driftgate.domain.tensors import Signature
from driftgate.errors import BackendError
from driftgate.localisation.investigate import investigate
from driftgate.localisation.modules import scope
from driftgate.localisation.subject import Subject, read_subject
from driftgate.messages.message import Message
from driftgate.sessions import Artifact
from support.models import BIAS, WEIGHT, answer, hidden, tiny
from support.sides import side

X = np.random.default_rng(2).normal(size=(16, 3)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Returned:
    """One tensor that a module returned."""

    tensor: str
    module: str
    size: int
    same: str = ""


class Modules:
    """The tiny network as code: `product`, `body` around it, `rectified`, the output by an operator of no module."""

    needs_feeds = True

    def __init__(self, types: Sequence[tuple[str, str]], weight: NDArray[np.float32] = WEIGHT) -> None:
        self.tappable = types
        self._weight = weight
        self.taps: Sequence[str] = ()
        self.signature: Signature | None = None
        self.environment = Environment("", "", 1, "", ())
        self.notes: tuple[Message, ...] = ()

    def digest(self, artifact: Artifact) -> str:
        return artifact.stage

    def open(self, artifact: Artifact, taps: Sequence[str] = ()) -> Modules:
        self.taps = taps
        return self

    def trace(self, feeds: Mapping[str, Any], *, sample: str) -> Sequence[Returned]:
        return (
            Returned("product", "product", 32),
            Returned("body", "body", 32, same="product"),
            Returned("rectified", "rectified", 32),
            Returned("rectified@2", "rectified", 32),
            Returned("output", "", 32),
        )

    def infer(self, feeds: Mapping[str, Any], *, sample: str) -> dict[str, NDArray[Any]]:
        product = (feeds["x"] @ self._weight).astype(np.float32)
        once = np.maximum(product, 0)
        values = {"product": product, "body": product, "rectified": once, "rectified@2": once + 1}
        kept = {name: value for name, value in values.items() if name.partition("@")[0] in self.taps}
        return {"output": once + BIAS, **kept}

    def __enter__(self) -> Modules:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


TYPES = (("product", "Linear"), ("body", "Sequential"), ("rectified", "ReLU"))


def code(types: Sequence[tuple[str, str]] = TYPES, weight: NDArray[np.float32] = WEIGHT) -> Subject:
    artifact = Artifact("pytorch", "torch", None)
    return read_subject("pytorch", artifact, Modules(types, weight), None, lambda _: {"x": X}, sample="0")


def test_points_are_the_tensors_in_the_order_of_the_run() -> None:
    points = code().points
    assert [(p.tensor, p.op) for p in points] == [
        ("x", "Input"),
        ("product", "Gemm"),
        ("rectified", "Relu"),
        ("rectified@2", "Relu"),
        ("output", ""),
    ]


def test_a_module_that_hands_on_a_tensor_is_another_name_of_it() -> None:
    assert set(code().points[1].names) >= {"product", "body"}


def test_the_outputs_of_the_network_are_named() -> None:
    assert code().outputs == ("output",)


def test_sizes_are_known_before_anything_is_tapped() -> None:
    assert code().sizes == {0: X.size, 1: 32, 2: 32, 3: 32, 4: 32}


def test_the_run_that_finds_the_modules_counts() -> None:
    assert code().count.runs == 1


def test_modules_and_tensors_pair_by_value(tmp_path: Path) -> None:
    b = side("onnx", tiny("n"), {"0": {"x": X}}, tmp_path)
    found = investigate("pytorch..onnx", code(), b, ("0",), outputs={"output": "y"})
    assert {(p.tensor_a, p.tensor_b, p.how) for p in found.pairs if p.how == "value"} == {
        ("product", "h", "value"),
        ("rectified", "r", "value"),
    }
    assert ("output", "y") in {(p.tensor_a, p.tensor_b) for p in found.pairs}
    assert all(node.own is not None and node.excess < 1 for node in found.nodes)
    assert found.unpaired_a == ("rectified@2",)
    assert np.array_equal(answer(X), np.maximum(hidden(X), 0) + BIAS)


def test_a_session_without_modules_shows_nothing() -> None:
    with pytest.raises(BackendError) as caught:
        code(())
    assert caught.value.problems[0].code == "taps-none"


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("conv1", "/conv1"),
        ("layer1.0.conv2", "/layer1/layer1.0/conv2"),
        ("features.3.conv.0.1", "/features/features.3/conv/conv.0/conv.0.1"),
    ],
)
def test_the_exporters_scope_of_a_module(module: str, expected: str) -> None:
    assert scope(module) == expected
