"""Chains: the stages a network passes through, the links between them, and the checks that group links."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum


class LinkKind(str, Enum):
    """What may differ across a link; criteria are in judgement.limits."""

    EXACT = "exact"
    COMPILED = "compiled"
    EQUIVALENT = "equivalent"
    STEPPED = "stepped"
    LOSSY = "lossy"


#: From the strictest to the loosest: a link across absent stages takes the loosest kind it spans.
LOOSENESS = (LinkKind.EXACT, LinkKind.COMPILED, LinkKind.EQUIVALENT, LinkKind.STEPPED, LinkKind.LOSSY)


class FeedKind(str, Enum):
    """Which samples a stage eats: `raw` for float models, `runtime` for the deployed one."""

    RAW = "raw"
    RUNTIME = "runtime"


class CheckKind(str, Enum):
    """How a row of the table is decided."""

    BASELINE = "baseline"
    LINKS = "links"
    REGRESSION = "regression"


@dataclass(frozen=True, slots=True)
class Stage:
    """One form of the network. `kind` is that of the link from the stage before (None for the first)."""

    name: str
    segment: int
    feeds: FeedKind = FeedKind.RAW
    kind: LinkKind | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """Two stages compared; `spans` names the absent stages between them."""

    reference: str
    candidate: str
    kind: LinkKind
    spans: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`reference..candidate`, the key of limits."""
        return f"{self.reference}..{self.candidate}"


@dataclass(frozen=True, slots=True)
class Check:
    """A row of the table. `stages` are the candidates of its links, or the stages whose score decides."""

    slug: str
    title: str
    kind: CheckKind
    stages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Stages in the order of the route, and the rows they are reported in."""

    name: str
    stages: tuple[Stage, ...]
    checks: tuple[Check, ...]

    def stage(self, name: str) -> Stage:
        """The stage of that name; KeyError if the chain has none."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(name)

    def links(self, present: Collection[str] | None = None) -> tuple[Link, ...]:
        """The links between neighbouring present stages (all stages when None), in order."""
        links: list[Link] = []
        reference: Stage | None = None
        absent: list[Stage] = []
        for stage in self.stages:
            if present is not None and stage.name not in present:
                absent.append(stage)
                continue
            if reference is not None:
                kinds = [spanned.kind for spanned in (*absent, stage) if spanned.kind is not None]
                loosest = max(kinds, key=LOOSENESS.index)
                links.append(Link(reference.name, stage.name, loosest, tuple(s.name for s in absent)))
            reference, absent = stage, []
        return tuple(links)

    def check_of(self, link: Link) -> Check | None:
        """The row a link belongs to: the one that lists its candidate among its links."""
        for check in self.checks:
            if check.kind is CheckKind.LINKS and link.candidate in check.stages:
                return check
        return None


def _stage(name: str, segment: int, kind: LinkKind | None, feeds: FeedKind = FeedKind.RAW) -> Stage:
    return Stage(name, segment, feeds, kind)


_RUNTIME = FeedKind.RUNTIME

PTQ = Chain(
    name="ptq",
    stages=(
        _stage("pytorch", 1, None),
        _stage("onnx", 1, LinkKind.EQUIVALENT),
        _stage("original_float", 2, LinkKind.EXACT),
        _stage("optimized_float", 2, LinkKind.EQUIVALENT),
        _stage("calibrated", 3, LinkKind.LOSSY),
        _stage("ptq", 3, LinkKind.STEPPED),
        _stage("quantized", 3, LinkKind.STEPPED, _RUNTIME),
        _stage("quantized_removed", 3, LinkKind.EXACT, _RUNTIME),
        _stage("hbm", 4, LinkKind.COMPILED, _RUNTIME),
    ),
    checks=(
        Check("baseline", "PyTorch Baseline", CheckKind.BASELINE, ("pytorch",)),
        Check("pytorch-onnx", "PyTorch ↔ ONNX", CheckKind.LINKS, ("onnx",)),
        Check("onnx-optimized", "ONNX ↔ Optimized Float", CheckKind.LINKS, ("original_float", "optimized_float")),
        Check(
            "float-int8",
            "Float ↔ INT8",
            CheckKind.LINKS,
            ("calibrated", "ptq", "quantized", "quantized_removed"),
        ),
        Check("bc-hbm", "BC ↔ HBM", CheckKind.LINKS, ("hbm",)),
        Check("board", "J6 Regression", CheckKind.REGRESSION, ("hbm",)),
    ),
)

QAT = Chain(
    name="qat",
    stages=(
        _stage("pytorch", 1, None),
        _stage("calibration", 1, LinkKind.LOSSY),
        _stage("qat", 1, LinkKind.LOSSY),
        _stage("qat_export", 2, LinkKind.STEPPED),
        _stage("qat_bc", 2, LinkKind.EQUIVALENT),
        _stage("quantized", 3, LinkKind.STEPPED),
        _stage("nv12_quantized", 3, LinkKind.STEPPED, _RUNTIME),  # the colours of a picture are rounded on the way
        _stage("quantized_removed", 3, LinkKind.EXACT, _RUNTIME),
        _stage("hbm", 4, LinkKind.COMPILED, _RUNTIME),
    ),
    checks=(
        Check("baseline", "PyTorch Baseline", CheckKind.BASELINE, ("pytorch",)),
        Check("pytorch-qat", "PyTorch ↔ QAT", CheckKind.LINKS, ("calibration", "qat")),
        Check("qat-export", "QAT ↔ QAT BC", CheckKind.LINKS, ("qat_export", "qat_bc")),
        Check(
            "qat-quantized",
            "QAT BC ↔ Quantized BC",
            CheckKind.LINKS,
            ("quantized", "nv12_quantized", "quantized_removed"),
        ),
        Check("bc-hbm", "BC ↔ HBM", CheckKind.LINKS, ("hbm",)),
        Check("board", "J6 Regression", CheckKind.REGRESSION, ("hbm",)),
    ),
)

CHAINS = {chain.name: chain for chain in (PTQ, QAT)}
