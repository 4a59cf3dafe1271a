"""Versions of the embedded demo, each with another network, toolchain or samples.

All files are made anew. STAND-INs: numpy in double precision for PyTorch, a log as hb_compile writes it, and, as in the
demo itself, an integer-only engine for the .bc and the board.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx
import yaml
from numpy.typing import NDArray
from sklearn.datasets import load_digits  # type: ignore[import-untyped,unused-ignore]

from driftgate.demo import graphs
from driftgate.demo.board import run_on_board
from driftgate.demo.build import pixels
from driftgate.demo.engine import FixedPoint, Program, compile_program, quantize_input, run
from driftgate.demo.faults import as_compiled
from driftgate.demo.network import CLASSES, INPUT, LOGITS, POOLED, Floats, fold, load, load_weights
from driftgate.demo.quantize import Int8s, Quantized, forward, quantize
from driftgate.domain.platforms import PLATFORMS
from driftgate.domain.samples import SampleSet
from driftgate.storage.atomic import write_bytes
from driftgate.storage.manifest import Listing, write_manifest
from driftgate.storage.npz import write_npz
from driftgate.storage.tensorfiles import tensors_digest
from support.vendor.journal import Journal
from support.vendor.options import HBDK, HMCT, TOOL

Weights = Mapping[str, Floats]
Doubles = NDArray[np.float64]

TARGET, PREFIX = "J6M", "digits"
EVERY_NTH_EVALUATES = 5  # of scikit-learn's digits; the network was trained on the others
#: Places among the pictures: of the demo's own samples, then of the same ones moved down by a pixel.
HELD_OUT, MOVED = range(360), range(360, 720)
LEARNING_RATE = 0.05
MULTIPLIER_BITS, COARSE_BITS = 31, 8


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """How one version is made; the defaults are the demo's network, toolchain and samples.

    `samples` are places among the pictures, `mislabelled` those with a wrong digit. `packed`: files hold these samples
    only, and number them anew; else they hold all pictures, and samples.json tells which count.
    """

    weights: Weights = field(default_factory=load_weights)
    hmct: str = HMCT
    hbdk: str = HBDK
    compiled: Callable[[Program], Program] = as_compiled
    samples: Sequence[int] = HELD_OUT
    mislabelled: Sequence[int] = ()
    packed: bool = False


def early(steps: int) -> Weights:
    """The demo's weights with the last layer at the start of its training: after so many steps from zero."""
    digits = load_digits()
    trained_on = np.arange(len(digits.images)) % EVERY_NTH_EVALUATES != 0
    images = pixels(digits.images[trained_on][:, None], 1.0)
    known = load_weights()
    features = forward(fold(known), images)[POOLED].reshape(len(images), -1)
    wanted = np.eye(CLASSES)[digits.target[trained_on]]
    weight, bias = np.zeros((CLASSES, features.shape[1])), np.zeros(CLASSES)
    for _ in range(steps):
        slope = (_softmax(features @ weight.T + bias) - wanted) / len(features)
        weight, bias = weight - LEARNING_RATE * slope.T @ features, bias - LEARNING_RATE * slope.sum(0)
    return {**known, "fc.weight": weight.astype(np.float32), "fc.bias": bias.astype(np.float32)}


def _softmax(logits: Doubles) -> Doubles:
    powers = np.exp(logits - logits.max(1, keepdims=True))
    shares: Doubles = powers / powers.sum(1, keepdims=True)
    return shares


def widened(weights: Weights, channel: int, factor: int) -> Weights:
    """The same network in float, in which one channel behind dw2 has a range so many times as wide; a power of two, so
    that not a bit of the logits is another one."""
    made = {name: array.copy() for name, array in weights.items()}
    for name in ("bn2.weight", "bn2.bias"):
        made[name][channel] *= factor
    made["pw3.weight"][:, channel] /= factor
    return made


def coarser(program: Program) -> Program:
    """As another compiler may do it: every rescaling with a multiplier of 8 bits, not 31."""
    lost = 2 ** (MULTIPLIER_BITS - COARSE_BITS)

    def rounded(factors: FixedPoint) -> FixedPoint:
        return replace(factors, multiplier=np.rint(factors.multiplier / lost).astype(np.int64) * lost)

    instructions = program.instructions.items()
    made = {name: replace(one, rescale=rounded(one.rescale)) for name, one in instructions}
    return replace(program, instructions=made)


def pictures() -> tuple[Floats, NDArray[np.int64]]:
    """All pictures (720, 1, 8, 8) in 0..1, and the digits on them."""
    digits = load("digits")
    images = digits["evaluation"]
    moved = np.zeros_like(images)
    moved[:, :, 1:] = images[:, :, :-1]
    labels = digits["labels"].astype(np.int64)
    return pixels(np.concatenate([images, moved]), 1.0), np.concatenate([labels, labels])


def written(folder: Path, version: Version) -> Path:
    """The project of one version in a folder; returns its driftgate.yaml."""
    images, labels = pictures()
    labels[list(version.mislabelled)] = (labels[list(version.mislabelled)] + 1) % CLASSES
    places = list(version.samples) if version.packed else [*HELD_OUT, *MOVED]
    images, labels = images[places], labels[places]
    ids = np.array([f"{number:04}" for number in range(len(places))])
    counted = [str(sample) for sample, place in zip(ids, places, strict=True) if place in {*version.samples}]
    data = folder / "data"
    write_npz(data / "pictures.npz", {INPUT: images})
    write_npz(data / "labels.npz", {"labels": labels, "ids": ids})
    digests = tuple(tensors_digest({INPUT: images[int(sample)][None]}) for sample in counted)
    write_manifest(data / "samples.json", Listing(SampleSet(PREFIX, tuple(counted), digests)))

    layers = fold(version.weights)
    quantized = quantize(layers, pixels(load("digits")["calibration"], 1.0))
    logits = forward(layers, images)[LOGITS].reshape(len(images), -1)
    write_npz(folder / "stages" / "pytorch.npz", {LOGITS: logits.astype(np.float32)})
    write_bytes(folder / "stages" / "original.onnx", graphs.exported(version.weights))
    build = folder / "build"
    models = {
        "optimized_float": graphs.optimized(layers),
        "calibrated": graphs.calibrated(quantized),
        "ptq": graphs.integer(quantized),
    }
    for stage, content in models.items():
        write_bytes(build / f"{PREFIX}_{stage}_model.onnx", _made_by(version.hmct, content))
    _record(folder / "stages", images, quantized, version.compiled)
    _log(build / "hb_compile.log", version)
    config = folder / "driftgate.yaml"
    config.write_text(yaml.safe_dump(CONFIG, sort_keys=False), "utf-8")
    return config


def _made_by(hmct: str, content: bytes) -> bytes:
    """The same model, which says by which release it was made."""
    model = onnx.load_model_from_string(content)
    model.producer_version = hmct
    stamped: bytes = model.SerializeToString(deterministic=True)
    return stamped


def _record(stages: Path, images: Floats, quantized: Quantized, compiled: Callable[[Program], Program]) -> None:
    """What the compiled network gives as a .bc, and on the board."""
    program = compiled(compile_program(quantized))
    fed = quantize_input(program, images)
    scale = {"scales": [float(program.target.step)], "zero_points": [program.target.zero_point], "axis": None}
    recordings: dict[str, Mapping[str, Int8s]] = {"quantized": run(program, fed), "hbm": run_on_board(program, fed)}
    for stage, tensors in recordings.items():
        write_npz(stages / f"{stage}.npz", {LOGITS: tensors[LOGITS]})
        (stages / f"{stage}.signature.json").write_text(json.dumps({"outputs": {LOGITS: scale}}), "utf-8")


def _log(path: Path, version: Version) -> None:
    """What hb_compile says of a build that went well."""
    journal = Journal(path, io.StringIO(), source="hb_compile")
    for line in (
        "Start hb_compile...",
        f"hbdk version: {version.hbdk}",
        f"hmct version: {version.hmct}",
        f"hb_compile version: {TOOL}",
        f"The specified model compilation architecture: {PLATFORMS[TARGET].march}.",
        "The hb_compile completes running.",
    ):
        journal.say(line)
    journal.written()


CONFIG = {
    "version": 1,
    "defaults": {"chain": "ptq", "platform": TARGET, "threads": 1},
    "subjects": {
        PREFIX: {
            "artifacts": {
                "pytorch": {"backend": "recorded", "path": "stages/pytorch.npz"},
                "onnx": "stages/original.onnx",
                "build": {"from": "build", "prefix": PREFIX},
                "quantized": {"backend": "recorded", "path": "stages/quantized.npz"},
                "hbm": {"backend": "recorded", "path": "stages/hbm.npz"},
            },
            "samples": {"manifest": "data/samples.json", "raw": "data/pictures.npz"},
            "score": {
                "task": "classification",
                "labels": {"path": "data/labels.npz", "extra": "ignore"},
                "output": LOGITS,
            },
        }
    },
}
