"""Images to tensors: geometry, resizing, colours and layouts, each against formulas or tools used otherwise."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from driftgate.errors import SampleError
from driftgate.transforms.colours import Colour, coloured
from driftgate.transforms.geometry import Fit, Place, Resize, placed
from driftgate.transforms.images import decoded, decoder, fitted, resize, size_of
from driftgate.transforms.layouts import ElementType, Layout, Range, encoded
from driftgate.transforms.nv12 import nv12
from driftgate.transforms.resampling import Filter, resampled
from support.images import Pixels, encoding, fit, picture, save, turned

length = st.integers(1, 3000)
small = st.integers(1, 700)

# --- geometry


@given(width=length, height=length, rows=small, columns=small, place=st.sampled_from(Place))
def test_a_letterbox_has_the_whole_image_at_its_own_proportions(
    width: int, height: int, rows: int, columns: int, place: Place
) -> None:
    found = placed(width, height, fit(size=(rows, columns), place=place))
    scale = min(columns / width, rows / height)
    assert columns == found.resized_width or rows == found.resized_height
    assert abs(found.resized_width - max(1, width * scale)) <= 0.5 + 1e-9
    assert abs(found.resized_height - max(1, height * scale)) <= 0.5 + 1e-9
    right, bottom = columns - found.left - found.resized_width, rows - found.top - found.resized_height
    assert min(found.left, found.top, right, bottom) >= 0
    wanted = {Place.CENTRE: (right - found.left in (0, 1), bottom - found.top in (0, 1)), Place.CORNER: (True, True)}
    assert wanted[place] == (True, True)
    assert place is Place.CENTRE or (found.left, found.top) == (0, 0)


@given(width=length, height=length, rows=small, columns=small, more=st.one_of(st.none(), st.integers(0, 300)))
def test_a_crop_leaves_nothing_empty_and_cuts_the_middle(
    width: int, height: int, rows: int, columns: int, more: int | None
) -> None:
    shorter = None if more is None else max(rows, columns) + more
    found = placed(width, height, fit(size=(rows, columns), resize=Resize.CROP, shorter=shorter))
    assert found.left <= 0 <= found.left + found.resized_width - columns
    assert found.top <= 0 <= found.top + found.resized_height - rows
    assert abs(2 * -found.left - (found.resized_width - columns)) <= 1
    assert abs(2 * -found.top - (found.resized_height - rows)) <= 1
    if shorter is None:
        assert found.resized_width == columns or found.resized_height == rows
    else:
        assert min(found.resized_width, found.resized_height) == shorter
        assert max(found.resized_width, found.resized_height) == int(shorter * max(width, height) / min(width, height))


boxes = st.lists(st.tuples(*[st.floats(0, 3000)] * 4), max_size=5).map(lambda b: np.array(b, float).reshape(-1, 4))


@given(width=length, height=length, rows=small, columns=small, resized=st.sampled_from(Resize), box=boxes)
def test_boxes_go_to_the_network_and_come_back(
    width: int, height: int, rows: int, columns: int, resized: Resize, box: NDArray[np.float64]
) -> None:
    found = placed(width, height, fit(size=(rows, columns), resize=resized))
    assert np.allclose(found.to_image(found.to_network(box)), box, atol=1e-6)
    corners = found.to_network(np.array([[0.0, 0.0, width, height]]))[0]
    assert np.allclose(corners - [found.left, found.top] * 2, [0, 0, found.resized_width, found.resized_height])


def test_a_bright_spot_is_where_the_geometry_says() -> None:
    for size in ((90, 40), (30, 77)):
        pixels = np.zeros((size[1], size[0], 3), np.uint8)
        x, y = size[0] // 2, size[1] // 2
        pixels[y - 6 : y + 4, x - 8 : x + 5] = 255
        for resized in (Resize.LETTERBOX, Resize.STRETCH, Resize.CROP):
            canvas, geometry = fitted(pixels, fit(size=(64, 64), resize=resized, pad=(0, 0, 0)), name="x")
            rows, columns = np.nonzero(canvas[:, :, 0] > 127)
            seen = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
            wanted = geometry.to_network(np.array([[x - 8.0, y - 6, x + 5, y + 4]]))[0]
            assert np.abs(seen - wanted).max() <= 1


def test_known_letterboxes() -> None:
    """As ultralytics and torchvision come to them."""
    cases: list[tuple[int, int, Fit, tuple[int, ...]]] = [
        (1280, 720, fit(size=(640, 640)), (640, 360, 0, 140)),
        (810, 1080, fit(size=(640, 640)), (480, 640, 80, 0)),
        (333, 500, fit(size=(640, 640)), (426, 640, 107, 0)),
        (500, 333, fit(size=(224, 224), resize=Resize.CROP, shorter=256), (384, 256, -80, -16)),
        (333, 500, fit(size=(224, 224), resize=Resize.CROP, shorter=256), (256, 384, -16, -80)),
    ]
    for width, height, wanted, numbers in cases:
        found = placed(width, height, wanted)
        assert (found.resized_width, found.resized_height, found.left, found.top) == numbers


# --- bringing to size


def test_a_letterbox_is_the_resized_image_in_a_frame() -> None:
    pixels = picture(60, 30)
    canvas, geometry = fitted(pixels, fit(size=(40, 48), pad=(1, 2, 3)), name="x")
    inside = np.asarray(Image.fromarray(pixels).resize((48, 24), Image.Resampling.BILINEAR))
    assert (geometry.left, geometry.top) == (0, 8)
    assert np.array_equal(canvas[8:32], inside)
    assert {tuple(int(v) for v in pixel) for pixel in np.concatenate([canvas[:8], canvas[32:]]).reshape(-1, 3)} == {
        (1, 2, 3)
    }


def test_a_crop_is_the_middle_of_the_resized_image() -> None:
    pixels = picture(60, 30)
    canvas, _ = fitted(pixels, fit(size=(20, 20), resize=Resize.CROP, shorter=24), name="x")
    whole = Image.fromarray(pixels).resize((48, 24), Image.Resampling.BILINEAR)
    assert np.array_equal(canvas, np.asarray(whole.crop((14, 2, 34, 22))))


def test_without_resizing_every_image_must_have_the_size() -> None:
    pixels = picture(48, 32)
    canvas, _ = fitted(pixels, fit(resize=Resize.NONE), name="x")
    assert np.array_equal(canvas, pixels)
    assert fitted(picture(5, 9), fit(resize=Resize.NONE, size=None), name="x")[0].shape == (9, 5, 3)
    with pytest.raises(SampleError, match="image x has 32 × 48 pixels, wanted 48 × 32"):
        fitted(picture(32, 48), fit(resize=Resize.NONE), name="x")


def test_an_image_that_would_become_huge_is_refused() -> None:
    with pytest.raises(SampleError, match="image x of 3000 × 1 pixels"):
        fitted(picture(3000, 1), fit(size=(640, 640), resize=Resize.CROP), name="x")


SIZES = [((37, 53), (64, 64)), ((60, 90), (19, 30)), ((31, 29), (31, 64)), ((48, 48), (16, 24)), ((5, 7), (1, 1))]


def interpolated(pixels: Pixels, height: int, width: int, kernel: Callable[[float], float], reach: int) -> Pixels:
    """The textbook sum over a neighbourhood, pixel by pixel."""

    def along(values: NDArray[np.float64], target: int) -> NDArray[np.float64]:
        source = len(values)
        out = np.zeros((target, *values.shape[1:]))
        for i in range(target):
            middle = (i + 0.5) * source / target - 0.5
            for j in range(int(np.floor(middle)) - reach + 1, int(np.floor(middle)) + reach + 1):
                out[i] += kernel(abs(middle - j)) * values[min(max(j, 0), source - 1)]
        return out

    both = along(along(pixels.astype(float), height).transpose(1, 0, 2), width).transpose(1, 0, 2)
    found: Pixels = np.clip(np.rint(both), 0, 255).astype(np.uint8)
    return found


def linear(distance: float) -> float:
    return max(0.0, 1 - distance)


def cubic(d: float) -> float:
    """Keys' kernel with a = -0.75."""
    a = -0.75
    if d <= 1:
        return float((a + 2) * d**3 - (a + 3) * d**2 + 1)
    return float(a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a) if d < 2 else 0.0


@pytest.mark.parametrize(("source", "target"), SIZES)
def test_without_antialiasing_a_pixel_is_interpolated_from_its_neighbours(
    source: tuple[int, int], target: tuple[int, int]
) -> None:
    pixels = picture(source[1], source[0])
    for filter, kernel, reach in ((Filter.BILINEAR, linear, 1), (Filter.BICUBIC, cubic, 2)):
        found = resize(pixels, *target, filter, antialias=False)
        assert np.abs(found.astype(int) - interpolated(pixels, *target, kernel, reach)).max() <= 1  # ties at .5


@pytest.mark.parametrize(("source", "target"), SIZES)
def test_area_is_the_mean_of_what_a_pixel_covers(source: tuple[int, int], target: tuple[int, int]) -> None:
    """Every pixel repeated to a common multiple of both sizes, then plain means."""
    pixels = picture(source[1], source[0])
    fine = pixels.repeat(target[0], 0).repeat(target[1], 1).astype(float)
    means = fine.reshape(target[0], source[0], target[1], source[1], 3).mean((1, 3))
    assert np.abs(resampled(pixels, *target, Filter.AREA) - means).max() <= 0.5 + 1e-6


def test_antialiased_filters_are_pillows() -> None:
    pixels = picture(90, 60)
    for filter in (Filter.NEAREST, Filter.BILINEAR, Filter.BICUBIC, Filter.LANCZOS):
        wanted = Image.fromarray(pixels).resize((31, 17), Image.Resampling[filter.name])
        assert np.array_equal(resize(pixels, 17, 31, filter, antialias=True), np.asarray(wanted))
    rows, columns = ((np.arange(n) + 0.5) * m / n for n, m in ((17, 60), (31, 90)))
    nearest = pixels[np.floor(rows).astype(int)][:, np.floor(columns).astype(int)]
    assert np.array_equal(resize(pixels, 17, 31, Filter.NEAREST, antialias=False), nearest)


@settings(max_examples=30)
@given(
    height=st.integers(1, 40), width=st.integers(1, 40), rows=st.integers(1, 40), columns=st.integers(1, 40),
    value=st.integers(0, 255), filter=st.sampled_from(Filter),
)  # fmt: skip
def test_a_plain_image_stays_plain(
    height: int, width: int, rows: int, columns: int, value: int, filter: Filter
) -> None:
    pixels = np.full((height, width, 3), value, np.uint8)
    found = resize(pixels, rows, columns, filter, antialias=filter is Filter.LANCZOS)
    assert found.shape == (rows, columns, 3)
    assert (found == value).all()


# --- colours, ranges, layouts


def bt601(rgb: Pixels) -> NDArray[np.float64]:
    """JFIF's definition, from the luma's weights alone: Cb = (B - Y) / 1.772 + 128, Cr = (R - Y) / 1.402 + 128."""
    r, g, b = (rgb[..., c].astype(float) for c in range(3))
    y = 0.299 * r + 0.587 * g + 0.114 * b
    return np.stack([y, (b - y) / 1.772 + 128, (r - y) / 1.402 + 128], -1)


def corners_of_colour() -> Pixels:
    """All combinations of six levels, as an image of even sides."""
    levels = np.array([0, 1, 77, 128, 254, 255])
    return np.stack(np.meshgrid(levels, levels, levels), -1).reshape(18, 12, 3).astype(np.uint8)


def test_yuv444_is_full_range_bt601() -> None:
    rgb = corners_of_colour()
    found = coloured(rgb, Colour.YUV444)
    assert np.abs(found - np.clip(bt601(rgb), 0, 255)).max() <= 0.5 + 1e-3
    pillow = np.asarray(Image.fromarray(rgb).convert("YCbCr")).astype(int)
    assert np.abs(found.astype(int) - pillow).max() <= 1


def test_gray_is_the_luma() -> None:
    rgb = corners_of_colour()
    found = coloured(rgb, Colour.GRAY)
    assert found.shape == (18, 12, 1)
    assert np.abs(found[..., 0] - bt601(rgb)[..., 0]).max() <= 0.5 + 1e-9
    assert np.abs(found[..., 0].astype(int) - np.asarray(Image.fromarray(rgb).convert("L"))).max() <= 1
    same = np.arange(256, dtype=np.uint8).reshape(16, 16, 1).repeat(3, 2)
    assert np.array_equal(coloured(same, Colour.GRAY), same[:, :, :1])


def test_nv12_has_a_luma_for_each_pixel_and_a_chroma_for_four() -> None:
    rgb = corners_of_colour()
    y, uv = nv12(rgb)
    assert (y.shape, uv.shape) == ((1, 18, 12, 1), (1, 9, 6, 2))
    assert np.array_equal(y[0], coloured(rgb, Colour.YUV444)[:, :, :1])
    full = bt601(rgb)[..., 1:]
    means = (full[::2, ::2] + full[1::2, ::2] + full[::2, 1::2] + full[1::2, 1::2]) / 4
    assert np.abs(uv[0] - np.clip(means, 0, 255)).max() <= 0.5 + 1e-3


def test_nv12_of_known_colours() -> None:
    """Red, and U before V: NV21 would have 255 first."""
    y, uv = nv12(np.full((2, 2, 3), [255, 0, 0], np.uint8))
    assert (y[0, 0, 0, 0], *uv[0, 0, 0]) == (76, 85, 255)


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("range", Range)
@pytest.mark.parametrize("colour", [Colour.RGB, Colour.BGR, Colour.GRAY])
def test_a_feed_is_what_its_declaration_says(layout: Layout, range: Range, colour: Colour) -> None:
    rgb = picture(6, 4)
    mean, std = ((0.4, 0.5, 0.6), (0.2, 0.25, 0.3)) if colour is not Colour.GRAY else ((0.4,), (0.2,))
    made = encoded(rgb, encoding(layout=layout, range=range, colour=colour, mean=mean, std=std))["images"]
    assert made.dtype == np.float32
    pixel = rgb[3, 1].astype(float)
    numbers = {Colour.RGB: pixel, Colour.BGR: pixel[::-1], Colour.GRAY: coloured(rgb, Colour.GRAY)[3, 1] + 0.0}[colour]
    scaled = {Range.UNIT: numbers / 255, Range.BYTE: numbers * 1.0, Range.SIGNED: numbers * 2 / 255 - 1}[range]
    at = made[0, 3, 1] if layout is Layout.NHWC else made[0, :, 3, 1]
    assert np.allclose(at, (scaled - np.array(mean)) / np.array(std), rtol=1e-6, atol=1e-6)
    assert made.shape == ((1, 4, 6, len(mean)) if layout is Layout.NHWC else (1, len(mean), 4, 6))


def test_8_bit_feeds_are_the_pixels_and_never_share_memory() -> None:
    rgb = picture(6, 4)
    before = rgb.copy()
    plain = encoding(dtype=ElementType.UINT8, range=Range.BYTE, layout=Layout.NHWC)
    made = encoded(rgb, plain)["images"]
    assert made.dtype == np.uint8
    assert np.array_equal(made[0], rgb)
    made[:] = 0
    assert np.array_equal(rgb, before)
    names = encoded(rgb, encoding(colour=Colour.NV12, feed="data"))
    assert {name: tensor.shape for name, tensor in names.items()} == {"data_y": (1, 4, 6, 1), "data_uv": (1, 2, 3, 2)}


# --- files


def read(path: Path) -> Pixels:
    with path.open("rb") as file:
        return decoded(file, name=path.name)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_upright(tmp_path: Path, orientation: int) -> None:
    """By EXIF: what the camera stored is the scene, transposed and flipped."""
    stored = picture(20, 12)
    path = save(tmp_path / "x.png", stored, exif=turned(orientation))
    scene: dict[int, Pixels] = {
        1: stored, 2: stored[:, ::-1], 3: stored[::-1, ::-1], 4: stored[::-1],
        5: stored.transpose(1, 0, 2), 6: np.rot90(stored, -1), 7: np.rot90(stored, 2).transpose(1, 0, 2),
        8: np.rot90(stored, 1),
    }  # fmt: skip
    assert np.array_equal(read(path), scene[orientation])
    with path.open("rb") as file:
        assert size_of(file, name="x") == (scene[orientation].shape[1], scene[orientation].shape[0])


def test_pixels_of_other_kinds_become_8_bit_rgb(tmp_path: Path) -> None:
    rgb = picture(10, 8)
    grey = rgb[:, :, 0]
    alpha = np.dstack([rgb, np.arange(80, dtype=np.uint8).reshape(8, 10)])
    deep = (grey.astype(np.uint16) << 8) + 200
    assert np.array_equal(read(save(tmp_path / "a.png", grey)), np.dstack([grey] * 3))
    assert np.array_equal(read(save(tmp_path / "b.png", alpha)), rgb)
    assert np.array_equal(read(save(tmp_path / "c.png", deep)), np.dstack([grey] * 3))
    assert np.array_equal(read(save(tmp_path / "d.tif", deep)), np.dstack([grey] * 3))
    assert np.array_equal(read(save(tmp_path / "e.png", grey > 99)), np.dstack([np.where(grey > 99, 255, 0)] * 3))

    palette = Image.fromarray(rgb).quantize(16)
    palette.save(tmp_path / "f.png", transparency=3)
    colours = np.array(palette.getpalette(), np.uint8).reshape(-1, 3)
    assert np.array_equal(read(tmp_path / "f.png"), colours[np.asarray(palette)])

    inks = np.dstack([rgb, grey // 2])
    Image.fromarray(inks, "CMYK").save(tmp_path / "g.tif")
    paper = (255 - inks[..., :3].astype(float)) * (255 - inks[..., 3:].astype(float)) / 255
    assert np.abs(read(tmp_path / "g.tif") - paper).max() <= 1


def test_pixels_without_a_rule_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "x.tif", picture(4, 4)[:, :, 0].astype(np.float32))
    with pytest.raises(SampleError, match=r"x\.tif has pixels of the kind F"):
        read(path)


def damage(content: bytes) -> dict[str, bytes]:
    return {"empty": b"", "cut": content[: len(content) // 2], "text": b"not an image", "head": content[:20]}


@pytest.mark.parametrize("ending", ["jpg", "png", "gif", "bmp", "tif", "webp", "ppm"])
def test_damaged_images_are_named(tmp_path: Path, ending: str) -> None:
    content = save(tmp_path / f"x.{ending}", picture(64, 48)).read_bytes()
    for kind, damaged in damage(content).items():
        with pytest.raises(SampleError) as caught:
            decoded(io.BytesIO(damaged), name="photo")
        assert [problem.code for problem in caught.value.problems] == ["image-damaged"], kind
        assert "image photo cannot be decoded" in str(caught.value)


def test_a_jpeg_is_decoded_as_its_encoder_meant_it(tmp_path: Path) -> None:
    pixels = np.repeat(np.repeat(picture(8, 6), 8, 0), 8, 1)
    path = save(tmp_path / "x.jpg", pixels, quality=100, subsampling=0)
    assert np.abs(read(path).astype(int) - pixels).max() <= 4


def test_the_decoder_says_its_versions() -> None:
    assert decoder().startswith(f"Pillow {PIL.__version__}, libjpeg")


def test_without_pillow_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(SampleError, match="pip install pillow"):
        decoder()
