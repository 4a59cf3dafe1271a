"""Archives of reports as a run uploads them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace

from driftgate.domain.history import History
from driftgate.domain.judgement import Outcome
from driftgate.domain.results import Results
from driftgate.storage.document import RESULTS, encode_results
from driftgate.storage.history import HISTORY, encode_history
from support.github.past import Ran
from support.results import healthy_pair
from support.results import results as together


def healthy() -> Results:
    """Results that passed."""
    return together(healthy_pair())


def report(run: Ran, results: Results | None = None, *, history: History | None = None, **changed: object) -> bytes:
    """The zip of a report folder of that run; `changed` replaces keys of its results.json."""
    files = dict(encode_results(results or healthy()))
    if changed:
        document = json.loads(files[RESULTS])
        files[RESULTS] = json.dumps(document | changed).encode()
    files["origin.json"] = json.dumps({"sha": run.sha, "run": str(run.id), "attempt": str(run.attempt)}).encode()
    files["summary.md"] = b"# a page\n"
    files["index.html"] = b"<p>"
    if history is not None:
        files[HISTORY] = encode_history(history)
    return zipped(files)


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A zip of these files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def failed(results: Results) -> Results:
    """The same, one check of it failed."""
    return replace(results, judgements=tuple(replace(one, outcome=Outcome.FAILED) for one in results.judgements or ()))
