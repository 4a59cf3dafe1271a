"""What hb_compile, hb_analyzer and hb_model_info say about a build."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from driftgate.domain.toolchain.common import Entries, InputContract, Listing, Shape, ToolVersions


@dataclass(frozen=True, slots=True)
class CompiledFiles:
    """What one run of hb_compile left: models by stage, intermediate `.bc` of debug builds by kind, reports by kind
    (log, node_info, quant_info, advice, advice_csv, perf, perf_html)."""

    folder: Path
    prefix: str
    models: tuple[tuple[str, Path], ...] = ()
    intermediate: tuple[tuple[str, Path], ...] = ()
    reports: tuple[tuple[str, Path], ...] = ()

    def get(self, name: str) -> Path | None:
        """The path of a stage, an intermediate model or a report."""
        return dict((*self.models, *self.intermediate, *self.reports)).get(name)


@dataclass(frozen=True, slots=True)
class CompileSettings:
    """The YAML of hb_compile, as far as consistency depends on it. `unknown`: keys that no reader knows, dotted."""

    model: str | None = None
    march: str | None = None
    prefix: str | None = None
    working_dir: str | None = None
    output_nodes: tuple[str, ...] = ()
    removed_types: tuple[str, ...] = ()
    removed_names: tuple[str, ...] = ()
    inputs: tuple[InputContract, ...] = ()
    separate_names: tuple[str, ...] = ()
    calibration_folders: tuple[str, ...] = ()
    calibration_type: str | None = None
    quant_config: str | None = None  # a path; None also where it is written out in place
    has_inline_quant_config: bool = False
    input_no_padding: bool | None = None
    output_no_padding: bool | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A row of hb_compile's node table. A number is None where the tool says `fused`, `--` or nothing; `on` is its
    word for the unit, empty where it has none."""

    node: str
    op: str
    on: str
    dtypes: tuple[str, ...]
    threshold: float | None = None
    calibrated: float | None = None
    quantized: float | None = None


@dataclass(frozen=True, slots=True)
class NodeTable:
    """Rows in the tool's order; `unread` rows were damaged, `columns` are those of the tool."""

    columns: tuple[str, ...]
    nodes: tuple[NodeInfo, ...]
    unread: int = 0


@dataclass(frozen=True, slots=True)
class OutputCosine:
    """A row of hb_compile's second table."""

    tensor: str
    calibrated: float | None
    quantized: float | None


@dataclass(frozen=True, slots=True)
class ModelTensor:
    """A row of the table of inputs and outputs; the words for `dtype` are the tool's: UINT8, FLOAT32."""

    name: str
    direction: str | None  # input | output
    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class NodeKind:
    """A node at the edge of a model that was removed, or could be."""

    node: str
    op: str


@dataclass(frozen=True, slots=True)
class CalibrationData:
    """The data one input was calibrated with."""

    input: str
    first_file: str | None = None
    first_md5: str | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class OnnxSummary:
    """The ONNX file as hb_compile saw it. Names that begin with dots are cut by the tool and may occur twice."""

    ir_version: int | None = None
    opsets: tuple[str, ...] = ()
    producer: str | None = None
    tensors: tuple[ModelTensor, ...] = ()
    converted_opset: int | None = None


@dataclass(frozen=True, slots=True)
class BuildStep:
    """A step of hb_compile, by our name for it, and whether its end was told."""

    name: str
    started: bool
    ended: bool


@dataclass(frozen=True, slots=True)
class ModelBlocks:
    """The blocks that hb_compile prints at its end and hb_model_info as all it says. `entries`: (key, value)
    as told; memory in bytes."""

    entries: Entries = ()
    inputs: tuple[InputContract, ...] = ()
    tensors: tuple[ModelTensor, ...] = ()
    removable: tuple[NodeKind, ...] = ()
    memory: tuple[tuple[str, int], ...] = ()
    unread: int = 0

    def entry(self, *keys: str) -> str | None:
        """The value of the first of these keys that is told."""
        told = dict(reversed(self.entries))
        return next((told[key] for key in keys if key in told), None)


@dataclass(frozen=True, slots=True)
class CompileLog:
    """A log of hb_compile, of its last run where several were appended; see the reader for what each part is."""

    versions: ToolVersions
    march: str | None = None
    steps: tuple[BuildStep, ...] = ()
    finished: bool = False
    failures: tuple[str, ...] = ()  # modules in which the tool says an error occurred
    onnx: OnnxSummary | None = None
    calibration_data: tuple[CalibrationData, ...] = ()
    calibration_folders: tuple[str, ...] = ()
    calibration_type: str | None = None  # of the summary: not what the search chose
    search: Entries = ()  # the settings of activation calibration and of the search
    selected: str | None = None  # the method that the search chose
    node_table: NodeTable | None = None
    outputs: Listing[OutputCosine] = field(default_factory=lambda: Listing(()))
    removed: tuple[NodeKind, ...] = ()
    saved: tuple[str, ...] = ()  # paths of models
    input_no_padding: bool | None = None
    output_no_padding: bool | None = None
    estimate: PerfEstimate | None = None
    blocks: ModelBlocks = field(default_factory=ModelBlocks)
    warnings: tuple[str, ...] = ()
    benign: int = 0  # error lines of ONNX Runtime that the tool recovers from
    runs: int = 1


@dataclass(frozen=True, slots=True)
class NodeThresholds:
    """A node of quant_info.json: its thresholds, one row for each tensor, and the names of what else is said."""

    node: str
    thresholds: tuple[tuple[float, ...], ...]
    other: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuantInfo:
    """quant_info.json; `unread`: nodes whose entry has another form."""

    nodes: tuple[NodeThresholds, ...]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """The compiler's advice, whose form is not published: each remark as (key, value) pairs."""

    remarks: tuple[Entries, ...]


@dataclass(frozen=True, slots=True)
class PerfEstimate:
    """The compiler's own estimate, not a board's numbers; bytes for one run."""

    march: str | None = None
    cores: int | None = None
    convolutions: float | None = None
    fps: float | None = None
    latency_us: float | None = None
    ddr_bytes: int | None = None
    l2m_bytes: int | None = None
    loaded_bytes: int | None = None
    stored_bytes: int | None = None
    memory_bytes: int | None = None
    other: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Indicator:
    """One key figure of hb_analyzer, as told."""

    title: str
    value: str
    number: float | None
    unit: str


@dataclass(frozen=True, slots=True)
class AnalysisSummary:
    """hb_analyzer's key figures; `other`: names of what else the file has."""

    indicators: tuple[Indicator, ...]
    other: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What hb_model_info says about a `.onnx`, `.bc` or `.hbm`."""

    versions: ToolVersions
    march: str | None
    blocks: ModelBlocks
