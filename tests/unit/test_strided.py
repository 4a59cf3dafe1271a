"""Tensors in a board's memory: there and back against numpy's own padding, and buffers that cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftgate.transforms.strided import Layout, StrideError, bytes_of, dense_strides, nv12_stride, tensor_of

TYPES = st.sampled_from(["int8", "uint8", "int16", "int32", "float16", "float32", "bool"])


@given(TYPES, st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_padded_tensors_are_read_as_numpy_pads_them(dtype: str, lengths: list[int], data: st.DataObject) -> None:
    """The whole buffer is a larger dense tensor, of which the valid one is a corner."""
    shape = tuple(lengths)
    larger = tuple(n + data.draw(st.integers(0, 3)) for n in shape)
    bits = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    whole = bits.integers(0, 2 if dtype == "bool" else 100, larger).astype(dtype)
    layout = Layout(dtype, shape, dense_strides(larger, np.dtype(dtype).itemsize))
    found = tensor_of(whole.tobytes(), layout) if larger != shape else tensor_of(whole.tobytes(), Layout(dtype, shape))
    valid = whole[tuple(slice(n) for n in shape)]
    assert found.dtype.name == dtype
    np.testing.assert_array_equal(found, valid)
    again = bytes_of(found, layout, total_bytes=whole.nbytes)
    np.testing.assert_array_equal(tensor_of(again, layout), valid)


def test_padding_that_was_removed_already_is_no_padding() -> None:
    layout = Layout("int16", (2, 3), (64, 2))
    valid = np.arange(6, dtype=np.int16).reshape(2, 3)
    np.testing.assert_array_equal(tensor_of(valid.tobytes(), layout), valid)
    np.testing.assert_array_equal(tensor_of(bytes_of(valid, layout), layout), valid)
    assert len(bytes_of(valid, layout)) == layout.reach_bytes == 64 + 6


@pytest.mark.parametrize(
    ("layout", "length"),
    [
        (Layout("int16", (2, 3), (64, 2)), 30),
        (Layout("int16", (2, 3), (4, 2)), 64),  # rows overlap
        (Layout("int16", (2, 3), (64,)), 64),
        (Layout("int16", (2, 3), (-64, 2)), 64),
        (Layout("float32", (3,)), 11),
    ],
)
def test_buffers_that_cannot_be_the_tensor_are_refused(layout: Layout, length: int) -> None:
    with pytest.raises(StrideError, match=r"int16|float32"):
        tensor_of(bytes(length), layout)


def test_a_tensor_of_another_kind_is_not_written() -> None:
    layout = Layout("uint8", (1, 4), (32, 1))
    with pytest.raises(StrideError, match="float32, wanted"):
        bytes_of(np.zeros((1, 4), np.float32), layout)
    with pytest.raises(StrideError, match="wanted 4 and more"):
        bytes_of(np.zeros((1, 4), np.uint8), layout, total_bytes=3)


@pytest.mark.parametrize(
    ("shape", "w_stride", "wanted"),
    [
        ((1, 112, 112, 2), 32, (25088, 224, 2, 1)),  # toolchain facts §9
        ((1, 2, 300, 1), 32, (640, 320, 1, 1)),
        ((1, 2, 300, 1), 64, (640, 320, 1, 1)),
        ((1, 2, 40, 1), 64, (128, 64, 1, 1)),
    ],
)
def test_planes_are_aligned_as_the_platform_wants(
    shape: tuple[int, ...], w_stride: int, wanted: tuple[int, ...]
) -> None:
    assert nv12_stride(shape, w_stride) == wanted
