"""MTCNN's networks, face networks of 2016 from PyTorch to INT8, on the 200 labelled faces of scikit-image."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from skimage.data import lfw_subset  # type: ignore[import-not-found]
from skimage.transform import resize  # type: ignore[import-not-found]

from support.field.quantize import EXACT_KERNELS, calibrate, optimise
from support.field.wheels import FACENET, members

SIDE = 48
FACES = 100  # the first hundred images show faces, the others none

ONET, RNET = ("box", "landmarks", "probability"), ("box", "probability")

LOADER = Path(__file__).with_name("onet_loader.py")


def images(side: int = SIDE) -> NDArray[np.float32]:
    """(200, 3, side, side), grey in three channels, normalised as MTCNN does."""
    grey = np.stack([resize(image, (side, side), order=1, anti_aliasing=False) for image in lfw_subset()])
    pixels = np.repeat(grey[:, None], 3, axis=1) * 255
    return ((pixels - 127.5) / 128).astype(np.float32)


def build(folder: Path) -> None:
    """Lay out a user's project: network, weights, the exported and deployed forms, samples and labels.

    `mtcnn.py onet.pt onet_loader.py onet.onnx onet_optimized.onnx onet_calibrated.onnx onet_ptq.onnx
    faces.npz labels.npz`; the feed is `image`, the outputs are `box`, `landmarks` and `probability`.
    """
    _lay_out(folder)
    faces = images()
    np.savez(folder / "faces.npz", image=faces)
    np.savez(folder / "labels.npz", labels=(np.arange(len(faces)) < FACES).astype(np.int64))
    _write(folder, "ONet", faces[:1], ONET)
    optimise(folder / "onet.onnx", folder / "onet_optimized.onnx", "extended")
    calibration = [{"image": face[None]} for face in faces[::5]]
    calibrated = calibrate(folder / "onet.onnx", folder / "onet_calibrated.onnx", calibration, weight_bits=8)
    optimise(calibrated, folder / "onet_ptq.onnx", "extended", EXACT_KERNELS)


def export_rnet(folder: Path, example: NDArray[np.float32]) -> None:
    """Write `mtcnn.py rnet.pt onet_loader.py rnet.onnx`, for pictures of 24 × 24."""
    _lay_out(folder)
    _write(folder, "RNet", example, RNET)


def export_onet(folder: Path, example: NDArray[np.float32]) -> None:
    """Write `mtcnn.py onet.pt onet_loader.py onet.onnx`, as many pictures at a time as in the example."""
    _lay_out(folder)
    _write(folder, "ONet", example, ONET)


def _lay_out(folder: Path) -> None:
    for name, source in members(FACENET).items():
        shutil.copyfile(source, folder / name)
    shutil.copyfile(LOADER, folder / LOADER.name)


def _write(folder: Path, name: str, example: NDArray[np.float32], outputs: tuple[str, ...]) -> None:
    import torch  # type: ignore[import-not-found]

    from support.field.onet_loader import network

    made = network(name, folder).eval()
    made.load_state_dict(torch.load(folder / f"{name.lower()}.pt", weights_only=True))
    torch.onnx.export(
        made,
        (torch.from_numpy(example),),
        str(folder / f"{name.lower()}.onnx"),
        dynamo=False,
        opset_version=17,
        input_names=["image"],
        output_names=list(outputs),
    )
