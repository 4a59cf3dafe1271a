"""Folders of images as sources of tensors: each image is decoded, brought to size and encoded when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.sessions import Tensor
from driftgate.storage.tensorfiles import is_text, sample_unknown
from driftgate.transforms.geometry import Fit, Geometry, placed
from driftgate.transforms.images import SUFFIXES, decoded, fitted, size_of
from driftgate.transforms.layouts import Encoding, encoded
from driftgate.transforms.resampling import Pixels

BETWEEN_FOLDERS = "__"  # an image in a folder of the folder: `cat/001.jpg` is the sample `cat__001`


def holds_images(path: Path, *, declared: bool) -> bool:
    """Whether a folder holds images and not tensors; `declared` where something says how images become tensors.

    Raises SampleError where it holds both and images are declared; without that, images beside tensors do not count.
    """
    if not path.is_dir() or not any(_is_image(file, path) for file in path.rglob("*")):
        return False
    tensors = any(path.glob("*.npz")) or any(path.rglob("*.npy"))
    if tensors and declared:
        raise SampleError(message("images-mixed", path=str(path)))
    return not tensors


def image_files(path: Path) -> dict[str, Path]:
    """The images in a folder and the folders in it by sample id, sorted: the path without its ending, `/` as `__`.

    Hidden files and those without the ending of an image are passed over. Raises SampleError: no image, names
    that are not UTF-8, two images of one id.
    """
    try:
        files = sorted(file for file in path.rglob("*") if _is_image(file, path))
    except OSError as error:
        raise SampleError(message("tensors-unreadable", path=str(path), reason=error.strerror or str(error))) from error
    names = [file.relative_to(path).as_posix() for file in files]
    foreign = tuple(ascii(name) for name in names if not is_text(name))
    if foreign:
        raise SampleError(message("samples-names", path=str(path), names=foreign))
    if not files:
        raise SampleError(message("images-none", path=str(path), endings=SUFFIXES))
    found: dict[str, list[Path]] = {}
    for name, file in zip(names, files, strict=True):
        found.setdefault(sample_of(name), []).append(file)
    twice = tuple(file.name for several in found.values() if len(several) > 1 for file in several)
    if twice:
        raise SampleError(message("images-twice", path=str(path), names=twice))
    return {sample: found[sample][0] for sample in sorted(found)}


def sample_of(name: str) -> str:
    """The sample id of an image by its path within the folder."""
    return str(Path(name).with_suffix("").as_posix()).replace("/", BETWEEN_FOLDERS)


def _is_image(file: Path, root: Path) -> bool:
    if file.suffix.lower() not in SUFFIXES:
        return False
    return not any(part.startswith(".") for part in file.relative_to(root).parts) and file.is_file()


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise SampleError(message("tensors-unreadable", path=str(path), reason=error.strerror or str(error))) from error
    with file:
        yield file


class ImageFolder:
    """The images of a folder at the network's size. The pixels of the last image are kept, so that raw and runtime
    feeds of a sample cost one decoding."""

    def __init__(self, path: Path, fit: Fit) -> None:
        self._path = path
        self._fit = fit
        self._files: Mapping[str, Path] = image_files(path)
        self._ids = tuple(self._files)
        self._last: tuple[str, Pixels] | None = None

    @property
    def ids(self) -> tuple[str, ...]:
        """The samples, sorted."""
        return self._ids

    def file(self, sample_id: str) -> Path:
        """The image of a sample. Raises SampleError."""
        if sample_id not in self._files:
            raise sample_unknown(self._path, sample_id, self._ids)
        return self._files[sample_id]

    def pixels(self, sample_id: str) -> Pixels:
        """RGB pixels (height, width, 3) at the network's size, not to be changed. Raises SampleError."""
        if self._last is None or self._last[0] != sample_id:
            path = self.file(sample_id)
            with _open(path) as file:
                found = decoded(file, name=str(path))
            self._last = sample_id, fitted(found, self._fit, name=str(path))[0]
        return self._last[1]

    def geometry(self, sample_id: str) -> Geometry:
        """Where the image lies in the network's input, from the file's header alone. Raises SampleError."""
        path = self.file(sample_id)
        with _open(path) as file:
            return placed(*size_of(file, name=str(path)), self._fit)


@dataclass(frozen=True, slots=True)
class ImageTensors:
    """The feeds that an encoding makes of a folder's images: a TensorSource."""

    images: ImageFolder
    encoding: Encoding

    @property
    def ids(self) -> tuple[str, ...]:
        """The samples, sorted."""
        return self.images.ids

    def read(self, sample_id: str) -> dict[str, Tensor]:
        """The tensors of one image. Raises SampleError."""
        return encoded(self.images.pixels(sample_id), self.encoding)

    def files(self, sample_id: str) -> tuple[Path, ...]:
        """The image."""
        return (self.images.file(sample_id),)
