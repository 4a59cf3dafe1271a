"""hb_compile's YAML file, read for what it says of a build, or found where a build lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath

import yaml

from driftgate.domain.toolchain.build import CompileSettings
from driftgate.errors import ArtifactError
from driftgate.messages.message import Message, message
from driftgate.vendor.compile_yaml import parse_compile_yaml

ENDINGS = (".yaml", ".yml")
#: What hb_compile takes where its YAML does not say (toolchain facts §2.1, §2.2).
PREFIX = "model"
WORKING_DIR = "model_output"
#: The error of a YAML that is none of hb_compile's.
ANOTHER = "compile-yaml-none"
MOST_BYTES = 1 << 18  # of a file that only may be one


@dataclass(frozen=True, slots=True)
class FoundSettings:
    """Those that name a build, and what is wrong with files that might."""

    settings: tuple[tuple[Path, CompileSettings], ...] = ()
    problems: tuple[Message, ...] = ()


def read_compile_yaml(path: Path) -> CompileSettings:
    """The settings of a build. Raises ArtifactError, naming the key that is wrong."""
    try:
        loaded = yaml.safe_load(path.read_bytes())
    except OSError as error:
        reason = error.strerror or str(error)
        raise ArtifactError(message("artifact-unreadable", path=str(path), reason=reason)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ArtifactError(message("artifact-unreadable", path=str(path), reason=reason)) from error
    return parse_compile_yaml(loaded, name=str(path))


def find_compile_yamls(folder: Path, prefix: str) -> FoundSettings:
    """The YAML files in a build's folder and beside it that name its prefix; one beside it names the folder as well.

    Files that cannot be listed, or are no settings of hb_compile, are passed over; settings with wrong values are told.
    """
    found: list[tuple[Path, CompileSettings]] = []
    problems: list[Message] = []
    for path in (*_candidates(folder), *_candidates(folder.resolve().parent)):
        try:
            settings = read_compile_yaml(path)
        except ArtifactError as error:
            problems += [said for said in error.problems if said.code not in (ANOTHER, "artifact-unreadable")]
            continue
        is_inside = path.parent == folder
        names_it = PurePath(settings.working_dir or WORKING_DIR).name == folder.resolve().name
        if (settings.prefix or PREFIX) == prefix and (is_inside or names_it):
            found.append((path, settings))
    return FoundSettings(tuple(found), tuple(problems))


def _candidates(folder: Path) -> list[Path]:
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if path.suffix.lower() in ENDINGS and path.is_file() and path.stat().st_size <= MOST_BYTES
        )
    except OSError:
        return []
