"""Files of npm packages that tests need, downloaded once into the cache."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

DOWNLOAD_SECONDS = 300


def npm_file(package: str, version: str, member: str, place: str) -> Path:
    """A file of a package, at `place` in the cache; it appears in one move. Raises CalledProcessError with npm's
    words."""
    chosen = os.environ.get("DRIFTGATE_CACHE")
    folder = Path(chosen) if chosen else Path(__file__).parents[2] / ".cache"
    file = folder / place
    if file.is_file():
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=file.parent, prefix=".fetch-") as scratch:
        subprocess.run(
            ["npm", "pack", f"{package}@{version}", "--ignore-scripts", "--silent", "--pack-destination", scratch],
            check=True,
            stdin=subprocess.DEVNULL,
            cwd=scratch,
            timeout=DOWNLOAD_SECONDS,
        )
        (archive,) = Path(scratch).glob("*.tgz")
        with tarfile.open(archive) as content:
            found = content.extractfile(member)
            assert found is not None
            part = Path(scratch) / "part"
            part.write_bytes(found.read())
        part.replace(file)
    return file
