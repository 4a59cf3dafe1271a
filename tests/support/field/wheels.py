"""Members of pinned wheels: fetched from the package index once, kept in a cache folder, never committed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

DOWNLOAD_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Wheel:
    """A release on the package index, and those of its files that a test wants."""

    name: str
    version: str
    members: tuple[str, ...]

    @property
    def requirement(self) -> str:
        """What pip is asked for."""
        return f"{self.name}=={self.version}"


FACENET = Wheel(
    "facenet-pytorch",
    "2.6.0",
    ("facenet_pytorch/models/mtcnn.py", "facenet_pytorch/data/onet.pt", "facenet_pytorch/data/rnet.pt"),
)
RAPIDOCR = Wheel(
    "rapidocr-onnxruntime",
    "1.4.4",
    ("rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",),
)
#: Finds text: half a gigabyte of intermediate tensors for a picture of 480 × 640.
RAPIDOCR_DETECTOR = Wheel(
    "rapidocr-onnxruntime",
    "1.4.4",
    ("rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",),
)
SILERO = Wheel(
    "silero-vad",
    "6.2.3",
    (
        "silero_vad/data/silero_vad.jit",
        "silero_vad/data/silero_vad.onnx",
        "silero_vad/data/silero_vad_openvino_16k.onnx",
        "silero_vad/data/silero_vad_half.onnx",
    ),
)
#: Thirty seconds of a telephone call, 16 kHz.
CONVERSATION = Wheel("pyannote.audio", "3.3.2", ("pyannote/audio/sample/sample.wav",))


def cache_folder() -> Path:
    """Where downloads stay: DRIFTGATE_CACHE, else .cache/field of the repository."""
    chosen = os.environ.get("DRIFTGATE_CACHE")
    return Path(chosen) if chosen else Path(__file__).parents[3] / ".cache" / "field"


def members(wheel: Wheel) -> dict[str, Path]:
    """The wanted files of a wheel by file name; downloaded when the cache has not all of them.

    Each file appears in one move, so that neither two processes nor a broken download leave half a file.
    Raises CalledProcessError with pip's words, KeyError if the wheel lacks a member.
    """
    cache = cache_folder()
    home = cache / f"{wheel.name}-{wheel.version}"
    found = {PurePosixPath(member).name: home / PurePosixPath(member).name for member in wheel.members}
    if all(path.is_file() for path in found.values()):
        return found
    cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=cache, prefix=".fetch-") as scratch:
        fetched = _fetch(wheel, Path(scratch))
        home.mkdir(exist_ok=True)
        for name, path in found.items():
            (fetched / name).replace(path)
    return found


def _fetch(wheel: Wheel, scratch: Path) -> Path:
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run(
        [*download, "--dest", str(scratch), wheel.requirement],
        check=True,
        stdin=subprocess.DEVNULL,
        timeout=DOWNLOAD_SECONDS,
    )
    (archive,) = scratch.glob("*.whl")
    target = scratch / "members"
    target.mkdir()
    with zipfile.ZipFile(archive) as content:
        for member in wheel.members:
            (target / PurePosixPath(member).name).write_bytes(content.read(member))
    return target
