"""The `build` entry of the artifacts: the folder in which hb_compile has worked, its files found by their prefix."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import Field

from driftgate.buildfacts import other_prefix
from driftgate.domain.samples import SampleSet
from driftgate.domain.toolchain.build import CompiledFiles, CompileLog
from driftgate.domain.toolchain.common import InputContract
from driftgate.errors import ArtifactError, SampleError
from driftgate.messages.message import Message, message
from driftgate.sessions import Artifact
from driftgate.settings.artifacts import BY_SUFFIX, TARGET, AnyArtifact, HbRuntimeArtifact, OnnxRuntimeArtifact
from driftgate.settings.declared import InputSettings
from driftgate.settings.section import Section
from driftgate.storage.calibration import CalibrationFolders
from driftgate.storage.tensorfiles import TensorSource, tensors_digest
from driftgate.transforms.declared import Declaration
from driftgate.vendor.compile_log import read_compile_log
from driftgate.vendor.derived import Conflict, contract_conflicts
from driftgate.vendor.outputs import find_outputs

#: Stages for which the node table of the build has a cosine.
WITH_NODE_TABLE = frozenset({"calibrated", "ptq", "quantized"})


class BuildSettings(Section):
    """Where hb_compile left its files. `{target}` stands for the platform."""

    from_: str = Field(alias="from", description="the working_dir; {target} in it is the platform, as in J6M")
    prefix: str | None = Field(default=None, description="output_model_file_prefix, where the folder has several")

    def files(self, root: Path, target: str) -> CompiledFiles:
        """What lies there. Raises ArtifactError."""
        return find_outputs(root / self.from_.replace(TARGET, target), self.prefix)


def made_artifacts(files: CompiledFiles, known: dict[str, AnyArtifact], *, threads: int) -> list[Artifact]:
    """The build's models as artifacts, but for stages that are given already."""
    table = dict(files.reports).get("node_info")
    found = []
    for stage, path in files.models:
        if stage in known:
            continue
        node_table = table if stage in WITH_NODE_TABLE else None
        kind = HbRuntimeArtifact if BY_SUFFIX[path.suffix] == "hbruntime" else OnnxRuntimeArtifact
        section = kind.model_validate({"path": path, "node-table": node_table})
        found.append(section.artifact(stage, root=Path(), threads=threads, custom_ops=()))
    return found


def calibration_of(given: Mapping[str, Path], files: CompiledFiles | None, *, root: Path) -> TensorSource | None:
    """What the network was calibrated with: the folders given by input, else those of the build's log as far as they
    are there. Raises SampleError for folders that are given and cannot be read."""
    if given:
        return CalibrationFolders({name: root / folder for name, folder in given.items()})
    log = _log(files)
    if files is None or log is None or len(log.calibration_folders) != len(log.blocks.inputs):
        return None
    names = [contract.name for contract in log.blocks.inputs]
    folders = [files.folder / folder for folder in log.calibration_folders]
    try:
        return CalibrationFolders(dict(zip(names, folders, strict=True))) if folders else None
    except SampleError:
        return None  # it lies on the machine that built


def overlap_notes(samples: SampleSet, calibration: TensorSource | None) -> tuple[Message, ...]:
    """Whether samples are what the network was calibrated with."""
    if calibration is None:
        return ()
    known = set()
    for sample in calibration.ids:
        try:
            known.add(tensors_digest(calibration.read(sample)))
        except SampleError:
            continue
    count = len(known.intersection(samples.digests))
    return (message("evaluated-on-calibration", count=count, total=len(samples.ids)),) if count else ()


def conflict_notes(declared: Mapping[str, InputSettings], files: CompiledFiles | None) -> tuple[Message, ...]:
    """Where inputs are declared otherwise than the build's log tells them."""
    log = _log(files)
    if log is None:
        return ()
    ours = [settings.contract(name) for name, settings in declared.items()]
    found = list(contract_conflicts(ours, log.blocks.inputs))
    for contract in log.blocks.inputs:
        settings = declared.get(contract.name)
        if settings is not None and None not in (contract.mean, contract.scale):
            found += _other_numbers(settings.declaration(), contract)
    return tuple(
        message("declared-conflict", input=one.input, field=one.field, found=one.found, other=one.other)
        for one in found
    )


def _other_numbers(ours: Declaration, theirs: InputContract) -> Iterator[Conflict]:
    """Mean and scale that are not the same; std is the reciprocal of scale, and one number stands for all channels."""
    scale = theirs.scale or tuple(1.0 / one for one in theirs.std or () if one)
    for name, a, b, none in (("mean", ours.mean, theirs.mean or (), 0.0), ("scale", ours.scale, scale, 1.0)):
        wide = [side * 3 if len(side) == 1 else side or (none,) * 3 for side in (a, b)]
        same = len(wide[0]) == len(wide[1]) and all(
            math.isclose(x, y, rel_tol=1e-5) for x, y in zip(*wide, strict=True)
        )
        if not same:
            yield Conflict(theirs.name, name, str(a or none), str(b or none))


def _log(files: CompiledFiles | None) -> CompileLog | None:
    path = None if files is None else files.get("log")
    if files is None or path is None:
        return None
    try:
        log = read_compile_log(path)
    except ArtifactError:
        return None
    return None if other_prefix(log, files.prefix) else log
