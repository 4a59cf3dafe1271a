"""What the vendor's own comparisons say: hb_verifier, hmct-debugger and QuantAnalysis."""

from __future__ import annotations

from dataclasses import dataclass

from driftgate.domain.toolchain.common import Entries, ToolVersions


@dataclass(frozen=True, slots=True)
class NodeSensitivity:
    """A node and its measures, as (metric, value); `other` columns as told."""

    node: str
    metrics: tuple[tuple[str, float], ...]
    other: Entries = ()


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """A table of hmct-debugger; the most sensitive node comes first. `kind`: node, weight or activation."""

    kind: str | None
    nodes: tuple[NodeSensitivity, ...]
    unread: int = 0


@dataclass(frozen=True, slots=True)
class LayerComparison:
    """A row of QuantAnalysis' comparison layer by layer; names may be empty or occur twice: the index is the key."""

    index: int
    module: str
    base_op: str
    analysed_op: str
    shape: tuple[int, ...] | None
    dtype: str
    scale: float | None
    metrics: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class LayerStatistic:
    """A row of QuantAnalysis' statistics: one tensor of one operation."""

    index: int
    op: str
    module: str
    attribute: str
    dtype: str
    scale: float | None
    shape: tuple[int, ...] | None
    metrics: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class SensitiveOperator:
    """A row of QuantAnalysis' sensitive operators, with the value of the table's metric."""

    name: str
    kind: str  # activation | weight
    op: str
    metric: str
    value: float
    dtype: str
    flops: int | None = None


@dataclass(frozen=True, slots=True)
class CosineRow:
    """A tensor that hb_verifier compared by cosine; None where it printed no number."""

    node: str
    tensor: str
    cosine: float | None


@dataclass(frozen=True, slots=True)
class ConsistencyRow:
    """An output that hb_verifier compared element by element."""

    output: str
    equal: bool
    mismatched: int | None = None
    total: int | None = None
    max_absolute: float | None = None
    max_relative: float | None = None


@dataclass(frozen=True, slots=True)
class CosineReport:
    """hb_verifier in cosine mode, which gives no verdict. `is_closed`: the table's last rule is there."""

    versions: ToolVersions
    models: tuple[str, ...]
    rows: tuple[CosineRow, ...]
    skipped: tuple[str, ...] = ()
    unread: int = 0
    is_closed: bool = False
    runs: int = 1


@dataclass(frozen=True, slots=True)
class ConsistencyReport:
    """hb_verifier on `.bc` and `.hbm`; the tool's sentence is the verdict, the rows may be missing in an excerpt."""

    versions: ToolVersions
    models: tuple[str, ...]
    is_consistent: bool
    rows: tuple[ConsistencyRow, ...]
    on_board: bool = False
    skipped: tuple[str, ...] = ()
    unread: int = 0
    runs: int = 1

    @property
    def rows_agree(self) -> bool:
        """Whether the rows say what the verdict says; true where there are none."""
        return not self.rows or all(row.equal for row in self.rows) == self.is_consistent
