"""The `artifacts` section: what stands for each stage, and which backend runs it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from driftgate.sessions import Artifact
from driftgate.settings.section import Section, hyphens

#: The backend that a bare path means, by its ending; a folder is a recording.
BY_SUFFIX = {
    ".onnx": "onnxruntime",
    ".npz": "recorded",
    ".pt": "torch",
    ".pth": "torch",
    ".jit": "torch",
    ".ts": "torch",
    ".bc": "hbruntime",
    ".hbm": "hbruntime",
}

#: In a path: the platform, as in J6M.
TARGET = "{target}"


class ArtifactSection(Section):
    """What every artifact has. A bare path is short for `{path: …}` with the backend of its ending."""

    #: Settings that name files, for the check that they are there.
    files: ClassVar[tuple[str, ...]] = ("path", "node_table")

    backend: str
    path: Path | None = None
    node_table: Path | None = Field(
        default=None,
        description="the vendor's comparison node by node for this stage: a log of hb_verifier or hb_compile, "
        "node_info.csv, or QuantAnalysis' compare_per_layer_out; shown where nothing can be tapped",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: object) -> object:
        if isinstance(value, str):
            return {"backend": backend_of(value), "path": value}
        if isinstance(value, Mapping) and "backend" not in value:
            return {"backend": backend_of(value), **value}
        return value

    def on(self, target: str) -> ArtifactSection:
        """With the platform for `{target}` in its paths."""
        return self.model_copy(update={key: _on(getattr(self, key, None), target) for key in self.files})

    def artifact(self, stage: str, *, root: Path, threads: int, custom_ops: tuple[Path, ...]) -> Artifact:
        """As the value that a backend opens; paths are taken from `root`."""
        options = {
            name: _plain(getattr(self, name), root)
            for name in type(self).model_fields
            if name not in ("backend", "path") and getattr(self, name) is not None
        }
        options = {"threads": threads, **options}
        if custom_ops and not options.get("custom_ops"):
            options["custom_ops"] = tuple(str(root / library) for library in custom_ops)
        return Artifact(stage, self.backend, None if self.path is None else root / self.path, options)


class OnnxRuntimeArtifact(ArtifactSection):
    """An ONNX file, run by ONNX Runtime."""

    files: ClassVar[tuple[str, ...]] = ("path", "node_table", "custom_ops")

    backend: Literal["onnxruntime"] = "onnxruntime"
    path: Path = Field(description="the ONNX file; external data lie beside it")
    level: Literal["disabled", "basic", "extended", "all"] = Field(
        default="disabled", description="graph optimisation; changes the numbers of quantised models"
    )
    threads: int | None = Field(default=None, ge=1, description="threads inside one operator")
    provider: str = Field(default="CPUExecutionProvider", description="execution provider")
    custom_ops: tuple[Path, ...] = Field(default=(), description="libraries of custom operators")


class RecordedArtifact(ArtifactSection):
    """Outputs recorded elsewhere: a stacked .npz, a folder of <sample>.npz, or of <sample>/<tensor>.npy; or, with
    `model-info`, of <sample>/ and in it what hrt_model_exec dumped."""

    files: ClassVar[tuple[str, ...]] = ("path", "node_table", "model_info")

    backend: Literal["recorded"] = "recorded"
    path: Path = Field(description="the recording")
    model_info: Path | None = Field(
        default=None,
        description="what hrt_model_exec model_info, hbm_runtime or hbm_infer's get_output_info said: dumps are read "
        "by the types and strides that stand there",
    )
    model: str | None = Field(default=None, description="which model of model-info, where there are several")


class TorchArtifact(ArtifactSection):
    """A PyTorch module or TorchScript file, run by a worker under your own interpreter."""

    files: ClassVar[tuple[str, ...]] = ("path", "node_table", "weights", "search_path")

    backend: Literal["torch"] = "torch"
    path: Path | None = Field(default=None, description="a TorchScript file, instead of `load`")
    load: str | None = Field(default=None, description="module:function that returns the network")
    weights: Path | None = Field(default=None, description="a state dict, read with weights_only")
    python: tuple[str, ...] | None = Field(default=None, description="the interpreter, as a command list")
    search_path: tuple[Path, ...] = Field(default=(), description="folders for `load`; the config's own otherwise")
    device: str = Field(default="cpu", description="torch device")
    threads: int | None = Field(default=None, ge=1, description="torch threads")
    timeout: float | None = Field(default=None, gt=0, description="seconds that one answer may take")

    @model_validator(mode="after")
    def _one_source(self) -> TorchArtifact:
        if (self.path is None) == (self.load is None):
            raise ValueError("give either path (a TorchScript file) or load (module:function)")
        return self

    def artifact(self, stage: str, *, root: Path, threads: int, custom_ops: tuple[Path, ...]) -> Artifact:
        """Without a search path of its own, `load` is looked for beside driftgate.yaml."""
        made = super().artifact(stage, root=root, threads=threads, custom_ops=())
        options = dict(made.options)
        if not self.search_path:
            options["search_path"] = (str(root),)
        return Artifact(made.stage, made.backend, made.path, options)


class HbRuntimeArtifact(ArtifactSection):
    """A file that only the vendor's HBRuntime loads (.bc, .hbm in simulation, ONNX with Hz operators), run by a worker
    under the vendor's interpreter."""

    backend: Literal["hbruntime"] = "hbruntime"
    path: Path = Field(description="the .bc, .hbm or .onnx")
    python: tuple[str, ...] | None = Field(
        default=None, description="the vendor's interpreter, as a command list: a path, docker run …"
    )
    model: str | None = Field(default=None, description="the network, where a packed .hbm has several")
    timeout: float | None = Field(default=None, gt=0, description="seconds that one answer may take")


class BoardArtifact(ArtifactSection):
    """An .hbm that hrt_model_exec runs on a board."""

    backend: Literal["board"] = "board"
    path: Path = Field(description="the .hbm")
    board: str | None = Field(default=None, description="a name under `boards`; defaults.board where absent")
    model: str | None = Field(default=None, description="the network, where a packed .hbm has several")


class HbmInferArtifact(ArtifactSection):
    """An .hbm that the vendor's hbm_infer runs on a board, by a worker under the vendor's interpreter."""

    backend: Literal["hbm_infer"] = "hbm_infer"
    path: Path = Field(description="the .hbm")
    board: str | None = Field(default=None, description="a name under `boards`; defaults.board where absent")
    python: tuple[str, ...] | None = Field(default=None, description="the vendor's interpreter, as a command list")
    model: str | None = Field(default=None, description="the network, where a packed .hbm has several")
    remote_root: str | None = Field(default=None, description="hbm_infer's folder on the board; its own where absent")
    timeout: float | None = Field(default=None, gt=0, description="seconds that one answer may take")


class HbmRuntimeArtifact(ArtifactSection):
    """An .hbm that hbm_runtime runs on this machine, which is a board."""

    backend: Literal["hbm_runtime"] = "hbm_runtime"
    path: Path = Field(description="the .hbm")
    python: tuple[str, ...] | None = Field(default=None, description="an interpreter that has hbm_runtime")
    model: str | None = Field(default=None, description="the network, where a packed .hbm has several")
    core: int | None = Field(default=None, ge=0, description="the core by its number from 0; its choice where absent")
    priority: int | None = Field(default=None, ge=0, le=255, description="of its tasks")
    timeout: float | None = Field(default=None, gt=0, description="seconds that one answer may take")


class OtherArtifact(ArtifactSection):
    """An artifact of a backend that another package brings; its keys are that backend's own."""

    model_config = ConfigDict(extra="allow", frozen=True, alias_generator=hyphens)

    def artifact(self, stage: str, *, root: Path, threads: int, custom_ops: tuple[Path, ...]) -> Artifact:
        """Its options as they stand."""
        path = None if self.path is None else root / self.path
        extra = {name.replace("-", "_"): value for name, value in (self.model_extra or {}).items()}
        return Artifact(stage, self.backend, path, {"threads": threads, **extra})


OURS: tuple[str, ...] = ("onnxruntime", "recorded", "torch", "hbruntime", "board", "hbm_infer", "hbm_runtime")


def backend_of(value: object) -> str:
    """The backend an artifact means: as it says, else by the path's ending."""
    if isinstance(value, Mapping):
        if "backend" in value:
            return str(value["backend"])
        if "load" in value:
            return "torch"
        if "board" in value:
            return "board"
        value = value.get("path", "")
    return BY_SUFFIX.get(Path(str(value)).suffix.lower(), "recorded")


def _tag(value: object) -> str:
    named = value.backend if isinstance(value, ArtifactSection) else backend_of(value)
    return named if named in OURS else "other"


AnyArtifact = Annotated[
    Annotated[OnnxRuntimeArtifact, Tag("onnxruntime")]
    | Annotated[RecordedArtifact, Tag("recorded")]
    | Annotated[TorchArtifact, Tag("torch")]
    | Annotated[HbRuntimeArtifact, Tag("hbruntime")]
    | Annotated[BoardArtifact, Tag("board")]
    | Annotated[HbmInferArtifact, Tag("hbm_infer")]
    | Annotated[HbmRuntimeArtifact, Tag("hbm_runtime")]
    | Annotated[OtherArtifact, Tag("other")],
    Discriminator(_tag),
]


def _on(value: object, target: str) -> object:
    if isinstance(value, Path):
        return Path(str(value).replace(TARGET, target))
    if isinstance(value, tuple):
        return tuple(_on(item, target) for item in value)
    return value


def _plain(value: object, root: Path) -> object:
    if isinstance(value, Path):
        return str(root / value)
    if isinstance(value, tuple):
        return tuple(_plain(item, root) for item in value)
    return value
