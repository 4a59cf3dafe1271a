"""The files that hb_compile leaves in its folder, found by their prefix (toolchain facts §2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from driftgate.domain.toolchain.build import CompiledFiles
from driftgate.errors import ArtifactError
from driftgate.messages.message import Message, message

#: Stage → how its file goes on behind the prefix.
MODELS = {
    "original_float": "_original_float_model.onnx",
    "optimized_float": "_optimized_float_model.onnx",
    "calibrated": "_calibrated_model.onnx",
    "ptq": "_ptq_model.onnx",
    "quantized": "_quantized_model.bc",
    "quantized_removed": "_quantized_removed_model.bc",
    "hbm": ".hbm",
}
#: Of debug builds only.
INTERMEDIATE = {"ptq_bc": "_ptq_model.bc", "inserted_bc": "_inserted_model.bc"}
REPORTS = {
    "node_info": "_node_info.csv",
    "quant_info": "_quant_info.json",
    "advice": "_advice.json",
    "advice_csv": "_advice.csv",
    "perf": ".json",
    "perf_html": ".html",
}
LOG = "hb_compile.log"
#: Endings that no other file is likely to have; they tell which prefixes a folder holds.
TELLING = {**MODELS, **INTERMEDIATE, "node_info": "_node_info.csv", "quant_info": "_quant_info.json"}


def prefixes(folder: Path) -> tuple[str, ...]:
    """The prefixes of the models in a folder, in alphabetical order; ArtifactError where it cannot be listed."""
    return tuple(sorted({prefix for name in _names(folder) if (prefix := _prefix(name))}))


def find_outputs(folder: Path, prefix: str | None = None) -> CompiledFiles:
    """The files of one prefix, which may be left out where the folder holds one only.

    A target of several has a prefix or a folder of its own. ArtifactError: no such folder, no such prefix, or several
    of them and none asked for; it names those that are there.
    """
    names = _names(folder)
    found = prefixes(folder)
    if prefix is None and len(found) > 1:
        raise ArtifactError(message("compiled-ambiguous", folder=str(folder), prefixes=found))
    chosen = prefix if prefix is not None else next(iter(found), "")
    if chosen not in found:
        wanted = f"{prefix or '*'}{MODELS['quantized']}"
        raise ArtifactError(message("compiled-none", folder=str(folder), wanted=wanted, prefixes=found or ("-",)))
    reports = _present(folder, chosen, REPORTS, names)
    return CompiledFiles(
        folder,
        chosen,
        models=_present(folder, chosen, MODELS, names),
        intermediate=_present(folder, chosen, INTERMEDIATE, names),
        reports=((("log", folder / LOG),) if LOG in names else ()) + reports,
    )


def find_targets(places: Mapping[str, tuple[Path, str | None]]) -> Mapping[str, CompiledFiles]:
    """The files of each target by its folder and prefix; all that is wrong with them in one ArtifactError."""
    found: dict[str, CompiledFiles] = {}
    problems: list[Message] = []
    for target, (folder, prefix) in places.items():
        try:
            found[target] = find_outputs(folder, prefix)
        except ArtifactError as error:
            problems += error.problems
    if problems:
        raise ArtifactError(*problems)
    return found


def _names(folder: Path) -> frozenset[str]:
    try:
        return frozenset(path.name for path in folder.iterdir() if path.is_file())
    except OSError as error:
        reason = error.strerror or str(error)
        raise ArtifactError(message("compiled-no-folder", folder=str(folder), reason=reason)) from error


def _prefix(name: str) -> str:
    """The prefix of a file by the longest ending that fits; empty where none does."""
    fits = [ending for ending in TELLING.values() if name.endswith(ending)]
    return name.removesuffix(max(fits, key=len)) if fits else ""


def _present(
    folder: Path, prefix: str, endings: Mapping[str, str], names: frozenset[str]
) -> tuple[tuple[str, Path], ...]:
    return tuple((key, folder / f"{prefix}{end}") for key, end in endings.items() if f"{prefix}{end}" in names)
