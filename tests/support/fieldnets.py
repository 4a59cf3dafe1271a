"""Networks of others for the tests of localisation: PP-OCR's classifier and detector, MTCNN's ONet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import version_converter
from skimage.data import page  # type: ignore[import-not-found]
from skimage.transform import resize  # type: ignore[import-not-found]

from support.field import mtcnn, ppocr
from support.field.wheels import RAPIDOCR, Wheel, members
from support.nets import Network

OPSET = 17  # the first that has all the operators which optimisers make
SIDE = 160
DETECTOR = Wheel(RAPIDOCR.name, RAPIDOCR.version, ("rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",))


def classifier(folder: Path) -> Network:
    """PP-OCR's text direction classifier on two strips of text."""
    (shipped,) = members(RAPIDOCR).values()
    strips = ppocr.strips()
    feeds = {str(number): {"x": strips[number : number + 1]} for number in (1, 6)}
    return Network("PP-OCR cls", _converted(shipped, ppocr.SHAPE), feeds)


def detector(folder: Path) -> Network:
    """PP-OCR's text detector on a page and on a part of it, 160 pixels wide and high."""
    (shipped,) = members(DETECTOR).values()
    views = (resize(page(), (SIDE, SIDE)), resize(page()[60:190, :200], (SIDE, SIDE)))
    shape = (1, 3, SIDE, SIDE)
    feeds = {
        str(number): {"x": np.broadcast_to((view - 0.485) / 0.225, shape).astype(np.float32)}
        for number, view in enumerate(views)
    }
    return Network("PP-OCR det", _converted(shipped, shape), feeds)


def face_network(folder: Path) -> Network:
    """MTCNN's ONet as exported, on a face and on something else."""
    mtcnn.build(folder)
    images = mtcnn.images()
    feeds = {str(number): {"image": images[number : number + 1]} for number in (1, 116)}
    return Network("MTCNN ONet", onnx.load(str(folder / "onet.onnx")), feeds)


def _converted(path: Path, shape: Sequence[int]) -> onnx.ModelProto:
    """A shipped model of opset 11 in a newer one, with the shape of its input and names for all its nodes."""
    model = version_converter.convert_version(onnx.load(str(path)), OPSET)
    for dimension, size in zip(model.graph.input[0].type.tensor_type.shape.dim, shape, strict=True):
        dimension.dim_value = size
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"node_{number}"
    return model
