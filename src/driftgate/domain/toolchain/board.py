"""What the board's runtime says about a model and its runs, also where it is simulated."""

from __future__ import annotations

from dataclasses import dataclass, field

from driftgate.domain.toolchain.common import Entries, InputContract, Shape, ToolVersions


@dataclass(frozen=True, slots=True)
class BoardTensor:
    """An input or output as the runtime sees it; of shape and stride None is dynamic, so `aligned_bytes` is None
    where it is dynamic or not told. `quantisation`: NONE or SCALE. Six digits of a scale are printed."""

    name: str | None
    direction: str | None  # input | output
    index: int | None = None
    shape: Shape | None = None
    stride: Shape | None = None
    aligned_bytes: int | None = None
    dtype: str | None = None
    quantisation: str | None = None
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] | None = None
    axis: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all that one must know to read this tensor's bytes and values was told."""
        scaled = self.quantisation == "SCALE"
        told = None not in (self.name, self.shape, self.dtype, self.quantisation)
        return told and (not scaled or bool(self.scales)) and (len(self.scales) < 2 or self.axis is not None)


@dataclass(frozen=True, slots=True)
class BoardModel:
    """A model as the runtime loaded it: `description` is what the builder wrote into it."""

    name: str | None
    tensors: tuple[BoardTensor, ...]
    inputs: tuple[InputContract, ...] = ()
    versions: ToolVersions = field(default_factory=ToolVersions)
    march: str | None = None
    calibration_type: str | None = None
    calibration_folders: tuple[str, ...] = ()
    description: Entries = ()


@dataclass(frozen=True, slots=True)
class BoardModels:
    """What hrt_model_exec, hbm_runtime or hbm_infer say about a file's models."""

    versions: ToolVersions
    models: tuple[BoardModel, ...]
    load_ms: float | None = None
    names: tuple[str, ...] = ()  # of models, as listed
    has_board_monitor: bool = False  # a sign of a real board, not a proof


@dataclass(frozen=True, slots=True)
class PerfTick:
    """One of the lines that hrt_model_exec perf prints while it runs; milliseconds."""

    frames: int
    average_ms: float
    longest_ms: float
    shortest_ms: float
    fps: float


@dataclass(frozen=True, slots=True)
class BoardPerf:
    """A run of hrt_model_exec perf. Without a result it was ended from outside, or the file is an excerpt."""

    versions: ToolVersions
    load_ms: float | None = None
    threads: int | None = None
    frames: int | None = None
    run_ms: float | None = None
    total_ms: float | None = None  # a sum over threads
    average_ms: float | None = None
    fps: float | None = None
    ticks: tuple[PerfTick, ...] = ()
    made_up_input: bool = False  # the tool made its input up by itself
    chosen_strides: tuple[tuple[int, Shape], ...] = ()  # (input, stride) that the tool chose
    has_board_monitor: bool = False


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that was fed: its bytes, and what the tool made of it."""

    path: str
    length: int | None = None
    padded_shape: Shape | None = None
    padded_stride: Shape | None = None
    scaled_from_image: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Dump:
    """A tensor that hrt_model_exec wrote down, with its place among the inputs or outputs."""

    path: str
    direction: str
    index: int
    name: str


@dataclass(frozen=True, slots=True)
class BoardInference:
    """A run of hrt_model_exec infer; `frames`: (number, milliseconds) of those that ended."""

    versions: ToolVersions
    load_ms: float | None = None
    files: tuple[ReadFile, ...] = ()
    frames: tuple[tuple[int, float], ...] = ()
    dumps: tuple[Dump, ...] = ()
    chosen_strides: tuple[tuple[int, Shape], ...] = ()
    has_board_monitor: bool = False


@dataclass(frozen=True, slots=True)
class BoardFault:
    """An error of the runtime that is known: march (with both marches), memory (with bytes), environment, or version
    (found: the release of the model's compiler, wanted: that of the runtime)."""

    kind: str
    found: str | None = None
    wanted: str | None = None
    length_bytes: int | None = None
