"""What every backend promises: one suite, run with a case of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from driftgate.errors import ArtifactError, BackendError, DriftgateError, SampleError
from driftgate.messages.english import ENGLISH
from driftgate.messages.text import text
from driftgate.sessions import Artifact, Backend, Tensor, Tensors

SAMPLE = "0000"


@dataclass(frozen=True, slots=True)
class Case:
    """An artifact that computes the tiny network of support.models.

    `expected` and `tapped` are what it gives for `feeds`, without and with the tap; `touch` changes its content;
    `copied` is the same artifact elsewhere, `missing` and `damaged` are artifacts that cannot be read.
    """

    backend: Backend
    artifact: Artifact
    feeds: Tensors
    expected: Tensors
    tap: str
    tapped: Tensors
    touch: Callable[[], None]
    copied: Artifact
    missing: Artifact
    damaged: Artifact


def assert_same(found: Mapping[str, Tensor], wanted: Tensors) -> None:
    """The same names in the same order, the same types and shapes, and numbers within a few ulp."""
    assert list(found) == list(wanted)
    for name, tensor in wanted.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape)
        np.testing.assert_allclose(found[name], tensor, rtol=1e-6, atol=1e-6)


def assert_speaks(error: DriftgateError, *words: str) -> None:
    """Each problem has a sentence in the catalogue, filled in, and the words are in them."""
    for problem in error.problems:
        assert problem.code in ENGLISH
        assert text(problem)
    for word in words:
        assert word in str(error)


class BackendContract:
    """Subclass it with a fixture `case`."""

    def test_gives_the_networks_outputs(self, case: Case) -> None:
        with case.backend.open(case.artifact) as session:
            assert_same(session.infer(case.feeds, sample=SAMPLE), case.expected)

    def test_gives_the_same_bits_again_though_the_caller_writes_into_the_result(self, case: Case) -> None:
        with case.backend.open(case.artifact) as session:
            first = session.infer(case.feeds, sample=SAMPLE)
            kept = {name: tensor.tobytes() for name, tensor in first.items()}
            for tensor in first.values():
                tensor.fill(7)
            again = session.infer(case.feeds, sample=SAMPLE)
        assert {name: tensor.tobytes() for name, tensor in again.items()} == kept

    def test_leaves_the_feeds_alone(self, case: Case) -> None:
        before = {name: feed.copy() for name, feed in case.feeds.items()}
        with case.backend.open(case.artifact) as session:
            session.infer(case.feeds, sample=SAMPLE)
        for name, feed in case.feeds.items():
            np.testing.assert_array_equal(feed, before[name])

    def test_reads_feeds_by_value_whatever_their_strides(self, case: Case) -> None:
        strided = {name: np.repeat(feed, 2, axis=-1)[..., ::2] for name, feed in case.feeds.items()}
        with case.backend.open(case.artifact) as session:
            assert_same(session.infer(strided, sample=SAMPLE), case.expected)

    def test_a_tap_is_a_further_output(self, case: Case) -> None:
        with case.backend.open(case.artifact, [case.tap]) as session:
            assert_same(session.infer(case.feeds, sample=SAMPLE), case.tapped)

    def test_an_unknown_tap_is_named(self, case: Case) -> None:
        with pytest.raises(BackendError) as caught:
            case.backend.open(case.artifact, [case.tap, "no/such/tensor"])
        assert_speaks(caught.value, "no/such/tensor")
        assert case.tap not in [name for problem in caught.value.problems for name in _taps(problem.get("taps"))]

    def test_the_signature_describes_the_outputs(self, case: Case) -> None:
        with case.backend.open(case.artifact) as session:
            made = session.infer(case.feeds, sample=SAMPLE)
            signature = session.signature
        assert signature is not None
        assert [spec.name for spec in signature.outputs] == list(made)
        for spec in signature.outputs:
            assert spec.dtype == made[spec.name].dtype.name
            assert spec.shape is not None
            assert len(spec.shape) == made[spec.name].ndim

    def test_the_signature_lists_the_inputs_that_must_be_fed(self, case: Case) -> None:
        with case.backend.open(case.artifact) as session:
            signature = session.signature
        assert signature is not None
        assert [spec.name for spec in signature.inputs] == (list(case.feeds) if case.backend.needs_feeds else [])

    def test_feeds_that_do_not_fit_are_reported_together(self, case: Case) -> None:
        if not case.backend.needs_feeds:
            with case.backend.open(case.artifact) as session:
                assert_same(session.infer({}, sample=SAMPLE), case.expected)
            return
        with case.backend.open(case.artifact) as session:
            with pytest.raises(SampleError) as caught:
                session.infer({"stranger": np.zeros(1, np.float32)}, sample=SAMPLE)
            assert_speaks(caught.value, SAMPLE, case.artifact.stage, "stranger", *case.feeds)
            assert len(caught.value.problems) == 1 + len(case.feeds)
            assert_same(session.infer(case.feeds, sample=SAMPLE), case.expected)

    def test_the_environment_is_the_same_each_time(self, case: Case) -> None:
        def environment() -> tuple[str, str]:
            with case.backend.open(case.artifact) as session:
                return session.environment.provider, session.environment.id

        assert environment()[0]
        assert environment() == environment()

    def test_its_notes_have_sentences(self, case: Case) -> None:
        with case.backend.open(case.artifact) as session:
            assert all(note.code in ENGLISH for note in session.notes)

    def test_the_digest_is_that_of_the_content(self, case: Case) -> None:
        digest = case.backend.digest(case.artifact)
        assert len(bytes.fromhex(digest)) == 32
        assert case.backend.digest(case.artifact) == digest
        assert case.backend.digest(case.copied) == digest
        case.touch()
        assert case.backend.digest(case.artifact) != digest

    def test_a_missing_artifact_is_an_artifact_error(self, case: Case) -> None:
        for attempt in (case.backend.digest, case.backend.open):
            with pytest.raises(ArtifactError) as caught:
                attempt(case.missing)
            assert_speaks(caught.value, "missing")

    def test_a_damaged_artifact_is_an_artifact_error(self, case: Case) -> None:
        with pytest.raises(ArtifactError) as caught:
            case.backend.open(case.damaged)
        assert_speaks(caught.value, "damaged")

    def test_two_sessions_do_not_disturb_each_other(self, case: Case) -> None:
        with case.backend.open(case.artifact) as one:
            with case.backend.open(case.artifact) as other:
                assert_same(other.infer(case.feeds, sample=SAMPLE), case.expected)
            assert_same(one.infer(case.feeds, sample=SAMPLE), case.expected)


def _taps(names: object) -> tuple[str, ...]:
    return names if isinstance(names, tuple) else (str(names),)


def moved(artifact: Artifact, path: Path | None) -> Artifact:
    """The same artifact with another file."""
    return replace(artifact, path=path)
