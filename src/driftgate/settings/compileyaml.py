"""hb_compile's YAML file, read for what it says of a build."""

from __future__ import annotations

from pathlib import Path

import yaml

from driftgate.domain.toolchain.build import CompileSettings
from driftgate.errors import ArtifactError
from driftgate.messages.message import message
from driftgate.vendor.compile_yaml import parse_compile_yaml


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
