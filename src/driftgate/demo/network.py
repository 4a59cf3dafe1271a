"""The demo's network: its layers as a table, its tensors by name, its weights with batch normalisation folded in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

EPSILON = 1e-5  # PyTorch's, in BatchNorm2d
CLASSES = 10
SIDE = 8  # pixels
WHITE = 16  # the brightest grey of an image; the network eats 0..1

# Tensors carry the names PyTorch's exporter gives them.
INPUT = "input"
RELU1 = "/relu1/Relu_output_0"
RELU2 = "/relu2/Relu_output_0"
BRANCH = "/bn3/BatchNormalization_output_0"
SUM = "/Add_output_0"
JOINED = "/relu3/Relu_output_0"
RELU4 = "/relu4/Relu_output_0"
POOLED = "/pool/MaxPool_output_0"
FLAT = "/Flatten_output_0"
LOGITS = "logits"


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer with weights, as a convolution; the last one is a Gemm in float, and covers its whole input.

    `source` and `target` are the tensors it reads and, after normalisation and ReLU, writes; `norm` and `relu` are
    the modules of these two, empty where there is none.
    """

    name: str
    source: str
    target: str
    norm: str = ""
    relu: str = ""
    kernel: int = 3
    padding: int = 0
    stride: int = 1
    groups: int = 1

    @property
    def convolved(self) -> str:
        """The tensor before batch normalisation."""
        return f"/{self.name}/Conv_output_0"

    @property
    def normalised(self) -> str:
        """The tensor after batch normalisation, before any ReLU."""
        return f"/{self.norm}/BatchNormalization_output_0"


CONV1 = Layer("conv1", INPUT, RELU1, norm="bn1", relu="relu1", padding=1)
DW2 = Layer("dw2", RELU1, RELU2, norm="bn2", relu="relu2", padding=1, groups=16)
PW3 = Layer("pw3", RELU2, BRANCH, norm="bn3", kernel=1)
CONV4 = Layer("conv4", JOINED, RELU4, norm="bn4", relu="relu4", padding=1, stride=2)
FC = Layer("fc", POOLED, LOGITS, kernel=2)

LAYERS = (CONV1, DW2, PW3, CONV4, FC)


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """What a layer multiplies with and adds: weight (out, in / groups, kernel, kernel), bias (out,)."""

    weight: Floats
    bias: Floats


def load(name: str) -> dict[str, NDArray[np.generic]]:
    """The arrays of one of the archives that ship with the demo: weights, digits or pytorch."""
    with (
        as_file(files("driftgate.demo") / "data" / f"{name}.npz") as path,
        np.load(path, allow_pickle=False) as archive,
    ):
        return dict(archive)


def load_weights() -> dict[str, Floats]:
    """Trained parameters and statistics by their PyTorch names."""
    return {name: array.astype(np.float32) for name, array in load("weights").items()}


def fold(weights: Mapping[str, Floats], *, epsilon: float = EPSILON) -> dict[str, Affine]:
    """Every layer's weight and bias with its batch normalisation multiplied in; `epsilon` is the latter's."""
    return {layer.name: _folded(layer, weights, epsilon) for layer in LAYERS}


def _folded(layer: Layer, weights: Mapping[str, Floats], epsilon: float) -> Affine:
    weight, bias = weights[f"{layer.name}.weight"], weights[f"{layer.name}.bias"]
    if not layer.norm:
        return Affine(weight.reshape(len(weight), -1, layer.kernel, layer.kernel), bias)
    gamma, beta, mean, variance = (
        weights[f"{layer.norm}.{part}"].astype(np.float64) for part in ("weight", "bias", "running_mean", "running_var")
    )
    gain = gamma / np.sqrt(variance + epsilon)
    return Affine(
        (weight * gain[:, None, None, None]).astype(np.float32), ((bias - mean) * gain + beta).astype(np.float32)
    )
