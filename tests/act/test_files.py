"""action.yml and the workflows by the tools that know GitHub's rules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.act.rig import REPOSITORY

WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize(
    ("schema", "file"),
    [("vendor.github-actions", REPOSITORY / "action.yml")] + [("vendor.github-workflows", file) for file in WORKFLOWS],
    ids=lambda value: value.name if isinstance(value, Path) else value,
)
def test_a_file_follows_githubs_schema(schema: str, file: Path) -> None:
    done = tool("check-jsonschema", "--builtin-schema", schema, str(file))
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing() -> None:
    done = tool(
        "zizmor",
        "--offline",
        "--no-progress",
        "--persona=pedantic",
        str(REPOSITORY / "action.yml"),
        *map(str, WORKFLOWS),
    )
    assert done.returncode == 0, done.stdout + done.stderr


def tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).parent / name), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
