"""Networks with memory: a sample is a sequence, read by the rank of its feeds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.backends.recorded import RecordedBackend
from driftgate.backends.stateful import StatefulSession
from driftgate.domain.tensors import Signature, TensorSpec
from driftgate.errors import ConfigError, SampleError
from driftgate.sessions import Artifact, Session, Tensor, Tensors
from support.contract import assert_same, assert_speaks
from support.models import accumulator, save

STATE = {"next_state": "state"}
X = np.array([[[1, 10]], [[2, 20]], [[3, 30]]], np.float32)
SUMS = np.cumsum(X, axis=0, dtype=np.float32)
GAIN = np.array(2, np.float32)


def opened(folder: Path, rows: int | None = 1) -> Session:
    path = save(accumulator(rows), folder / "net.onnx")
    return OnnxRuntimeBackend().open(Artifact("onnx", "onnxruntime", path))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[StatefulSession]:
    """y = (x + state) * gain, the state being the sum so far."""
    with StatefulSession(opened(tmp_path), STATE, stage="onnx") as stateful:
        yield stateful


def run(session: StatefulSession, **feeds: Tensor) -> dict[str, Tensor]:
    return session.infer(feeds, sample="0000")


def test_outputs_and_states_are_stacked_over_time(session: StatefulSession) -> None:
    assert_same(run(session, x=X, gain=GAIN), {"y": 2 * SUMS, "next_state": SUMS})


def test_each_sample_starts_anew(session: StatefulSession) -> None:
    first = run(session, x=X, gain=GAIN)
    assert_same(run(session, x=X, gain=GAIN), first)


def test_a_sample_may_bring_its_first_state(session: StatefulSession) -> None:
    start = np.array([[100, 0]], np.float32)
    wanted = {"y": SUMS + start, "next_state": SUMS + start}
    assert_same(run(session, x=X, gain=np.array(1, np.float32), state=start), wanted)


def test_a_constant_may_change_with_time(session: StatefulSession) -> None:
    gains = np.array([1, 0, -1], np.float32)
    assert_same(run(session, x=X, gain=gains), {"y": SUMS * gains[:, None, None], "next_state": SUMS})


def test_the_axis_that_a_stacked_file_leaves_is_dropped(session: StatefulSession) -> None:
    start = np.array([[[100, 0]]], np.float32)
    wanted = {"y": 2 * (SUMS + start[0]), "next_state": SUMS + start[0]}
    assert_same(run(session, x=X[None], gain=GAIN[None], state=start), wanted)


def test_a_sequence_of_one_step(session: StatefulSession) -> None:
    assert_same(run(session, x=X[:1], gain=GAIN), {"y": 2 * X[:1], "next_state": X[:1]})


@pytest.mark.parametrize(
    ("feeds", "code"),
    [
        ({"x": X[0], "gain": GAIN}, "sequence-lengths"),
        ({"x": X[:0], "gain": GAIN}, "sequence-lengths"),
        ({"x": X, "gain": np.ones(2, np.float32)}, "sequence-lengths"),
        ({"x": X[0, 0], "gain": GAIN}, "sequence-rank"),
        ({"x": np.stack([X, X]), "gain": GAIN}, "sequence-rank"),
        ({"x": X}, "feed-missing"),
        ({"x": X, "gain": GAIN, "rate": GAIN}, "feed-unknown"),
        ({"x": X.astype(np.float64), "gain": GAIN}, "feed-dtype"),
        ({"x": X, "gain": GAIN, "state": X[0, 0]}, "feed-shape"),
    ],
)
def test_feeds_that_are_no_sequence_of_the_models_inputs(
    session: StatefulSession, feeds: dict[str, Tensor], code: str
) -> None:
    with pytest.raises(SampleError) as caught:
        session.infer(feeds, sample="rain_017")
    assert [problem.code for problem in caught.value.problems] == [code]
    assert_speaks(caught.value, "rain_017")


def test_the_signature_is_that_of_a_sequence(session: StatefulSession) -> None:
    signature = session.signature
    assert signature.inputs == (TensorSpec("x", "float32", (None, 1, 2)), TensorSpec("gain", "float32", (None,)))
    assert signature.outputs[0] == TensorSpec("y", "float32", (None, 1, 2))
    assert session.optional_inputs == ("state",)
    assert session.environment.provider == "CPUExecutionProvider"


def test_a_state_of_dynamic_shape_starts_with_one_row_and_a_note(tmp_path: Path) -> None:
    with StatefulSession(opened(tmp_path, None), STATE, stage="onnx") as session:
        assert_same(run(session, x=X, gain=GAIN), {"y": 2 * SUMS, "next_state": SUMS})
        (note,) = session.notes
    assert note.get("inputs") == ("state (?, 2)",)


class Reticent:
    """A session that does not say what its inputs are like, as those of PyTorch."""

    def __init__(self, inner: Session) -> None:
        self._inner = inner
        self.environment = inner.environment
        self.notes = inner.notes

    @property
    def signature(self) -> Signature:
        inner = self._inner.signature
        assert inner is not None
        return Signature(tuple(TensorSpec(spec.name, "") for spec in inner.inputs), ())

    def infer(self, feeds: Tensors, *, sample: str) -> dict[str, Tensor]:
        return self._inner.infer(feeds, sample=sample)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def test_what_a_stage_does_not_say_of_its_inputs_is_taken_from_another_one(tmp_path: Path) -> None:
    known = opened(tmp_path)
    signature = known.signature
    assert signature is not None
    with pytest.raises(ConfigError) as caught:
        StatefulSession(Reticent(known), STATE, stage="pytorch")
    assert_speaks(caught.value, "pytorch", "x, state, gain")
    session = StatefulSession(Reticent(known), STATE, stage="pytorch", like=signature.inputs)
    assert_same(run(session, x=X, gain=GAIN), {"y": 2 * SUMS, "next_state": SUMS})


def test_a_state_of_fixed_shape_needs_no_note(session: StatefulSession) -> None:
    assert session.notes == ()


def test_names_that_the_model_does_not_have_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        StatefulSession(opened(tmp_path), {"memory": "cell"}, stage="onnx")
    assert [problem.code for problem in caught.value.problems] == ["state-output-unknown", "state-input-unknown"]
    assert_speaks(caught.value, "memory", "cell", "next_state", "gain")


def test_two_outputs_cannot_feed_one_state(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        StatefulSession(opened(tmp_path), {"y": "state", "next_state": "state"}, stage="onnx")
    assert [problem.code for problem in caught.value.problems] == ["state-input-twice"]


def test_a_recording_has_no_state(tmp_path: Path) -> None:
    np.savez(tmp_path / "y.npz", y=X)
    session = RecordedBackend().open(Artifact("onnx", "recorded", tmp_path / "y.npz"))
    with pytest.raises(ConfigError) as caught:
        StatefulSession(session, STATE, stage="onnx")
    assert_speaks(caught.value, "recording")
