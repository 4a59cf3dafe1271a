"""Runtime samples by declaration: against Pillow, there and back, and what does not fit its declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError

from driftgate.domain.chain import FeedKind
from driftgate.errors import SampleError
from driftgate.settings.samples import SampleSettings
from driftgate.transforms.colours import ycbcr
from driftgate.transforms.declared import LEGAL, Declaration, DeclarationError, Type, raw_of, runtime_of
from driftgate.transforms.layouts import Layout
from driftgate.transforms.nv12 import nv12, rgb_of, ycbcr_of
from driftgate.transforms.resampling import Pixels

MEAN, SCALE = (123.675, 116.28, 103.53), (0.01712475, 0.017507, 0.01742919)
COLOURS = [Type.RGB, Type.BGR, Type.YUV444]


def picture(height: int = 12, width: int = 20, seed: int = 0) -> Pixels:
    """Smooth colours, as a camera's: each 2 × 2 pixels have one."""
    small = np.random.default_rng(seed).integers(0, 256, (height // 2, width // 2, 3), dtype=np.uint8)
    return small.repeat(2, axis=0).repeat(2, axis=1)


def floats(pixels: Pixels, declared: Declaration) -> np.ndarray:
    made = ((pixels - np.array(declared.mean or (0,))) * np.array(declared.scale or (1,))).astype(np.float32)
    found: np.ndarray = (made if declared.layout is Layout.NHWC else made.transpose(2, 0, 1))[None]
    return found


def test_conversion_is_pillows_within_its_rounding() -> None:
    """Pillow computes with 8-bit tables, so that single numbers differ by 1 from ours, which round once."""
    rgb = np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    theirs = np.asarray(Image.fromarray(rgb).convert("YCbCr"), np.float64)
    assert np.abs(np.rint(ycbcr(rgb)) - theirs).max() <= 1
    luma, chroma = nv12(rgb)
    assert np.abs(luma[0, :, :, 0] - theirs[:, :, 0]).max() <= 1
    means = theirs[:, :, 1:].reshape(32, 2, 32, 2, 2).mean((1, 3))
    assert np.abs(chroma[0] - means).max() <= 1.5
    assert (
        np.abs(
            rgb_of(theirs).astype(int)
            - np.asarray(Image.fromarray(theirs.astype(np.uint8), "YCbCr").convert("RGB"), int)
        ).max()
        <= 2
    )


def test_only_what_hb_compile_converts_can_be_declared() -> None:
    with pytest.raises(DeclarationError, match="yuv444 cannot become rgb"):
        Declaration(Type.YUV444, Type.RGB)
    with pytest.raises(DeclarationError, match="featuremap cannot become nv12"):
        Declaration(Type.FEATUREMAP, Type.NV12)


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize(("train", "rt"), [(a, b) for a in COLOURS for b in COLOURS if b in LEGAL[a]])
def test_colours_go_there_and_back(train: Type, rt: Type, layout: Layout) -> None:
    declared = Declaration(train, rt, layout, MEAN, SCALE)
    raw = floats(picture(), declared)
    made = runtime_of("x", raw, declared)
    assert made["x"].shape == (1, 12, 20, 3)
    assert made["x"].dtype == np.uint8
    back = raw_of("x", made, declared)
    assert back.shape == raw.shape
    pixels = 3.0 if rt is Type.YUV444 is not train else 0.5
    assert np.abs(back - raw).max() <= pixels * max(SCALE)


@pytest.mark.parametrize("video", [False, True])
@pytest.mark.parametrize("train", COLOURS)
def test_nv12_makes_two_tensors_and_loses_little_of_smooth_pictures(train: Type, video: bool) -> None:
    declared = Declaration(train, Type.NV12, Layout.NCHW, MEAN, SCALE, video)
    raw = floats(picture(), declared)
    made = runtime_of("image", raw, declared)
    assert {name: value.shape for name, value in made.items()} == {
        "image_y": (1, 12, 20, 1),
        "image_uv": (1, 6, 10, 2),
    }
    if video:
        assert made["image_y"].min() >= 16
        assert made["image_y"].max() <= 235
    # saturated colours lie outside of what Y, U and V in 8 bits can say; most do not
    away = np.abs(raw_of("image", made, declared) - raw)
    assert np.median(away) <= 2 * max(SCALE)


def test_grey_keeps_its_axes_and_feature_maps_are_handed_on() -> None:
    grey = Declaration(Type.GRAY, Type.GRAY, Layout.NCHW, (128.0,), (1 / 128,))
    raw = ((picture()[:, :, :1] - 128.0) / 128).astype(np.float32).transpose(2, 0, 1)[None]
    made = runtime_of("x", raw, grey)
    assert made["x"].shape == (1, 1, 12, 20)
    np.testing.assert_allclose(raw_of("x", made, grey), raw, atol=1e-6)
    state = np.random.default_rng(0).normal(size=(1, 7)).astype(np.float32)
    assert runtime_of("state", state, Declaration()) == {"state": state}
    assert raw_of("state", {"state": state}, Declaration()) is state


@given(st.integers(0, 2**32), st.booleans())
def test_luma_survives_planes_and_back(seed: int, video: bool) -> None:
    rgb = np.random.default_rng(seed).integers(0, 256, (4, 6, 3), dtype=np.uint8)
    luma, chroma = nv12(rgb, video=video)
    values = ycbcr_of(luma, chroma, video=video)
    assert np.abs(values[:, :, 0] - ycbcr(rgb)[:, :, 0]).max() <= (0.6 if video else 0.5) + 1e-9


@pytest.mark.parametrize(
    ("raw", "declared", "said"),
    [
        (np.zeros((1, 4, 8, 8)), Declaration(Type.RGB, Type.NV12), r"wants \(1, 3, height, width\)"),
        (np.zeros((1, 3, 8, 8)), Declaration(Type.RGB, Type.BGR, Layout.NHWC), r"wants \(1, height, width, 3\)"),
        (np.zeros((2, 3, 8, 8)), Declaration(Type.RGB, Type.BGR), "shape"),
        (np.zeros((1, 3, 7, 8)), Declaration(Type.RGB, Type.NV12), "even height and width"),
        (np.full((1, 3, 8, 8), 300.0), Declaration(Type.RGB, Type.NV12), "mean and scale are not those"),
        (np.full((1, 3, 8, 8), np.nan), Declaration(Type.RGB, Type.NV12), "mean and scale are not those"),
    ],
)
def test_a_tensor_that_is_not_as_declared_is_said(raw: np.ndarray, declared: Declaration, said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        runtime_of("x", raw, declared)


def test_runtime_tensors_that_are_missing_or_odd_are_said() -> None:
    declared = Declaration(Type.RGB, Type.NV12)
    with pytest.raises(DeclarationError, match="x_y is missing"):
        raw_of("x", {}, declared)
    with pytest.raises(DeclarationError, match="wanted"):
        raw_of("x", {"x_y": np.zeros((1, 4, 4, 1)), "x_uv": np.zeros((1, 4, 4, 2))}, declared)


def test_an_input_of_the_resizer_is_fed_its_region() -> None:
    whole = Declaration(Type.RGB, Type.NV12, Layout.NCHW, MEAN, SCALE, roi=(0, 0, 19, 11), roi_input="box")
    raw = floats(picture(), whole)
    made = runtime_of("image", raw, whole)
    assert sorted(made) == ["box", "image_uv", "image_y"]
    assert made["box"].dtype == np.int32
    assert made["box"].tolist() == [[0, 0, 19, 11]]
    part = Declaration(Type.RGB, Type.NV12, Layout.NCHW, MEAN, SCALE, roi=(0, 0, 9, 11))
    with pytest.raises(DeclarationError, match="give runtime samples"):
        runtime_of("image", raw, part)
    for wrong in ((4, 0, 3, 5), (-1, 0, 3, 5)):
        with pytest.raises(DeclarationError, match="left, top, right, bottom"):
            Declaration(Type.RGB, Type.NV12, roi=wrong)
    with pytest.raises(DeclarationError, match="takes nv12 and gray"):
        Declaration(Type.RGB, Type.BGR, roi=(0, 0, 1, 1))


def test_a_region_of_recordings_is_no_input_of_the_float_model(tmp_path: Path) -> None:
    declared = Declaration(Type.RGB, Type.NV12, Layout.NCHW, MEAN, SCALE, roi=(0, 0, 19, 11))
    planes: dict[str, Any] = runtime_of("image", floats(picture(), declared), declared)
    np.savez(tmp_path / "nv12.npz", **planes)
    words = {"train": "rgb", "rt": "nv12", "mean": list(MEAN), "scale": list(SCALE), "roi": [0, 0, 19, 11]}
    settings = SampleSettings.model_validate({"runtime": "nv12.npz", "declared": {"image": words}})
    feeds = settings.data(tmp_path).read("0000")
    assert list(feeds[FeedKind.RAW]) == ["image"]
    assert sorted(feeds[FeedKind.RUNTIME]) == ["image_roi", "image_uv", "image_y"]


def test_raw_samples_are_made_of_nv12_recordings(tmp_path: Path) -> None:
    declared = Declaration(Type.RGB, Type.NV12, Layout.NCHW, MEAN, SCALE)
    planes = [runtime_of("image", floats(picture(seed=seed), declared), declared) for seed in range(3)]
    together: dict[str, Any] = {name: np.concatenate([p[name] for p in planes]) for name in planes[0]}
    np.savez(tmp_path / "nv12.npz", **together)
    declaration = {"train": "rgb", "rt": "nv12", "mean": list(MEAN), "scale": list(SCALE)}
    settings = SampleSettings.model_validate({"runtime": "nv12.npz", "declared": {"image": declaration}})
    data = settings.data(tmp_path)
    feeds = data.read("0001")
    assert feeds[FeedKind.RAW]["image"].shape == (1, 3, 12, 20)
    np.testing.assert_array_equal(feeds[FeedKind.RAW]["image"], raw_of("image", planes[1], declared))
    np.savez(tmp_path / "other.npz", x=np.zeros((2, 3, 8, 8), np.float32))
    raw = SampleSettings.model_validate({"raw": "other.npz", "declared": {"image": declaration}})
    with pytest.raises(SampleError, match="has no image, which are declared"):
        raw.data(tmp_path).read("0000")


def test_several_cameras_and_vectors_go_together(tmp_path: Path) -> None:
    front = Declaration(Type.RGB, Type.NV12, Layout.NCHW, MEAN, SCALE)
    rear = Declaration(Type.BGR, Type.YUV444, Layout.NHWC)
    raw: dict[str, Any] = {
        "front": floats(picture(), front),
        "rear": floats(picture(8, 6, seed=1), rear),
        "pose": np.arange(7, dtype=np.float32)[None],
    }
    np.savez(tmp_path / "raw.npz", **raw)
    words = {
        "front": {"train": "rgb", "rt": "nv12", "mean": list(MEAN), "scale": list(SCALE)},
        "rear": {"train": "bgr", "rt": "yuv444", "layout": "NHWC"},
    }
    settings = SampleSettings.model_validate({"raw": "raw.npz", "declared": words})
    feeds = settings.data(tmp_path).read("0000")[FeedKind.RUNTIME]
    shapes = {name: value.shape for name, value in feeds.items()}
    assert shapes == {"front_y": (1, 12, 20, 1), "front_uv": (1, 6, 10, 2), "rear": (1, 8, 6, 3), "pose": (1, 7)}
    np.testing.assert_array_equal(feeds["pose"], raw["pose"])
    np.testing.assert_array_equal(feeds["front_y"], runtime_of("front", raw["front"], front)["front_y"])


@pytest.mark.parametrize(
    ("declaration", "said"),
    [
        ({"train": "gray", "rt": "nv12"}, "gray cannot become nv12"),
        ({"train": "rgb", "rt": "bgr", "std": 2, "scale": 3}, "scale or std, not both"),
        ({"train": "rgb", "rt": "bgr", "std": 0}, "must not be 0"),
    ],
)
def test_declarations_that_cannot_be_are_refused(declaration: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        SampleSettings.model_validate({"raw": "x.npz", "declared": {"x": declaration}})
