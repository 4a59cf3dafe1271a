"""Recordings as a stage: any tensor source, with what its signature.json says of quantisation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from driftgate.backends.recorded import RecordedBackend
from driftgate.domain.tensors import Quantization, Signature, TensorSpec
from driftgate.errors import ArtifactError, BackendError, SampleError
from driftgate.sessions import Artifact
from support.contract import assert_same, assert_speaks

BACKEND = RecordedBackend()
LOGITS = np.arange(12, dtype=np.int8).reshape(4, 3)
BOXES = np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4)


def stacked(folder: Path) -> Artifact:
    np.savez(folder / "hbm.npz", logits=LOGITS, boxes=BOXES)
    return Artifact("hbm", "recorded", folder / "hbm.npz")


def samples(folder: Path) -> Artifact:
    folder = folder / "hbm"
    folder.mkdir()
    for n in range(4):
        np.savez(folder / f"000{n}.npz", logits=LOGITS[n : n + 1], boxes=BOXES[n : n + 1])
    return Artifact("hbm", "recorded", folder)


def describe(artifact: Artifact, content: object) -> None:
    """Write the recording's signature.json."""
    path = artifact.path
    assert path is not None
    target = path / "signature.json" if path.is_dir() else path.with_name("hbm.signature.json")
    target.write_text(content if isinstance(content, str) else json.dumps(content))


def test_a_sample_is_answered_with_its_own_tensors_and_no_feeds(tmp_path: Path) -> None:
    for artifact in (stacked(tmp_path), samples(tmp_path)):
        with BACKEND.open(artifact) as session:
            made = session.infer({}, sample="0002")
        assert_same(made, {"logits": LOGITS[2:3], "boxes": BOXES[2:3]})


def test_the_environment_says_that_it_was_recorded(tmp_path: Path) -> None:
    with BACKEND.open(stacked(tmp_path)) as session:
        assert session.environment.provider == "recorded"


def test_a_sample_that_was_not_recorded_is_named_with_the_number_of_those_that_were(tmp_path: Path) -> None:
    with BACKEND.open(stacked(tmp_path)) as session, pytest.raises(SampleError) as caught:
        session.infer({}, sample="rain_017")
    assert_speaks(caught.value, "hbm", "rain_017", "among its 4")


@pytest.mark.parametrize("form", [stacked, samples])
def test_the_signature_file_lists_outputs_and_their_quantisation(form: object, tmp_path: Path) -> None:
    artifact = stacked(tmp_path) if form is stacked else samples(tmp_path)
    entry = {"scales": [0.1, 0.2, 0.4], "zero_points": [3, 0, -3], "axis": 1, "step": None}
    describe(artifact, {"outputs": {"logits": entry}})
    with BACKEND.open(artifact) as session:
        assert session.signature == Signature(
            (), (TensorSpec("logits", "int8", (1, 3), Quantization((0.1, 0.2, 0.4), (3, 0, -3), 1)),)
        )
        assert_same(session.infer({}, sample="0001"), {"logits": LOGITS[1:2]})


def test_a_step_describes_a_float_and_a_scale_alone_has_zero_point_zero(tmp_path: Path) -> None:
    artifact = stacked(tmp_path)
    describe(artifact, {"outputs": {"boxes": {"step": 0.5}, "logits": {"scales": [2]}}})
    with BACKEND.open(artifact) as session:
        boxes, logits = session.signature.outputs
    assert (boxes.step, boxes.quantization) == (0.5, None)
    assert (logits.step, logits.quantization) == (None, Quantization((2.0,)))


def test_without_a_list_all_tensors_are_outputs(tmp_path: Path) -> None:
    artifact = stacked(tmp_path)
    for content in ("{}", '{"outputs": {}}'):
        describe(artifact, content)
        with BACKEND.open(artifact) as session:
            assert [spec.name for spec in session.signature.outputs] == ["logits", "boxes"]


def test_a_tensor_that_is_no_output_may_be_tapped(tmp_path: Path) -> None:
    artifact = stacked(tmp_path)
    describe(artifact, {"outputs": {"logits": {}}})
    with BACKEND.open(artifact, ["boxes"]) as session:
        assert_same(session.infer({}, sample="0000"), {"logits": LOGITS[:1], "boxes": BOXES[:1]})


def test_a_listed_output_that_was_not_recorded_is_an_artifact_error(tmp_path: Path) -> None:
    artifact = stacked(tmp_path)
    describe(artifact, {"outputs": {"logits": {}, "masks": {}}})
    with pytest.raises(ArtifactError) as caught:
        BACKEND.open(artifact)
    assert_speaks(caught.value, "masks", "boxes, logits")


def test_a_sample_that_lacks_an_output_is_not_passed_over(tmp_path: Path) -> None:
    artifact = samples(tmp_path)
    assert artifact.path is not None
    np.savez(artifact.path / "0002.npz", logits=LOGITS[2:3])
    with BACKEND.open(artifact) as session, pytest.raises(BackendError) as caught:
        session.infer({}, sample="0002")
    assert_speaks(caught.value, "0002", "boxes")


def test_a_sample_that_is_damaged_is_the_backends_error(tmp_path: Path) -> None:
    artifact = samples(tmp_path)
    assert artifact.path is not None
    (artifact.path / "0002.npz").write_bytes(b"cut")
    with BACKEND.open(artifact) as session:
        session.infer({}, sample="0001")
        with pytest.raises(BackendError) as caught:
            session.infer({}, sample="0002")
    assert_speaks(caught.value, "0002.npz")


@pytest.mark.parametrize("form", [stacked, samples])
def test_the_signature_file_belongs_to_the_digest(form: object, tmp_path: Path) -> None:
    artifact = stacked(tmp_path) if form is stacked else samples(tmp_path)
    digests = [BACKEND.digest(artifact)]
    for scale in (0.1, 0.2):
        describe(artifact, {"outputs": {"logits": {"scales": [scale]}}})
        digests.append(BACKEND.digest(artifact))
    assert len(set(digests)) == 3


def test_the_name_of_a_sample_belongs_to_the_digest(tmp_path: Path) -> None:
    artifact = samples(tmp_path)
    assert artifact.path is not None
    before = BACKEND.digest(artifact)
    (artifact.path / "0003.npz").rename(artifact.path / "0004.npz")
    assert BACKEND.digest(artifact) != before


@pytest.mark.parametrize(
    ("content", "codes"),
    [
        ("{", ["signature-no-json"]),
        ([], ["signature-form"]),
        ({"output": {}}, ["signature-form"]),
        ({"outputs": []}, ["signature-form"]),
        ({"outputs": {"logits": 0.1}}, ["signature-output"]),
        ({"outputs": {"logits": {"scale": 0.1}}}, ["signature-key"]),
        ({"outputs": {"logits": {"scales": [0]}}}, ["signature-key"]),
        ({"outputs": {"logits": {"scales": [True]}}}, ["signature-key"]),
        ({"outputs": {"logits": {"scales": []}}}, ["signature-key"]),
        ('{"outputs": {"logits": {"scales": [NaN]}}}', ["signature-key"]),
        ({"outputs": {"logits": {"step": -1}, "boxes": {"axis": 0.5}}}, ["signature-key", "signature-key"]),
        ({"outputs": {"logits": {"zero_points": [1]}}}, ["signature-no-scales"]),
        ({"outputs": {"logits": {"scales": [1, 2, 3], "zero_points": [1, 2], "axis": 1}}}, ["signature-lengths"]),
        ({"outputs": {"logits": {"scales": [1, 2, 3]}}}, ["signature-no-axis"]),
        ({"outputs": {"logits": {"scales": [1, 2], "axis": 1}}}, ["signature-axis"]),
        ({"outputs": {"logits": {"scales": [1, 2], "axis": 2}}}, ["signature-axis"]),
    ],
)
def test_a_wrong_signature_file_is_explained(content: object, codes: list[str], tmp_path: Path) -> None:
    artifact = stacked(tmp_path)
    describe(artifact, content)
    with pytest.raises(ArtifactError) as caught:
        BACKEND.open(artifact)
    assert [problem.code for problem in caught.value.problems] == codes
    assert_speaks(caught.value, "hbm.signature.json")
