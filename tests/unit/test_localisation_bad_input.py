"""Investigations of what cannot be compared well: said in words, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.backends.recorded import RecordedBackend
from driftgate.domain.investigations import Investigation
from driftgate.errors import ArtifactError, BackendError
from driftgate.localisation.investigate import investigate
from driftgate.localisation.subject import read_subject
from driftgate.messages.text import text
from driftgate.sessions import Artifact
from support.models import model, save, tiny, value
from support.sides import side

X: NDArray[np.float32] = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def looked_into(
    one: onnx.ModelProto, other: onnx.ModelProto, folder: Path, feed: NDArray[np.float32] = X, **options: str
) -> Investigation:
    feeds = {"0": {"x": feed}}
    a, b = side("a", one, feeds, folder), side("b", other, feeds, folder, **options)
    names = [[output.name for output in made.graph.output] for made in (one, other)]
    return investigate("a..b", a, b, ("0",), outputs=dict(zip(*names, strict=False)))


def codes(found: Investigation) -> set[str]:
    for note in found.notes:
        assert "{" not in text(note)
    return {note.code for note in found.notes}


def cosine(shape: list[int | str]) -> onnx.ModelProto:
    """A network of another kind."""
    nodes = [helper.make_node("Cos", ["z"], ["c"]), helper.make_node("Exp", ["c"], ["e"])]
    return model(nodes, [value("z", shape)], [value("e", shape)])


def test_networks_without_a_common_tensor(tmp_path: Path) -> None:
    a = side("a", tiny("n"), {"0": {"x": X}}, tmp_path)
    b = side("b", cosine([5]), {"0": {"z": np.arange(5, dtype=np.float32)}}, tmp_path)
    found = investigate("a..b", a, b, ("0",), outputs={})
    assert [p for p in found.pairs if p.tensor_a not in ("x",)] == []
    assert found.nodes == ()
    assert set(found.unpaired_b) >= {"c", "e"}


def two_inputs(first: str, second: str) -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", [first, second], ["m"])]
    return model(nodes, [value(first, [2, 9]), value(second, [9, 3])], [value("m", [2, 3])])


def test_nothing_at_all_in_common_is_said(tmp_path: Path) -> None:
    feeds = {"0": {"p": np.ones((2, 9), np.float32), "q": np.ones((9, 3), np.float32)}}
    a = side("a", two_inputs("p", "q"), feeds, tmp_path)
    b = side("b", cosine([5]), {"0": {"z": np.arange(5, dtype=np.float32)}}, tmp_path)
    found = investigate("a..b", a, b, ("0",), outputs={})
    assert (found.pairs, found.nodes) == ((), ())
    assert "points-unpaired" in codes(found)


@pytest.mark.parametrize("content", [b"", b"not an onnx file", b"\x08\x09"])
def test_a_damaged_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "b.onnx").write_bytes(content)
    backend = OnnxRuntimeBackend()
    with pytest.raises(ArtifactError) as caught:
        read_subject("b", Artifact("b", "onnxruntime", tmp_path / "b.onnx"), backend, backend, lambda _: {"x": X})
    assert "b.onnx" in str(caught.value)


def test_a_file_that_the_runtime_refuses(tmp_path: Path) -> None:
    broken = tiny("n")
    broken.graph.node[1].op_type = "NoSuchOperator"
    a, b = (side(stage, made, {"0": {"x": X}}, tmp_path) for stage, made in (("a", tiny("n")), ("b", broken)))
    with pytest.raises(ArtifactError) as caught:
        investigate("a..b", a, b, ("0",), outputs={"y": "y"})
    assert "NoSuchOperator" in str(caught.value)


def test_nan_in_every_tensor(tmp_path: Path) -> None:
    found = looked_into(tiny("n"), tiny("n"), tmp_path, np.full_like(X, np.nan))
    assert "points-not-finite" in codes(found)
    assert all(node.total.count[0] == 0 for node in found.nodes)


def divided(divisor: list[float]) -> onnx.ModelProto:
    """x → |x| → divided → y."""
    nodes = [
        helper.make_node("Abs", ["x"], ["p"]),
        helper.make_node("Div", ["p", "divisor"], ["d"]),
        helper.make_node("Tanh", ["d"], ["y"]),
    ]
    weights = {"divisor": np.array(divisor, np.float32)}
    return model(nodes, [value("x", [4, 3])], [value("y", [4, 3])], initializers=weights)


def test_a_candidate_that_alone_is_not_finite_is_named_where_it_begins(tmp_path: Path) -> None:
    found = looked_into(divided([1, 2, 3]), divided([1, 0, 3]), tmp_path)
    (first,) = [node for node in found.nodes if node.excess > 1]
    assert (first.pair.tensor_b, first.excess) == ("d", float("inf"))


def with_empty() -> onnx.ModelProto:
    """x → a slice of no rows → y, and the whole of it → z."""
    nodes = [
        helper.make_node("Slice", ["x", "zero", "zero", "zero"], ["none"]),
        helper.make_node("Relu", ["none"], ["y"]),
        helper.make_node("Sigmoid", ["x"], ["z"]),
    ]
    initializers: dict[str, NDArray[np.int64]] = {"zero": np.array([0], np.int64)}
    return model(
        nodes, [value("x", ["n", 3])], [value("y", None), value("z", ["n", 3])], initializers=dict(initializers)
    )


def test_tensors_of_no_size(tmp_path: Path) -> None:
    found = looked_into(with_empty(), with_empty(), tmp_path)
    assert "z" in {node.pair.tensor_b for node in found.nodes}
    assert all(np.isfinite(node.excess) for node in found.nodes)


def test_a_feed_of_no_size(tmp_path: Path) -> None:
    found = looked_into(tiny("n"), tiny("n"), tmp_path, X[:0])
    assert "points-none" in codes(found)


def strings() -> onnx.ModelProto:
    """x → y, and text beside it."""
    nodes = [
        helper.make_node("Cast", ["x"], ["words"], to=TensorProto.STRING),
        helper.make_node("Identity", ["words"], ["said"]),
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node("ArgMax", ["t"], ["which"], axis=1),
        helper.make_node("Relu", ["t"], ["y"]),
    ]
    outputs = [value("y", [4, 3]), value("said", [4, 3], TensorProto.STRING), value("which", None, TensorProto.INT64)]
    return model(nodes, [value("x", [4, 3])], outputs)


def test_text_and_indices_are_left_out(tmp_path: Path) -> None:
    found = looked_into(strings(), strings(), tmp_path)
    assert {node.pair.tensor_b for node in found.nodes} == {"t", "y"}
    assert not {"words", "said", "which"} & {*found.unpaired_a, *found.unpaired_b}


@pytest.mark.parametrize("level", ["basic", "extended", "all"])
def test_an_optimised_candidate_says_that_taps_change_it(level: str, tmp_path: Path) -> None:
    found = looked_into(tiny("n"), tiny("n"), tmp_path, level=level)
    assert "tapped-level" in codes(found)
    assert {node.pair.tensor_b for node in found.nodes} == {"h", "r", "y"}


def test_recordings_show_nothing_inside(tmp_path: Path) -> None:
    np.savez(tmp_path / "y.npz", y=X)
    artifact = Artifact("hbm", "recorded", tmp_path / "y.npz")
    with pytest.raises(BackendError) as caught:
        read_subject("hbm", artifact, RecordedBackend(), None, lambda _: {}, sample="0")
    assert caught.value.problems[0].code == "taps-none"


def test_a_candidate_that_cannot_be_cut_has_total_errors_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds = {"0": {"x": X}}
    a, b = (side(stage, tiny("n"), feeds, tmp_path) for stage in "ab")
    assert b.parts is not None
    opened: Callable[..., object] = b.parts.open

    def refuse_cuts(made: onnx.ModelProto, taps: tuple[str, ...] = ()) -> object:
        if made.graph.name == "cut":
            made.graph.node[0].op_type = "NoSuchOperator"
        return opened(made, taps)

    monkeypatch.setattr(b.parts, "open", refuse_cuts)
    found = investigate("a..b", a, b, ("0",), outputs={"y": "y"})
    assert codes(found) == {"cut-failed"}
    assert [node.own for node in found.nodes] == [None] * 3
    assert [node.total.count[0] for node in found.nodes] == [8, 8, 8]


def test_a_file_beside_the_model_that_is_gone(tmp_path: Path) -> None:
    path = save(tiny("n"), tmp_path / "b.onnx", external="weights.bin")
    (tmp_path / "weights.bin").unlink()
    backend = OnnxRuntimeBackend()
    with pytest.raises(ArtifactError) as caught:
        read_subject("b", Artifact("b", "onnxruntime", path), backend, backend, lambda _: {"x": X})
    assert "weights.bin" in str(caught.value)
