"""history.json: the numbers of a branch's last runs, one column a number, schema `driftgate.history` version 1."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from driftgate.domain.comparisons import PastRun, RowKind
from driftgate.domain.history import History, Series
from driftgate.errors import StorageError
from driftgate.messages.message import message
from driftgate.storage.document import decoded, published

HISTORY = "history.json"
SCHEMA: Literal["driftgate.history"] = "driftgate.history"
VERSION: Literal[1] = 1
#: Digits of a number that are kept: more tell nothing about a slide.
DIGITS = 7


class StoredSeries(BaseModel):
    """One number: `values` has one entry a run, null where it has none; `basis` the place in `bases` of what each of
    them rests on, -1 for none."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    subject: str
    target: str
    kind: RowKind
    key: tuple[str, ...]
    criterion: str
    better: Literal["higher", "lower"]
    bases: tuple[str, ...]
    basis: tuple[int, ...]
    values: tuple[float | None, ...]


class HistoryDocument(BaseModel):
    """history.json."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    schema_: Literal["driftgate.history"]
    version: Literal[1]
    runs: tuple[PastRun, ...]
    series: tuple[StoredSeries, ...]


def encode_history(history: History) -> bytes:
    """The history as a file: one line a number."""
    runs = [{"sha": run.sha, "run": run.run, "day": run.day} for run in history.runs]
    head = f'{{"schema": "{SCHEMA}", "version": {VERSION},\n"runs": {_json(runs)},\n"series": ['
    lines = ",\n".join(_json(_stored(series)) for series in history.series)
    return f"{head}\n{lines}\n]}}\n".encode("utf-8", "backslashreplace")


def read_history(folder: Path) -> History | None:
    """The history in a folder; None where there is none. Raises StorageError where it is damaged or of a version that
    this driftgate does not know."""
    path = folder / HISTORY
    if not path.exists():
        return None
    raw = decoded(path, SCHEMA, VERSION)
    try:
        document = HistoryDocument.model_validate(raw)
        return History(document.runs, tuple(_restored(one, len(document.runs)) for one in document.series))
    except (ValidationError, ValueError, IndexError) as error:
        reason = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise StorageError(message("results-invalid", path=str(path), where="series", reason=reason)) from error


def history_schema() -> Mapping[str, Any]:
    """The JSON Schema of history.json, version 1."""
    return published(TypeAdapter(HistoryDocument), "driftgate history", "The numbers of a branch's last runs.")


def _stored(series: Series) -> dict[str, Any]:
    bases = tuple(dict.fromkeys(basis for basis in series.bases if basis))
    places = {basis: place for place, basis in enumerate(bases)}
    return {
        "subject": series.subject,
        "target": series.target,
        "kind": series.kind.value,
        "key": series.key,
        "criterion": series.criterion,
        "better": series.better,
        "bases": bases,
        "basis": [places.get(basis, -1) for basis in series.bases],
        "values": [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in series.values],
    }


def _restored(one: StoredSeries, runs: int) -> Series:
    if not len(one.values) == len(one.basis) == runs:
        raise ValueError(f"{len(one.values)} values and {len(one.basis)} bases of {runs} runs")
    values = tuple(math.nan if value is None else value for value in one.values)
    bases = tuple("" if place < 0 else one.bases[place] for place in one.basis)
    return Series(one.subject, one.target, one.kind, one.key, one.criterion, one.better, values, bases)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
