"""The `samples` section: the data set that all stages share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, model_validator

from driftgate.domain.digest import lean
from driftgate.domain.samples import BLOCK, Origin
from driftgate.errors import SampleError
from driftgate.messages.message import message
from driftgate.settings.declared import InputSettings, declarations
from driftgate.settings.preprocess import PreprocessSettings, RuntimeImages
from driftgate.settings.section import Section
from driftgate.storage.declaredsource import DeclaredRaw, DeclaredRuntime
from driftgate.storage.imagefolder import ImageFolder, ImageTensors, holds_images
from driftgate.storage.sampledata import Order, SampleData
from driftgate.storage.tensorfiles import TensorSource, open_source
from driftgate.transforms.layouts import Encoding


def _tag(value: object) -> str:
    return "images" if isinstance(value, (Mapping, RuntimeImages)) else "path"


Runtime = Annotated[Annotated[Path, Tag("path")] | Annotated[RuntimeImages, Tag("images")], Discriminator(_tag)]


class SampleSettings(Section):
    """Where the feeds lie. Without a manifest the raw samples are read once to make the plan."""

    manifest: Path | None = Field(default=None, description="samples.json, made by `driftgate samples`")
    raw: Path | None = Field(
        default=None, description="what the float models eat: tensors, or a folder of images with `preprocess`"
    )
    preprocess: PreprocessSettings | None = Field(default=None, description="how images become feeds")
    runtime: Runtime | None = Field(
        default=None,
        description="what the deployed model eats: tensors, or {from: a folder of images, as: …}; raw where absent",
    )
    declared: dict[str, InputSettings] = Field(
        default_factory=dict,
        description="inputs in the words of hb_compile's yaml: runtime samples are made of raw ones so where `runtime` "
        "is not given, raw ones of runtime samples where `raw` is not",
    )
    calibration: dict[str, Path] = Field(
        default_factory=dict,
        description="folder of .npy by input, which the network was calibrated with; that of the build's log where "
        "it is there. It serves to explain, and must not be what is evaluated",
    )
    origin: Origin = Field(default=Origin.REAL, description="random samples never prove PASS")
    block: int = Field(default=BLOCK, ge=1, description="samples in the smallest share of work")
    order: Order = Field(
        default=Order.NAME, description="spread: as if shuffled, always the same way, so that profiles see all classes"
    )
    profiles: dict[str, int] = Field(default_factory=dict, description="nested subsets: the first n samples")

    @model_validator(mode="after")
    def _declared_one_way(self) -> SampleSettings:
        if self.declared and self.raw is not None and self.runtime is not None:
            raise ValueError("declared makes one kind of samples of the other; both are given, so leave it out")
        return self

    @model_validator(mode="after")
    def _runtime_images_have_a_size(self) -> SampleSettings:
        if not isinstance(self.runtime, RuntimeImages):
            return self
        if self.preprocess is None:
            raise ValueError("runtime is made of images, and how is not said; give preprocess")
        size = self.preprocess.size
        if self.runtime.as_ == "nv12" and (size is None or any(length % 2 for length in size)):
            raise ValueError("nv12 needs an even height and width; set preprocess.size so")
        return self

    @property
    def sources(self) -> Mapping[str, Path | None]:
        """The files and folders that must be there to read samples, by key."""
        runtime = self.runtime.from_ if isinstance(self.runtime, RuntimeImages) else self.runtime
        calibration = {f"calibration.{name}": folder for name, folder in self.calibration.items()}
        return {"raw": self.raw, "runtime": runtime, **calibration}

    def data(self, root: Path) -> SampleData:
        """The samples on disk; paths are taken from `root`. Raises SampleError."""
        folders: dict[Path, ImageFolder] = {}

        def source(key: str, encoding: Encoding | None) -> TensorSource | None:
            path = self.sources[key]
            if path is None:
                return None
            made_of_images = holds_images(root / path, declared=encoding is not None)
            if not made_of_images:
                return open_source(root / path)
            if encoding is None or self.preprocess is None:
                raise SampleError(message(f"images-undeclared-{key}", path=str(path)))
            place = (root / path).resolve()
            if place not in folders:
                folders[place] = ImageFolder(root / path, self.preprocess.fit())
            return ImageTensors(folders[place], encoding)

        raw = source("raw", self._raw_encoding)
        runtime = source("runtime", self._runtime_encoding)
        if self.declared and raw is not None and runtime is None:
            runtime = DeclaredRuntime(raw, declarations(self.declared))
        elif self.declared and runtime is not None and raw is None:
            raw = DeclaredRaw(runtime, declarations(self.declared))
        images = [made.images for made in (raw, runtime) if isinstance(made, ImageTensors)]
        return SampleData(raw, runtime, images[0] if images else None, self._declared() if images else None)

    @property
    def _raw_encoding(self) -> Encoding | None:
        return None if self.preprocess is None else self.preprocess.encoding()

    @property
    def _runtime_encoding(self) -> Encoding | None:
        if self.preprocess is None or not isinstance(self.runtime, RuntimeImages):
            return None
        return self.runtime.encoding(self.preprocess.feed)

    def _declared(self) -> dict[str, Any]:
        """The declaration as JSON values, for the manifest."""
        parts = {
            "fit": None if self.preprocess is None else self.preprocess.fit(),
            "raw": self._raw_encoding,
            "runtime": self._runtime_encoding,
        }
        return {name: lean(part) for name, part in parts.items() if part is not None}
