"""The Chinese catalogue, driftgate.po: each message of messages/english.py by its code (msgctxt) and sentence (msgid).

python tools/catalogue.py           # after a change of messages/english.py: new entries, stale ones marked fuzzy
python tools/catalogue.py --check   # says what is missing, stale or of no message; exit code 1 where there is any
python tools/catalogue.py --compile # writes the .mo, which the build does by itself

Translate the empty entries; look at the fuzzy ones and take the mark away. `make test` and the build compile them.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from driftgate import __version__
from driftgate.messages.english import ENGLISH
from driftgate.messages.text import DOMAIN, LOCALES

HEADER = "# driftgate in Simplified Chinese; tools/catalogue.py keeps the entries in the order of messages/english.py."
DATE = datetime(2026, 12, 1, tzinfo=timezone.utc)
PO = LOCALES / "zh_CN" / "LC_MESSAGES" / f"{DOMAIN}.po"


def updated(known: Catalog) -> Catalog:
    """The catalogue in the order of the English one, with what is translated already."""
    made = Catalog(
        *("zh_CN", DOMAIN, HEADER, "driftgate"),
        version=__version__,
        msgid_bugs_address="https://github.com/driftgate/driftgate/issues",
        creation_date=DATE,  # one that stays: versions are git's matter
        revision_date=DATE,
        last_translator="driftgate maintainers",
        language_team="zh_CN",
        fuzzy=False,
    )
    before = {entry.context: entry for entry in known if entry.id}
    for code, sentence in ENGLISH.items():
        entry = before.get(code)
        said = str(entry.string) if entry else ""
        is_stale = entry is not None and (entry.fuzzy or entry.id != sentence)
        made.add(sentence, said, context=code, flags={"fuzzy"} if said and is_stale else set())
    return made


def problems(known: Catalog) -> Iterator[str]:
    """What must be done before people read it."""
    entries = {str(entry.context): entry for entry in known if entry.id}
    for code, sentence in ENGLISH.items():
        entry = entries.get(code)
        if entry is None or not entry.string:
            yield f"not translated: {code}"
        elif entry.fuzzy or entry.id != sentence:
            yield f"translated from another sentence: {code}"
    yield from (f"of no message: {code}" for code in entries if code not in ENGLISH)


def read(path: Path = PO) -> Catalog:
    """The catalogue as it is kept. PoFileError where it is none."""
    with path.open("rb") as stream:
        return read_po(stream, abort_invalid=True)


def written(catalogue: Catalog) -> bytes:
    """As it is kept."""
    stream = io.BytesIO()
    write_po(stream, catalogue, width=110)
    return stream.getvalue()


def main(arguments: list[str]) -> int:
    """Write it anew, check it, or compile it."""
    known = read()
    if "--check" in arguments:
        found = list(problems(known))
        print("\n".join(found) or f"{PO.name} has every message")
        return 1 if found else 0
    if "--compile" in arguments:
        with PO.with_suffix(".mo").open("wb") as stream:
            write_mo(stream, known)
        return 0
    PO.write_bytes(written(updated(known)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
