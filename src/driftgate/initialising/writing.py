"""The lines of a driftgate.yaml for what was found, with comments on what stands where."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from driftgate.backends.quantfile import signature_path
from driftgate.domain.platforms import PLATFORMS
from driftgate.domain.toolchain.common import InputContract
from driftgate.escaping.terminal import inert
from driftgate.initialising.conflicts import conflicts
from driftgate.initialising.survey import Build, Source, Subject
from driftgate.messages.message import Message, message
from driftgate.messages.text import text
from driftgate.settings.declared import InputSettings

#: Stages that the vendor's runtime runs; ONNX files with operators of its own go there as well.
FOREIGN = ("quantized", "quantized_removed", "hbm")
#: Integers come out of these where nodes were removed.
INTEGER = ("quantized_removed", "hbm")
MARKED = ("calibrated", "ptq")
PYTHON = "<the interpreter of the OpenExplorer environment>"
#: Fields of a contract by the words of `declared`.
WORDS = {"train": "type_train", "rt": "type_rt", "layout": "layout_train"}
NUMBERS = ("mean", "scale", "std")

_EXPONENT = re.compile(r"^(-?\d+)(e.*)$")


def warnings(subject: Subject) -> tuple[Message, ...]:
    """What its reader must look at: it stands in the file and is told."""
    undeclared = (_undeclared(contract) for contract in _declarable(subject) if not _is_declared(contract))
    return (*subject.problems, *conflicts(subject), *undeclared)


def lines(subjects: Sequence[Subject], root: Path) -> Iterator[str]:
    """The file; its paths start from `root`."""
    stages = {stage for subject in subjects for stage in subject.stages}
    yield "# Written by `driftgate init`. Every line with <…> waits for you."
    yield "version: 1"
    yield "defaults:"
    yield "  chain: ptq   # qat for a network that was trained quantised"
    off = "" if stages & {*FOREIGN, *MARKED} else "# "
    yield f"  {off}hbruntime: {{python: [{quoted(PYTHON)}]}}   # or a container's: docker, run, -i, …"
    yield "subjects:"
    for subject in subjects:
        yield from _subject(subject, root)


def _subject(subject: Subject, root: Path) -> Iterator[str]:
    yield f"  {quoted(subject.name)}:"
    for warning in warnings(subject):
        yield f"    # LOOK: {comment(warning)}"
    yield from _platform(subject)
    yield "    artifacts:"
    yield "      # pytorch: {backend: torch, load: <module:function>, weights: <net.pth>}   # or a recording"
    yield from _onnx(subject, root)
    yield from _build(subject, root)
    yield "    samples:"
    yield '      raw: "<what the float model eats: a stacked .npz or a folder of one .npz a sample>"'
    yield from _declared(subject)
    yield "      # runtime: <what the deployed model eats, same ids>"
    yield from _calibration(subject, root)
    yield "    # score: {task: classification, labels: <labels.npz>, baseline: {top1: <356/360>}}"


def _platform(subject: Subject) -> Iterator[str]:
    if subject.targets:
        marches = ", ".join(f"{build.target} {build.march or '-'}" for build in subject.builds)
        yield f"    targets: [{', '.join(subject.targets)}]   # marches: {inert(marches)}"
        return
    (build,) = subject.builds
    source = next((source for source in build.sources if source.march), None)
    if source is None:
        name = build.target or "J6M"
        why = "as the folder's name says" if build.target else f"<one of {', '.join(PLATFORMS)}: no march was found>"
    elif not build.platforms:
        name, why = "J6M", f"<no platform is known for march {inert(source.march or '')}, which {source.name} tells>"
    else:
        name, *others = build.platforms
        shared = f"; {' and '.join(others)} {'has' if len(others) == 1 else 'have'} the same" if others else ""
        why = f"march {inert(source.march or '')}, as {quoted(source.name)} says{shared}"
    yield f"    platform: {name}   # {why}"


def _onnx(subject: Subject, root: Path) -> Iterator[str]:
    """The model that hb_compile read, where it is still there."""
    told = [path for build in subject.builds for path in _models(build)]
    found = next((path for path in told if path.suffix.lower() == ".onnx" and path.is_file()), None)
    if found is not None:
        yield f"      onnx: {quoted(relative(found, root))}"
    else:
        was = f"   # hb_compile read {quoted(str(told[0]))}, which is not there" if told else ""
        yield f"      # onnx: <the exported .onnx>{was}"


def _models(build: Build) -> Iterator[Path]:
    """Where the model that was built may lie."""
    if build.yaml is not None and build.yaml[1].model is not None:
        path, settings = build.yaml
        yield path.parent / (settings.model or "")
        yield Path(settings.model or "")
    if build.log is not None and (told := build.log.blocks.entry("onnx_model")):
        yield Path(told)


def _build(subject: Subject, root: Path) -> Iterator[str]:
    """The entry, and as comments the stages that its files stand for."""
    prefix = f", prefix: {quoted(subject.prefix)}" if subject.prefix is not None else ""
    yield f"      build: {{from: {quoted(relative(subject.folder, root))}{prefix}}}   # its files stand for:"
    for stage, builds in subject.stages.items():
        path = dict(builds[0].files.models)[stage]
        absent = [build.target or "" for build in subject.builds if build not in builds]
        lacks = f", not for {', '.join(absent)}" if absent else ""
        by = ", run by HBRuntime" if stage in FOREIGN else ""
        yield f"      #   {stage}: {quoted(path.name)}{by}{lacks}"
    if subject.stages.keys() & {*FOREIGN}:
        yield "      # a stage that is named here goes before the build's, such as outputs recorded elsewhere:"
        yield "      # hbm: {backend: recorded, path: <folder of one .npz a sample>}"
    yield from _removed(subject)


def _removed(subject: Subject) -> Iterator[str]:
    for build in subject.builds:
        names: tuple[str, ...] = ()
        if build.yaml is not None:
            names = (*build.yaml[1].removed_types, *build.yaml[1].removed_names)
        if build.log is not None and build.log.removed:
            names = tuple(f"{node.node} ({node.op})" for node in build.log.removed)
        if names:
            models = dict(build.files.models)
            scales = [quoted(signature_path(models[stage]).name) for stage in INTEGER if stage in models]
            beside = f"; scales: as the files tell them, else in {' and '.join(scales)}" if scales else ""
            yield f"      # removed nodes: {', '.join(map(quoted, names))}{beside}"
            return


def _declarable(subject: Subject) -> tuple[InputContract, ...]:
    """The inputs that are not handed on as they are, by the first source that tells any."""
    told = next((source.inputs for build in subject.builds for source in build.sources if source.inputs), ())
    return tuple(one for one in told if one.type_rt not in (None, "featuremap"))


def _declared(subject: Subject) -> Iterator[str]:
    inputs = _declarable(subject)
    if any(_is_declared(one) for one in inputs):
        yield "      declared:   # runtime samples are made of raw ones so; leave out with `runtime`"
    for one in sorted(inputs, key=_is_declared, reverse=True):
        name = one.name or "<the input's name>"
        told = ", ".join(f"{key}: {_value(value)}" for key, value in _words(one).items())
        yield f"      {'  ' if _is_declared(one) else '# '}{quoted(name)}: {{{told}}}"


def _words(contract: InputContract) -> Mapping[str, str | tuple[float, ...]]:
    words = {word: getattr(contract, field) for word, field in WORDS.items()}
    words["space"] = contract.space_and_range if contract.type_rt == "nv12" else None
    words.update({name: getattr(contract, name) for name in NUMBERS})
    return {word: value for word, value in words.items() if value}


def _is_declared(contract: InputContract) -> bool:
    """Whether driftgate makes such runtime samples."""
    try:
        InputSettings.model_validate(_words(contract))
    except ValueError:
        return False
    return True


def _undeclared(contract: InputContract) -> Message:
    return message("init-undeclared", input=contract.name, rt=contract.type_rt or "-", train=contract.type_train or "-")


def _calibration(subject: Subject, root: Path) -> Iterator[str]:
    for build in subject.builds:
        source = next((source for source in build.sources if source.calibration), None)
        if source is not None:
            yield _calibrated(source, {name: _folder(folder, build) for name, folder in _known(source)}, root)
            break
    for build in subject.builds:
        if build.yaml is not None and (build.yaml[1].quant_config or build.yaml[1].has_inline_quant_config):
            path = build.yaml[1].quant_config
            where = quoted(path) if path else f"written out in {quoted(build.yaml[0].name)}"
            yield f"      # quant_config: {where}"
            break


def _known(source: Source) -> Iterator[tuple[str, str]]:
    """Input and folder; a place to fill in where the input is not known."""
    for at, (name, folder) in enumerate(source.calibration):
        yield name or f"<input {at}>", folder


def _calibrated(source: Source, folders: Mapping[str, Path], root: Path) -> str:
    """The key by input, as a comment where not all inputs are known and all folders there."""
    is_known = all(name for name, _ in source.calibration) and all(folder.is_dir() for folder in folders.values())
    paths = {name: relative(folder, root) if folder.is_dir() else str(folder) for name, folder in folders.items()}
    told = ", ".join(f"{quoted(name)}: {quoted(path)}" for name, path in paths.items())
    key = f"{'' if is_known else '# '}calibration: {{{told}}}"
    return f"      {key}   # as {quoted(source.name)} says; not to be evaluated with"


def _folder(folder: str, build: Build) -> Path:
    """Where a folder of calibration data is; as it is told where it is not there."""
    places = [Path(folder)] if build.yaml is None else [build.yaml[0].parent / folder, Path(folder)]
    return next((place for place in places if place.is_dir()), Path(folder))


def relative(path: Path, root: Path) -> str:
    """The path from `root` where it is within, else in full."""
    resolved = path.resolve()
    return resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else str(resolved)


def quoted(name: str) -> str:
    """A double-quoted scalar of YAML: JSON's string form is one, but for characters that YAML does not print."""
    made = json.dumps(name, ensure_ascii=False)
    return "".join(one if one.isprintable() else _escaped(one) for one in made)


def comment(said: Message) -> str:
    """A message in one line."""
    return text(said, quote=inert)


def _escaped(character: str) -> str:
    point = ord(character)
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"


def _value(value: str | tuple[float, ...]) -> str:
    return quoted(value) if isinstance(value, str) else f"[{', '.join(map(_number, value))}]"


def _number(value: float) -> str:
    """A number that YAML takes for one: 1e-05 is a word there."""
    return _EXPONENT.sub(r"\1.0\2", repr(value))
