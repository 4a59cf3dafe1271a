"""Compiles the catalogues of other languages when the package is built; the source is the .po of each."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path("src") / "driftgate"


class CustomBuildHook(BuildHookInterface[Any]):
    """Runs for wheels, and for editable installations, which read the source's folder."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put a .mo beside each .po: into the wheel, as the source may be read-only, or else into the source. Entries
        that are not translated from the present English sentence are left out: English is said instead."""
        root = Path(self.root)
        for source in sorted((root / PACKAGE).rglob("*.po")):
            with source.open("rb") as stream:
                catalogue = read_po(stream, abort_invalid=True)
            compiled = io.BytesIO()
            write_mo(compiled, catalogue)
            place = source.with_suffix(".mo")
            if version != "editable":
                name = place.relative_to(root / PACKAGE.parent).as_posix()
                place = Path(self.directory) / f"{source.parents[1].name}.mo"
                build_data["force_include"][str(place)] = name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(compiled.getvalue())

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing beside the wheel."""
        for place in Path(self.directory).glob("*.mo"):
            place.unlink()
