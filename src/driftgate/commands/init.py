"""`driftgate init`: a commented driftgate.yaml for a folder in which hb_compile has worked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from driftgate.commands.speaking import LogText, guarded, say, stdout, verbose_option
from driftgate.errors import UsageError
from driftgate.messages.message import message
from driftgate.storage.atomic import write_bytes

#: stage → ending of the vendor's file name after its prefix (toolchain facts §2.2), in the chain's order.
ENDINGS: Mapping[str, str] = {
    "original_float": "_original_float_model.onnx",
    "optimized_float": "_optimized_float_model.onnx",
    "calibrated": "_calibrated_model.onnx",
    "ptq": "_ptq_model.onnx",
    "quantized_removed": "_quantized_removed_model.bc",
    "quantized": "_quantized_model.bc",
    "hbm": ".hbm",
}
#: Stages that only the vendor's runtime can run; until they are recorded, they stand as comments.
FOREIGN = ("quantized", "quantized_removed", "hbm")


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path("driftgate.yaml"), help="The file to write.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@verbose_option
@guarded
def command(folder: Path, out: Path, force: bool, verbose: bool) -> int:
    """Find the vendor's files in FOLDER by their names and write a configuration to start from."""
    LogText(verbose=verbose)
    if not folder.is_dir():
        raise UsageError(message("init-no-folder", folder=str(folder)))
    if out.exists() and not force:
        raise UsageError(message("init-exists", path=str(out)))
    found = discover(folder)
    if not found:
        raise UsageError(message("init-nothing", folder=str(folder), endings=tuple(ENDINGS.values())))
    write_bytes(out, "\n".join(_lines(found, out.resolve().parent)).encode() + b"\n")
    stdout().print(say(message("init-written", path=str(out), subjects=tuple(found))), markup=False)
    return 0


def discover(folder: Path) -> dict[str, dict[str, Path]]:
    """prefix → stage → file, for every prefix that has at least one of the vendor's files in the folder."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        for stage, ending in ENDINGS.items():
            if path.name.endswith(ending) and path.name != ending and path.is_file():
                found.setdefault(path.name.removesuffix(ending), {})[stage] = path
                break
    return found


def _lines(found: Mapping[str, Mapping[str, Path]], root: Path) -> Iterator[str]:
    yield "# Written by `driftgate init`. Every line with <…> waits for you."
    yield "version: 1"
    yield "defaults: {chain: ptq, platform: J6M}   # J6E, J6M, J6B, J6H, J6P, S100, S100P or S600"
    yield "subjects:"
    for prefix, stages in found.items():
        yield from _subject(prefix, stages, root)


def _subject(prefix: str, stages: Mapping[str, Path], root: Path) -> Iterator[str]:
    yield f"  {_quoted(prefix)}:"
    yield "    artifacts:"
    yield "      # pytorch: {backend: torch, load: <module:function>, weights: <net.pth>}   # or a recording"
    yield "      # onnx: <the exported .onnx>"
    for stage in _in_order(stages):
        where = _quoted(_relative(stages[stage], root))
        if stage in FOREIGN:
            yield f"      # {where} is run by the vendor's tools; record its outputs and name the folder here:"
            yield f"      # {stage}: {{backend: recorded, path: <folder of one .npz a sample>}}"
        else:
            yield f"      {stage}: {where}"
    yield "    samples:"
    yield '      raw: "<what the float model eats: a stacked .npz or a folder of one .npz a sample>"'
    yield "      # runtime: <what the deployed model eats, same ids>"
    yield "    # score: {task: classification, labels: <labels.npz>, baseline: {top1: <356/360>}}"


def _in_order(stages: Mapping[str, Path]) -> Sequence[str]:
    return [stage for stage in ENDINGS if stage in stages]


def _relative(path: Path, root: Path) -> str:
    resolved = path.resolve()
    return str(resolved.relative_to(root)) if resolved.is_relative_to(root) else str(resolved)


def _quoted(name: str) -> str:
    """A YAML double-quoted scalar; JSON's string form is one."""
    return json.dumps(name, ensure_ascii=False)
