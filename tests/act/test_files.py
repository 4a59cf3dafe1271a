"""action.yml and the workflows by the tools that know GitHub's rules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.act.rig import REPOSITORY

ACTIONS = tuple(REPOSITORY / name for name in ("action.yml", "publish/action.yml", "setup/action.yml"))
WORKFLOWS = tuple(sorted((REPOSITORY / ".github" / "workflows").glob("*.yml")))
EXAMPLES = tuple(sorted((REPOSITORY / "examples" / "workflows").glob("*.yml")))
#: Short on purpose, so it has neither names nor comments.
SHORT = REPOSITORY / "examples" / "workflows" / "driftgate.yml"
STUBS = tuple(sorted((REPOSITORY / "tests" / "support" / "act").glob("*/action.yml")))


@pytest.mark.parametrize(
    ("schema", "files"),
    [("vendor.github-actions", (*ACTIONS, *STUBS)), ("vendor.github-workflows", (*WORKFLOWS, *EXAMPLES))],
)
def test_files_follow_githubs_schemas(schema: str, files: tuple[Path, ...]) -> None:
    done = tool("check-jsonschema", "--builtin-schema", schema, *map(str, files))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("persona", "files"),
    [
        ("pedantic", (*ACTIONS, *WORKFLOWS, *(file for file in EXAMPLES if file != SHORT))),
        ("regular", (SHORT,)),
    ],
)
def test_zizmor_finds_nothing(persona: str, files: tuple[Path, ...]) -> None:
    done = zizmor(persona, *files)
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_would_find_something(tmp_path: Path) -> None:
    """The token in a script, which is what all this keeps out."""
    planted = tmp_path / "action.yml"
    planted.write_text(ACTIONS[0].read_text("utf-8").replace("run: exec", "run: echo ${{ inputs.config }}; exec"))
    done = zizmor("pedantic", planted)
    assert done.returncode != 0
    assert "template-injection" in done.stdout + done.stderr


def test_actionlint_finds_nothing() -> None:
    config = str(REPOSITORY / ".github" / "actionlint.yaml")
    done = tool("actionlint", "-no-color", "-config-file", config, *map(str, (*WORKFLOWS, *EXAMPLES)))
    assert done.returncode == 0, done.stdout + done.stderr


def zizmor(persona: str, *files: Path) -> subprocess.CompletedProcess[str]:
    config = str(REPOSITORY / ".github" / "zizmor.yml")
    return tool("zizmor", "--offline", "--no-progress", f"--persona={persona}", "--config", config, *map(str, files))


def tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).parent / name), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
