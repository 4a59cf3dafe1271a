"""hb_compile's advice as JSON or CSV. Its form is not published: remarks are kept as told (toolchain facts §2.2)."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from driftgate.domain.toolchain.build import Advice
from driftgate.domain.toolchain.common import Entries
from driftgate.vendor.console import plain_lines
from driftgate.vendor.files import another_file, compact, form_error, json_value, read_text

TOOL = "hb_compile"
WANTED = "a list or an object of remarks"


def read_advice(path: Path) -> Advice:
    """The remarks of `advice.json` or `advice.csv`; ArtifactError where the file is neither."""
    text = read_text(path)
    parse = parse_advice_csv if path.suffix.lower() == ".csv" else parse_advice
    return parse(text, name=str(path))


def parse_advice(text: str, *, name: str = "-") -> Advice:
    """The remarks of JSON: one for each item of a list, or for each key of an object."""
    value = json_value(text, name, tool=TOOL)
    if isinstance(value, list):
        return Advice(tuple(_remark(item) for item in value))
    if isinstance(value, dict):
        return Advice(
            tuple(
                remark
                for key, entry in value.items()
                for item in (entry if isinstance(entry, list) else [entry])
                for remark in [(("key", str(key)), *_remark(item))]
            )
        )
    raise form_error(name, tool=TOOL, key="-", found=value, wanted=WANTED)


def parse_advice_csv(text: str, *, name: str = "-") -> Advice:
    """The remarks of CSV: one for each row below the header. A last line without its end may be cut: it is left."""
    plain = "\n".join(plain_lines(text)).replace("\0", "")
    try:
        rows = [row for row in csv.reader(io.StringIO(plain, newline="")) if row]
    except csv.Error as error:
        raise another_file(text, name, tool=TOOL, wanted=("comma-separated values",)) from error
    columns, *below = rows if rows else [[]]
    if len(columns) < 2:
        raise another_file(text, name, tool=TOOL, wanted=("comma-separated values",))
    whole = below if text.endswith(("\n", "\r")) else below[:-1]
    return Advice(tuple(tuple(zip(columns, row, strict=True)) for row in whole if len(row) == len(columns)))


def _remark(item: object) -> Entries:
    pairs = item.items() if isinstance(item, dict) else [("text", item)]
    return tuple((str(key), _text(value)) for key, value in pairs)


def _text(value: object) -> str:
    return value if isinstance(value, str) else compact(value)
