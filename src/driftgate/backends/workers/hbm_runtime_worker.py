"""The worker that runs an .hbm with the vendor's hbm_runtime on the board itself; see backends/foreign.py for the
protocol.

Standard library, numpy and the vendor's package only, and Python 3.8 as for its siblings. What is used of
HB_HBMRuntime stands in toolchain facts §8.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any, Dict, Mapping, Sequence, Tuple  # noqa: UP035

sys.path.insert(0, str(Path(__file__).resolve().parent))  # python -I and PYTHONSAFEPATH leave it out

from worker_protocol import Failure, Infer, reason, serve  # type: ignore[import-not-found]

PACKAGE = "hbm_runtime"
DISTRIBUTION = "hbm-runtime"
#: Key of what the builder wrote into a model → what it tells.
TOLD = {"MARCH": "march", "HBDK_VERSION": "version"}
#: The board had no memory, or was at odds with what else it had loaded: nothing of the file's (toolchain facts §13).
OF_THE_BOARD = re.compile(
    r"Cannot malloc bpu memory|ION_IOC_ALLOC|RESOURCE_EXHAUSTED|-400001(?!\d)|iova addr not equal", re.IGNORECASE
)
#: The beginning of numpy's name of a type, by the first letter of the board's.
KINDS = {"S": "int", "U": "uint", "F": "float"}


def open_artifact(request: Dict[str, Any], taps: Sequence[str]) -> Tuple[Dict[str, Any], Infer]:  # noqa: UP006
    """Load the artifact; outputs keep the types that the runtime gives them."""
    path = request["path"]
    if taps:
        raise Failure("tool", "hbm-taps", taps=list(taps), path=path)
    kind = runtime_class()
    try:
        runtime = kind(path)
        names = [str(name) for name in runtime.model_names]
    except Exception as error:  # the vendor's stack raises whatever it likes
        if OF_THE_BOARD.search(str(error)):
            raise Failure("tool", "hbm-runtime-board", path=path, reason=reason(error)) from error
        raise Failure("refused", "hbm-runtime-refused", path=path, reason=reason(error)) from error
    model = request.get("model") or (names[0] if len(names) == 1 else None)
    if model not in names:
        raise Failure("artifact", "hbm-networks", path=path, names=names, model=model or "-")
    schedule(runtime, model, request)
    outputs = entries(runtime, "output", model)

    def infer(feeds: Dict[str, Any]) -> Mapping[str, Any]:  # noqa: UP006
        import numpy as np

        made = runtime.run({model: feeds})[model]
        missing = [one["name"] for one in outputs if one["name"] not in made]
        if missing:
            raise Failure("tool", "hbm-outputs", path=path, outputs=missing, found=[str(name) for name in made])
        return {one["name"]: np.array(made[one["name"]]) for one in outputs}

    answer = {
        "inputs": entries(runtime, "input", model),
        "outputs": outputs,
        "provider": PACKAGE,
        "threads": 1,
        "told": described(runtime, model),
    }
    return answer, infer


def schedule(runtime: Any, model: str, request: Mapping[str, Any]) -> None:  # noqa: ANN401 - an object of the vendor's
    """Choose core and priority, where they are given."""
    given = {}
    if request.get("cores"):
        given["bpu_cores"] = {model: list(request["cores"])}
    if request.get("priority") is not None:
        given["priority"] = {model: request["priority"]}
    if given:
        runtime.set_scheduling_params(**given)


def entries(runtime: Any, side: str, model: str) -> Sequence[Dict[str, Any]]:  # noqa: ANN401, UP006
    """The inputs or outputs in the model's order, in the words of the protocol; the other properties have another."""
    names, dtypes, shapes, quants = (
        getattr(runtime, side + "_" + kind)[model] for kind in ("names", "dtypes", "shapes", "quants")
    )
    return [entry(str(name), dtypes[name], shapes[name], quants[name]) for name in names]


def entry(name: str, kind: Any, lengths: Sequence[int], quant: Any) -> Dict[str, Any]:  # noqa: ANN401, UP006
    """One of them. The axis is 0 where nothing is quantised: type and scales tell whether anything is."""
    dtype = dtype_of(word_of(kind))
    shape = [None if length < 0 else int(length) for length in lengths]
    made = {"name": name, "dtype": dtype, "shape": shape}
    scales = [float(scale) for scale in quant.scale]
    if word_of(quant.quant_type) not in ("SCALE", "1") or not scales or "int" not in dtype:
        return made
    zeros = [int(zero) for zero in quant.zero_point] or [0]
    axis = int(quant.axis) if len(scales) > 1 else None
    return {**made, "quantized": dtype, "scales": scales, "zero_points": zeros, "axis": axis}


def word_of(value: Any) -> str:  # noqa: ANN401 - an enumeration of the vendor's
    """The last word of an enumeration's name, such as S8 or SCALE."""
    return str(getattr(value, "name", value)).rpartition("_")[2]


def dtype_of(word: str) -> str:
    """numpy's name of the board's type, such as S8; empty for types of half a byte, which numpy does not have."""
    if word.startswith("BOOL"):
        return "bool"
    return KINDS[word[0]] + word[1:] if word[:1] in KINDS and word[1:] in ("8", "16", "32", "64") else ""


def described(runtime: Any, model: str) -> Dict[str, str]:  # noqa: ANN401, UP006
    """March and version that the builder wrote into the model, or else into its file."""
    try:
        texts = [*dict(runtime.hbm_descs).values(), dict(runtime.model_descs)[model]]
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
    told = {}
    for text in texts:
        try:
            found = json.loads(text)
        except (TypeError, ValueError):
            continue  # empty, or text of another form
        if isinstance(found, dict):
            told.update({word: str(found[key]) for key, word in TOLD.items() if found.get(key)})
    return told


def runtime_class() -> Any:  # noqa: ANN401 - a class of the vendor's
    """HB_HBMRuntime, where it is installed."""
    try:
        return importlib.import_module(PACKAGE).HB_HBMRuntime
    except (ImportError, AttributeError) as error:
        raise Failure("tool", "hbm-runtime-absent", python=sys.executable, reason=reason(error)) from error


def versions() -> Dict[str, str]:  # noqa: UP006
    """Of the vendor's distribution, where it is installed as one."""
    from importlib import metadata

    try:
        return {PACKAGE: metadata.version(DISTRIBUTION)}
    except metadata.PackageNotFoundError:
        return {}


if __name__ == "__main__":
    sys.exit(serve((), open_artifact, versions()))
