"""Makes MTCNN's networks from the file mtcnn.py beside this one, without its package and what that imports."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import torch  # type: ignore[import-not-found]

PACKAGE = "facenet_models"


def load(folder: Path | None = None) -> torch.nn.Module:
    """ONet without weights; `folder` holds mtcnn.py."""
    return network("ONet", folder)


def load_rnet() -> torch.nn.Module:
    """RNet without weights."""
    return network("RNet")


def network(name: str, folder: Path | None = None) -> torch.nn.Module:
    """One of the networks, without weights."""
    for package in (PACKAGE, f"{PACKAGE}.utils", f"{PACKAGE}.utils.detect_face"):
        sys.modules[package] = ModuleType(package)
    for unused in ("detect_face", "extract_face"):
        setattr(sys.modules[f"{PACKAGE}.utils.detect_face"], unused, None)
    source = (folder or Path(__file__).parent) / "mtcnn.py"
    spec = importlib.util.spec_from_file_location(f"{PACKAGE}.mtcnn", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)(pretrained=False)
