"""`driftgate init`: a commented driftgate.yaml for a folder in which hb_compile has worked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from driftgate.commands.speaking import LogText, guarded, say, stdout, verbose_option
from driftgate.domain.platforms import PLATFORMS
from driftgate.domain.toolchain.build import CompileSettings
from driftgate.errors import DriftgateError, UsageError
from driftgate.messages.message import message
from driftgate.settings.compileyaml import read_compile_yaml
from driftgate.storage.atomic import write_bytes
from driftgate.vendor.compile_log import read_compile_log
from driftgate.vendor.outputs import LOG

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
@click.option(
    "--yaml", "settings", type=click.Path(path_type=Path), help="hb_compile's YAML of this build: inputs and march."
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("driftgate.yaml"), help="The file to write.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@verbose_option
@guarded
def command(folder: Path, settings: Path | None, out: Path, force: bool, verbose: bool) -> int:
    """Find the vendor's files in FOLDER by their names and write a configuration to start from.

    hb_compile's YAML and its log tell the platform, how runtime samples follow from raw ones, and where the
    calibration data lie.
    """
    LogText(verbose=verbose)
    if not folder.is_dir():
        raise UsageError(message("init-no-folder", folder=str(folder)))
    if out.exists() and not force:
        raise UsageError(message("init-exists", path=str(out)))
    found = discover(folder)
    if not found:
        raise UsageError(message("init-nothing", folder=str(folder), endings=tuple(ENDINGS.values())))
    build = None if settings is None else read_compile_yaml(settings)
    if build is not None and build.prefix in found:
        found = {build.prefix: found[build.prefix]}
    march = _march(folder, build)
    write_bytes(out, "\n".join(_lines(found, out.resolve().parent, build, march)).encode() + b"\n")
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


def _march(folder: Path, build: CompileSettings | None) -> str | None:
    """The march that the YAML says, else the log; None where neither does."""
    if build is not None and build.march:
        return build.march
    try:
        return read_compile_log(folder / LOG).march
    except DriftgateError:
        return None


def _lines(
    found: Mapping[str, Mapping[str, Path]], root: Path, build: CompileSettings | None, march: str | None
) -> Iterator[str]:
    platform = next((name for name, one in PLATFORMS.items() if one.march == march), None)
    told = f"march {march}" if platform is not None else "J6E, J6M, J6B, J6H, J6P, S100, S100P or S600"
    yield "# Written by `driftgate init`. Every line with <…> waits for you."
    yield "version: 1"
    yield f"defaults: {{chain: ptq, platform: {platform or 'J6M'}}}   # {told}"
    yield "# for stages of the vendor's runtime, beside platform: hbruntime: {python: [<its interpreter>]}"
    yield "subjects:"
    for prefix, stages in found.items():
        yield from _subject(prefix, stages, root, build)


def _declared(build: CompileSettings) -> Iterator[str]:
    """The inputs in the words of hb_compile's YAML, and where its calibration data lie."""
    inputs = [one for one in build.inputs if one.name and one.type_rt not in (None, "featuremap")]
    if inputs:
        yield "      declared:   # runtime samples are made of raw ones so; leave out with `runtime`"
    for one in inputs:
        words = {
            "train": one.type_train,
            "rt": one.type_rt,
            "layout": one.layout_train,
            "space": one.space_and_range,
            "mean": list(one.mean or ()) or None,
            "scale": list(one.scale or ()) or None,
            "std": list(one.std or ()) or None,
        }
        told = ", ".join(f"{key}: {json.dumps(value)}" for key, value in words.items() if value is not None)
        yield f"        {_quoted(one.name)}: {{{told}}}"
    for folder in build.calibration_folders:
        yield f"      # calibrated with {_quoted(folder)}, which must not be what is evaluated here"
    if build.removed_types or build.removed_names:
        removed = ", ".join((*build.removed_types, *build.removed_names))
        yield f"      # removed nodes: {_quoted(removed)}; tell their scales in <file>.signature.json"


def _subject(prefix: str, stages: Mapping[str, Path], root: Path, build: CompileSettings | None) -> Iterator[str]:
    yield f"  {_quoted(prefix)}:"
    yield "    artifacts:"
    yield "      # pytorch: {backend: torch, load: <module:function>, weights: <net.pth>}   # or a recording"
    yield "      # onnx: <the exported .onnx>"
    for stage in _in_order(stages):
        where = _quoted(_relative(stages[stage], root))
        if stage in FOREIGN:
            yield f"      # {where} is run by the vendor's tools: by HBRuntime, or recorded elsewhere"
            yield f"      # {stage}: {where}   # or {{backend: recorded, path: <folder of one .npz a sample>}}"
        else:
            yield f"      {stage}: {where}"
    yield "    samples:"
    yield '      raw: "<what the float model eats: a stacked .npz or a folder of one .npz a sample>"'
    if build is not None:
        yield from _declared(build)
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
