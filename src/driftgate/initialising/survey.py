"""What lies in hb_compile's folder: networks by their prefixes, targets by sibling folders, settings, logs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from driftgate.buildfacts import other_prefix
from driftgate.domain.platforms import PLATFORMS
from driftgate.domain.toolchain.build import CompiledFiles, CompileLog, CompileSettings
from driftgate.domain.toolchain.common import InputContract
from driftgate.errors import ArtifactError
from driftgate.messages.message import Message, message
from driftgate.settings.artifacts import TARGET
from driftgate.settings.compileyaml import PREFIX, find_compile_yamls
from driftgate.vendor.compile_log import read_compile_log
from driftgate.vendor.derived import march_fits
from driftgate.vendor.outputs import LOG, find_outputs, prefixes

#: A platform's name within a folder's or a prefix's, the longer first: S100P is no S100.
_PLATFORM = re.compile(
    rf"(?<![A-Za-z0-9])(?:{'|'.join(sorted(PLATFORMS, key=len, reverse=True))})(?![A-Za-z0-9])", re.ASCII
)

#: A YAML of hb_compile and what it says.
Said = tuple[Path, CompileSettings]


@dataclass(frozen=True, slots=True)
class Source:
    """What one file says of a build: of its inputs, its march, and the data it was calibrated with, as pairs of an
    input, empty where it is not known, and a folder."""

    name: str
    inputs: tuple[InputContract, ...] = ()
    march: str | None = None
    calibration: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Build:
    """What hb_compile left for one target, with its YAML and log where there are any. `target`: the platform that the
    folder is named for."""

    files: CompiledFiles
    target: str | None = None
    yaml: Said | None = None
    log: CompileLog | None = None

    @property
    def sources(self) -> tuple[Source, ...]:
        """Those that say anything, in the order in which they are to be believed."""
        found = []
        if self.yaml is not None:
            path, said = self.yaml
            inputs = named(said.inputs, self.log)
            found.append(Source(path.name, inputs, said.march, by_input(inputs, said.calibration_folders)))
        if self.log is not None:
            name = f"{self.files.folder.name}/{LOG}"
            found.append(Source(name, self.log.blocks.inputs, self.log.march, calibration_folders(self.log)))
        return tuple(found)

    @property
    def march(self) -> str | None:
        """The first that is told."""
        return next((source.march for source in self.sources if source.march), None)

    @property
    def platforms(self) -> tuple[str, ...]:
        """Platforms of this march, that of the folder's name first; of a variant such as nash-b-lite the nearest."""
        march = self.march or ""
        fits = [name for name, one in PLATFORMS.items() if march == one.march or march.startswith(f"{one.march}-")]
        return tuple(sorted(fits, key=lambda name: name != self.target))


@dataclass(frozen=True, slots=True)
class Subject:
    """A network: its builds, one for each target. `folder` holds `{target}` where there are several; `prefix` is None
    where it is another for each."""

    name: str
    folder: Path
    prefix: str | None
    builds: tuple[Build, ...]
    problems: tuple[Message, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """The platforms of several builds; none where there is one."""
        return tuple(build.target for build in self.builds if build.target) if len(self.builds) > 1 else ()

    @property
    def stages(self) -> Mapping[str, tuple[Build, ...]]:
        """Stage → the builds that have it, in the chain's order."""
        found: dict[str, list[Build]] = {}
        for build in self.builds:
            for stage, _ in build.files.models:
                found.setdefault(stage, []).append(build)
        return {stage: tuple(builds) for stage, builds in found.items()}


def survey(folder: Path, given: Said | None = None) -> tuple[Subject, ...]:
    """The networks in a folder; `given` is the YAML of one of them. Raises ArtifactError where it cannot be listed."""
    folder = folder.resolve()
    there = _with_models(folder)
    wanted = None if given is None else given[1].prefix or PREFIX
    if wanted in there:
        return (_subject(folder, wanted, given, ()),)
    problems = () if given is None else (_other_yaml(given, there),)
    return tuple(_subject(folder, prefix, given, problems) for prefix in there)


def named(inputs: Sequence[InputContract], log: CompileLog | None) -> tuple[InputContract, ...]:
    """The YAML's inputs: the only one of a network may stand there without its name, which the log tells."""
    if len(inputs) != 1 or inputs[0].name or log is None:
        return tuple(inputs)
    told = [one.name for one in log.blocks.inputs] or [one.input for one in log.calibration_data]
    return (replace(inputs[0], name=told[0]),) if len(told) == 1 else tuple(inputs)


def by_input(inputs: Sequence[InputContract], folders: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The folders in the order of the inputs, where there are as many."""
    names = [one.name for one in inputs] if len(inputs) == len(folders) else [""] * len(folders)
    return tuple(zip(names, folders, strict=True))


def calibration_folders(log: CompileLog) -> tuple[tuple[str, str], ...]:
    """The folders, or those of the first files, which a log tells even where its blocks are lost."""
    if log.calibration_folders:
        return by_input(log.blocks.inputs, log.calibration_folders)
    first = {data.input: data.first_file for data in log.calibration_data if data.first_file}
    return tuple((name, PurePosixPath(file).parent.as_posix()) for name, file in first.items())


def targets(folder: Path, prefix: str) -> tuple[Path, Mapping[str, tuple[Path, str]]]:
    """The folder with `{target}` for the platform that it is named for, and target → folder and prefix of each that
    holds the same network. Without a sibling for another platform: the folder as it is, and itself at the most."""
    alone: Mapping[str, tuple[Path, str]] = {}
    for place in (folder, folder.parent):
        found = _PLATFORM.search(place.name)
        if found is None:
            continue
        before, after, rest = place.name[: found.start()], place.name[found.end() :], folder.relative_to(place)
        places = {name: place.with_name(f"{before}{name}{after}") / rest for name in PLATFORMS}
        holding = {target: (there, name) for target, there in places.items() if (name := _same(folder, prefix, there))}
        if len(holding) > 1:
            return place.with_name(f"{before}{TARGET}{after}") / rest, holding
        alone = alone or holding
    return folder, alone


def _same(folder: Path, prefix: str, sibling: Path) -> str | None:
    """The prefix of the same network in a sibling: the same, else the only one where each folder has one only."""
    there = _prefixes(sibling)
    if prefix in there:
        return prefix
    return there[0] if len(there) == 1 == len(_prefixes(folder)) else None


def _prefixes(folder: Path) -> tuple[str, ...]:
    """Those that have models; none where there is no such folder."""
    try:
        return _with_models(folder)
    except ArtifactError:
        return ()


def _with_models(folder: Path) -> tuple[str, ...]:
    return tuple(prefix for prefix in prefixes(folder) if find_outputs(folder, prefix).models)


def _subject(folder: Path, prefix: str, given: Said | None, problems: Sequence[Message]) -> Subject:
    found = [*problems]
    template, places = targets(folder, prefix)
    here: list[tuple[str | None, Path, str]] = [(target, *place) for target, place in places.items()]
    builds = [
        _build(place, name, target, given if place == folder else None, found)
        for target, place, name in here or [(None, folder, prefix)]
    ]
    for build in builds:
        if build.target and march_fits(build.march, build.target) is False:
            march, place = build.march or "", str(build.files.folder)
            found.append(message("init-march-folder", folder=place, target=build.target, march=march))
    if len({build.files.prefix for build in builds}) == 1:
        return Subject(prefix, template, prefix, tuple(builds), tuple(found))
    name = _PLATFORM.sub("", prefix).strip("-_. ") or prefix
    return Subject(name, template, None, tuple(builds), tuple(found))


def _other_yaml(given: Said, there: Sequence[str]) -> Message:
    path, settings = given
    return message("init-yaml-other", path=str(path), found=settings.prefix or PREFIX, prefixes=tuple(there))


def _build(folder: Path, prefix: str, target: str | None, given: Said | None, problems: list[Message]) -> Build:
    files = find_outputs(folder, prefix)
    said = given if given is not None else _yaml_of(folder, prefix, problems)
    return Build(files, target, said, _log_of(files, problems))


def _yaml_of(folder: Path, prefix: str, problems: list[Message]) -> Said | None:
    """The one that names this build; of several that say different things none."""
    found = find_compile_yamls(folder, prefix)
    problems += (said for said in found.problems if said not in problems)
    if len({repr(settings) for _, settings in found.settings}) > 1:
        paths = tuple(str(path) for path, _ in found.settings)
        problems.append(message("init-yaml-several", prefix=prefix, paths=paths))
        return None
    return next(iter(found.settings), None)


def _log_of(files: CompiledFiles, problems: list[Message]) -> CompileLog | None:
    path = files.get("log")
    if path is None:
        return None
    try:
        log = read_compile_log(path)
    except ArtifactError as error:
        problems += error.problems
        return None
    if other := other_prefix(log, files.prefix):
        problems.append(message("init-log-other", path=str(path), found=other, prefix=files.prefix))
        return None
    return log
