"""results.json and facts.npz: how results go to disk and come back, schema `driftgate.results` version 1."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from driftgate.domain.comparisons import Changed, Comparison
from driftgate.domain.facts import Facts, Problem, ToolFacts
from driftgate.domain.investigations import Explanation, Histogram, Investigation, NodeError, Pair, Trial, VendorTable
from driftgate.domain.judgement import Judgement, Outcome
from driftgate.domain.measurements import DECADES, LSBS, Alignment, Array, Measurement, Moments, Role
from driftgate.domain.plan import Plan
from driftgate.domain.results import Results, Tool
from driftgate.domain.runs import Environment, Performance, Recording, Run
from driftgate.domain.scores import ScoreRecords
from driftgate.errors import StorageError
from driftgate.messages.message import Message, message
from driftgate.storage.hashing import file_digest
from driftgate.storage.npz import DAMAGES, npz_bytes, read_member

SCHEMA: Literal["driftgate.results"] = "driftgate.results"
VERSION: Literal[1] = 1
RESULTS, FACTS = "results.json", "facts.npz"
#: Larger tables than these must be more than zeros: numbers that were measured are not packed so tightly.
PLAIN_TABLE_BYTES, MOST_RATIO = 32 << 20, 500

#: Moments lie in facts.npz as one table: the scalar columns in this order, then 10 decades, then 5 LSB counts.
_SCALARS = tuple(f.name for f in fields(Moments) if not f.name.startswith("over_"))


class _Stored(BaseModel):
    """Newer documents of version 1 may have more keys: they are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class StoredMeasurement(_Stored):
    """A measurement; `rows` and `channels` name tables in facts.npz."""

    link: str
    output: str
    role: Role
    run_a: str
    run_b: str
    alignment: Alignment
    step: float | None
    samples: tuple[str, ...]
    rows: str
    blocks: tuple[int, ...]
    channels: str | None


class StoredEnvironment(_Stored):
    """An environment and the `id` that runs name it by; documents before 0.1.0 have no id."""

    id: str = ""
    provider: str
    level: str = ""
    threads: int = 0
    cpu: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    board: str = ""


class StoredScores(_Stored):
    """Score records; `values` names a table in facts.npz of shape (rows, columns).

    `rows` is the number of rows of each sample, in their order; null or absent: each has one.
    """

    stage: str
    run: str
    score: str
    columns: tuple[str, ...]
    samples: tuple[str, ...]
    values: str
    rows: tuple[int, ...] | None = None


class StoredNode(_Stored):
    """A node's error; `total` and `own` name tables in facts.npz."""

    pair: Pair
    op: str
    order: int
    region: tuple[str, ...]
    total: str
    own: str | None
    excess: float
    top_channels: tuple[tuple[int, float], ...]
    step: float | None
    clipped: float
    shape: tuple[int, ...] = ()
    channel_excess: str | None = None


class StoredInvestigation(_Stored):
    """An investigation of one link."""

    link: str
    pairs: tuple[Pair, ...]
    unpaired_a: tuple[str, ...]
    unpaired_b: tuple[str, ...]
    nodes: tuple[StoredNode, ...]
    trials: tuple[Trial, ...]
    samples: int
    tap_gap: float
    runs: int
    seconds: float
    notes: tuple[Message, ...]
    histograms: tuple[Histogram, ...] = ()
    vendor: VendorTable | None = None
    explained: bool = False
    explanations: tuple[Explanation, ...] = ()
    ruled_out: tuple[str, ...] = ()


class StoredFacts(_Stored):
    """The facts of one subject on one target."""

    plan: Plan
    plan_digest: str
    runs: tuple[Run, ...]
    environments: tuple[StoredEnvironment, ...]
    performance: tuple[Performance, ...]
    measurements: tuple[StoredMeasurement, ...]
    scores: tuple[StoredScores, ...]
    recordings: tuple[Recording, ...]
    investigations: tuple[StoredInvestigation, ...]
    tool_facts: tuple[ToolFacts, ...]
    problems: tuple[Problem, ...]


class StoredJudgement(_Stored):
    """The outcome over all subjects and the judgement on each."""

    outcome: Outcome
    exit_code: int
    subjects: tuple[Judgement, ...]


class Document(_Stored):
    """results.json as a whole; a shard has no judgement. `tables` is the SHA-256 of the facts.npz beside it, empty in
    what older versions wrote."""

    schema_: Literal["driftgate.results"]
    version: Literal[1]
    tool: Tool
    facts: tuple[StoredFacts, ...]
    judgement: StoredJudgement | None
    comparison: Comparison | None = None
    pending: tuple[Changed, ...] = ()
    tables: str = ""


@dataclass(slots=True)
class _Tables:
    """Arrays on their way to or from facts.npz, under running names."""

    arrays: dict[str, Array]

    def put(self, table: Array) -> str:
        name = f"t{len(self.arrays):05d}"
        self.arrays[name] = table
        return name

    def put_moments(self, moments: Moments) -> str:
        columns = [getattr(moments, name)[:, None] for name in _SCALARS]
        columns.append(moments.over_decade)
        if moments.over_lsb is not None:
            columns.append(moments.over_lsb)
        return self.put(np.concatenate(columns, axis=1))

    def moments(self, name: str) -> Moments:
        table = self.table(name)
        width = len(_SCALARS) + DECADES
        if table.ndim != 2 or table.shape[1] not in (width, width + LSBS):
            raise StorageError(message("facts-table", table=name, shape=str(table.shape)))
        columns: dict[str, Any] = {field: table[:, n] for n, field in enumerate(_SCALARS)}
        columns["over_decade"] = table[:, len(_SCALARS) : width]
        columns["over_lsb"] = table[:, width:] if table.shape[1] > width else None
        return Moments(**columns)

    def row(self, name: str) -> tuple[float, ...]:
        table = self.table(name)
        if table.ndim != 1:
            raise StorageError(message("facts-table", table=name, shape=str(table.shape)))
        return tuple(map(float, table))

    def table(self, name: str) -> Array:
        if name not in self.arrays:
            raise StorageError(message("facts-missing", table=name))
        return self.arrays[name]


def encode_results(results: Results) -> dict[str, bytes]:
    """facts.npz and results.json as files to write; the same results give the same bytes."""
    tables = _Tables({})
    judgement = results.judgements
    facts = tuple(_stored(one, tables) for one in results.facts)
    packed = npz_bytes(tables.arrays)
    document = Document(
        schema_=SCHEMA,
        version=VERSION,
        tool=results.tool,
        facts=facts,
        judgement=None
        if judgement is None
        else StoredJudgement(outcome=results.outcome, exit_code=results.exit_code, subjects=judgement),
        comparison=results.comparison,
        pending=results.pending,
        tables=hashlib.sha256(packed).hexdigest(),
    )
    return {FACTS: packed, RESULTS: encoded(document)}


def encoded(document: BaseModel) -> bytes:
    """A document whose model calls its key `schema` by another name, as it is written."""
    values = _finite(document.model_dump(mode="json"))
    return encoded_json({"schema": values.pop("schema_"), **values})


def encoded_json(values: object) -> bytes:
    """A JSON document as it is written; half of a surrogate pair is written out."""
    encoded = json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False)
    return encoded.encode("utf-8", "backslashreplace") + b"\n"


def read_results(path: Path) -> Results:
    """Read results from a folder, or from its results.json. Raises StorageError naming what is wrong."""
    source = path / RESULTS if path.is_dir() else path
    raw = decoded(source, SCHEMA, VERSION)
    try:
        document = Document.model_validate_json(json.dumps(raw))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part).rstrip("_") for part in first["loc"]) or source.name
        raise StorageError(message("results-invalid", path=str(source), where=where, reason=first["msg"])) from error
    tables = _Tables(_read_tables(source.parent / FACTS, document.tables))
    return Results(
        tool=document.tool,
        facts=tuple(_restored(facts, tables, source) for facts in document.facts),
        judgements=None if document.judgement is None else document.judgement.subjects,
        comparison=document.comparison,
        pending=document.pending,
    )


def decoded(source: Path, schema: str, version: int) -> dict[str, Any]:
    """A JSON document as `encoded` writes one, as values for its model. Raises StorageError where it is not there, no
    JSON, another document, or of a version that this driftgate does not know."""
    try:
        raw = json.loads(source.read_bytes())
    except OSError as error:
        raise StorageError(message("results-absent", path=str(source), reason=error.strerror or "")) from error
    except (ValueError, RecursionError) as error:
        raise StorageError(message("results-garbled", path=str(source), reason=str(error))) from error
    if not isinstance(raw, dict) or raw.get("schema") != schema:
        raise StorageError(message("results-other", path=str(source), wanted=schema))
    if raw.get("version") != version:
        found = str(raw.get("version"))
        raise StorageError(message("results-version", path=str(source), found=found, wanted=version))
    raw["schema_"] = raw.pop("schema")
    return raw


def results_schema() -> Mapping[str, Any]:
    """The JSON Schema of results.json, version 1."""
    return published(TypeAdapter(Document), "driftgate results", "Facts and judgement of one run.")


def published(adapter: TypeAdapter[Any], title: str, description: str) -> Mapping[str, Any]:
    """The schema of a document whose models call its key `schema` by another name."""
    schema = adapter.json_schema(schema_generator=_Schema, mode="serialization")
    properties = schema["properties"]
    schema["properties"] = {"schema": properties.pop("schema_"), **properties}
    schema["required"] = ["schema" if name == "schema_" else name for name in schema["required"]]
    told = f"{description} Additive within version 1."
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title, "description": told}


class _Schema(GenerateJsonSchema):
    """Numbers that are not finite are written as strings."""

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        return {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}


def _finite(value: Any) -> Any:  # noqa: ANN401 - JSON of any form
    """Numbers that are not finite as strings, which JSON can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def _stored(facts: Facts, tables: _Tables) -> StoredFacts:
    return StoredFacts(
        plan=facts.plan,
        plan_digest=facts.plan.digest,
        runs=facts.runs,
        environments=tuple(StoredEnvironment(id=e.id, **asdict(e)) for e in facts.environments),
        performance=facts.performance,
        measurements=tuple(
            StoredMeasurement(
                link=m.link,
                output=m.output,
                role=m.role,
                run_a=m.run_a,
                run_b=m.run_b,
                alignment=m.alignment,
                step=m.step,
                samples=m.samples,
                rows=tables.put_moments(m.rows),
                blocks=m.blocks,
                channels=None if m.channels is None else tables.put_moments(m.channels),
            )
            for m in facts.measurements
        ),
        scores=tuple(
            StoredScores(
                stage=s.stage,
                run=s.run,
                score=s.score,
                columns=s.columns,
                samples=s.samples,
                values=tables.put(s.values),
                rows=s.rows,
            )
            for s in facts.scores
        ),
        recordings=facts.recordings,
        investigations=tuple(_stored_investigation(i, tables) for i in facts.investigations),
        tool_facts=facts.tool_facts,
        problems=facts.problems,
    )


def _stored_investigation(found: Investigation, tables: _Tables) -> StoredInvestigation:
    return StoredInvestigation(
        link=found.link,
        pairs=found.pairs,
        unpaired_a=found.unpaired_a,
        unpaired_b=found.unpaired_b,
        nodes=tuple(
            StoredNode(
                pair=node.pair,
                op=node.op,
                order=node.order,
                region=node.region,
                total=tables.put_moments(node.total),
                own=None if node.own is None else tables.put_moments(node.own),
                excess=node.excess,
                top_channels=node.top_channels,
                step=node.step,
                clipped=node.clipped,
                shape=node.shape,
                channel_excess=tables.put(np.array(node.channel_excess)) if node.channel_excess else None,
            )
            for node in found.nodes
        ),
        trials=found.trials,
        samples=found.samples,
        tap_gap=found.tap_gap,
        runs=found.runs,
        seconds=found.seconds,
        notes=found.notes,
        histograms=found.histograms,
        vendor=found.vendor,
        explained=found.explained,
        explanations=found.explanations,
        ruled_out=found.ruled_out,
    )


def _restored(stored: StoredFacts, tables: _Tables, source: Path) -> Facts:
    if stored.plan.digest != stored.plan_digest:
        raise StorageError(message("plan-tampered", path=str(source), subject=stored.plan.subject))
    return Facts(
        plan=stored.plan,
        runs=stored.runs,
        environments=tuple(Environment(**e.model_dump(exclude={"id"})) for e in stored.environments),
        performance=stored.performance,
        measurements=tuple(_restored_measurement(m, tables, source) for m in stored.measurements),
        scores=tuple(_restored_scores(s, tables, source) for s in stored.scores),
        recordings=stored.recordings,
        investigations=tuple(
            Investigation(
                link=i.link,
                pairs=i.pairs,
                unpaired_a=i.unpaired_a,
                unpaired_b=i.unpaired_b,
                nodes=tuple(
                    NodeError(
                        pair=n.pair,
                        op=n.op,
                        order=n.order,
                        region=n.region,
                        total=tables.moments(n.total),
                        own=None if n.own is None else tables.moments(n.own),
                        excess=n.excess,
                        top_channels=n.top_channels,
                        step=n.step,
                        clipped=n.clipped,
                        shape=n.shape,
                        channel_excess=tables.row(n.channel_excess) if n.channel_excess else (),
                    )
                    for n in i.nodes
                ),
                trials=i.trials,
                samples=i.samples,
                tap_gap=i.tap_gap,
                runs=i.runs,
                seconds=i.seconds,
                notes=i.notes,
                histograms=i.histograms,
                vendor=i.vendor,
                explained=i.explained,
                explanations=i.explanations,
                ruled_out=i.ruled_out,
            )
            for i in stored.investigations
        ),
        tool_facts=stored.tool_facts,
        problems=stored.problems,
    )


def _restored_measurement(stored: StoredMeasurement, tables: _Tables, source: Path) -> Measurement:
    rows = tables.moments(stored.rows)
    channels = None if stored.channels is None else tables.moments(stored.channels)
    uneven = channels is not None and (not stored.blocks or len(channels) % len(stored.blocks))
    if len(rows) != len(stored.samples) or uneven:
        raise StorageError(message("facts-length", path=str(source), link=stored.link, output=stored.output))
    return Measurement(
        link=stored.link,
        output=stored.output,
        role=stored.role,
        run_a=stored.run_a,
        run_b=stored.run_b,
        alignment=stored.alignment,
        step=stored.step,
        samples=stored.samples,
        rows=rows,
        blocks=stored.blocks,
        channels=channels,
    )


def _restored_scores(stored: StoredScores, tables: _Tables, source: Path) -> ScoreRecords:
    values = tables.table(stored.values)
    rows = (1,) * len(stored.samples) if stored.rows is None else stored.rows
    fitting = len(rows) == len(stored.samples) and min(rows, default=0) >= 0
    if not fitting or values.shape != (sum(rows), len(stored.columns)):
        raise StorageError(message("facts-length", path=str(source), link=stored.stage, output=stored.score))
    return ScoreRecords(stored.stage, stored.run, stored.score, stored.columns, stored.samples, values, stored.rows)


def _read_tables(path: Path, sha256: str) -> dict[str, Array]:
    """The tables; StorageError where they are damaged, or not those that were written with the document."""
    try:
        tables = _unpacked_tables(path)
        is_other = bool(sha256) and file_digest(path) != sha256
    except (OSError, *DAMAGES) as error:
        raise StorageError(
            message("facts-garbled", path=str(path), reason=str(error) or type(error).__name__)
        ) from error
    if is_other:
        raise StorageError(message("facts-other", path=str(path), document=RESULTS))
    return tables


def _unpacked_tables(path: Path) -> dict[str, Array]:
    with zipfile.ZipFile(path) as archive:
        total = sum(info.file_size for info in archive.infolist())
        if total > max(PLAIN_TABLE_BYTES, MOST_RATIO * path.stat().st_size):
            raise ValueError(f"{total} bytes of tables in a file of {path.stat().st_size}")
        return {
            info.filename.removesuffix(".npy"): read_member(archive, info).astype(np.float64, copy=False)
            for info in archive.infolist()
        }
