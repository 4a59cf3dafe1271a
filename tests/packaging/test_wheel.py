"""The wheel as others install it: clean environment, lowest versions, another machine."""

from __future__ import annotations

import gettext
import io
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from driftgate.messages.english import ENGLISH
from support.languages import CHINESE

ROOT = Path(__file__).parents[2]
CATALOGUE = "driftgate/messages/locale/zh_CN/LC_MESSAGES/driftgate.mo"
#: What Linux on a board has: glibc 2.28 or newer.
BOARD_PLATFORMS = (
    "manylinux_2_28_aarch64",
    "manylinux_2_27_aarch64",
    "manylinux_2_26_aarch64",
    "manylinux2014_aarch64",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (built,) = folder.glob("driftgate-*.whl")
    return built


@pytest.fixture(scope="module")
def requirements(wheel: Path) -> tuple[Requirement, ...]:
    """The dependencies of the package itself, without those of its extras."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        headers = HeaderParser().parsestr(archive.read(metadata).decode("utf-8"))
    wanted = (Requirement(line) for line in headers.get_all("Requires-Dist", []))
    return tuple(requirement for requirement in wanted if "extra" not in str(requirement.marker or ""))


def test_the_wheel_has_what_the_package_reads(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    templates = {
        f"driftgate/_templates/{file.relative_to(ROOT / 'templates').as_posix()}"
        for file in (ROOT / "templates").rglob("*.j2")
    }
    assert templates
    assert templates <= set(names)
    assert "driftgate/py.typed" in names
    assert CATALOGUE in names
    assert {name.rsplit("/", 1)[1] for name in names if "/licenses/" in name} == {"LICENSE", "NOTICE"}
    assert [name for name in names if name.split("/", 1)[0] not in ("driftgate", wheel_info(names))] == []


def test_the_wheel_has_every_message_in_chinese(wheel: Path) -> None:
    """Compiled by the build, from a source that the build does not write into."""
    with zipfile.ZipFile(wheel) as archive:
        compiled = gettext.GNUTranslations(io.BytesIO(archive.read(CATALOGUE)))
    assert {code: compiled.pgettext(code, sentence) for code, sentence in ENGLISH.items()} == CHINESE


def test_a_clean_environment_runs_the_demo_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", str(wheel))
    demo(python, tmp_path)
    told = start(str(python.with_name("driftgate")), "--lang", "zh", "demo", "--out", "zh", folder=tmp_path)
    assert "最差值" in told.stdout


#: The published schemas are written by the newest pydantic; older ones word them differently and say less.
OF_THE_NEWEST = (
    "tests/unit/test_documents.py::test_the_published_schemas_are_what_the_command_prints",
    "tests/unit/test_settings.py::test_the_schema_refuses_what_driftgate_refuses",
)


def test_the_lowest_versions_work(wheel: Path, requirements: tuple[Requirement, ...], tmp_path: Path) -> None:
    """The bounds of pyproject.toml, exactly; what these need themselves is as new as it may be."""
    lowest = {requirement.name: lower_bound(requirement) for requirement in requirements}
    constraints = tmp_path / "lowest.txt"
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in lowest.items()))
    python = environment(tmp_path / "venv", "--constraint", str(constraints), f"{wheel}[test]")

    demo(python, tmp_path)
    passed_over = [part for test in OF_THE_NEWEST for part in ("--deselect", test)]
    command(str(python), "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", *passed_over, "tests/unit", folder=ROOT)


def test_a_board_finds_wheels_for_everything(requirements: tuple[Requirement, ...], tmp_path: Path) -> None:
    """aarch64, the oldest Python that we support, nothing compiled on the board."""
    report = tmp_path / "report.json"
    command(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"),
        *("--target", str(tmp_path / "none"), "--report", str(report), "--only-binary=:all:"),
        *("--implementation", "cp", "--python-version", "3.10"),
        *(part for platform in BOARD_PLATFORMS for part in ("--platform", platform)),
        *map(str, requirements),
    )
    found = json.loads(report.read_text("utf-8"))["install"]
    wheels = {entry["metadata"]["name"]: entry["download_info"]["url"].rsplit("/", 1)[1] for entry in found}
    assert {requirement.name.lower() for requirement in requirements} <= {name.lower() for name in wheels}
    assert [name for name in wheels.values() if not name.endswith(("-any.whl", "aarch64.whl"))] == []


def wheel_info(names: list[str]) -> str:
    (folder,) = {name.split("/", 1)[0] for name in names if ".dist-info/" in name}
    return folder


def lower_bound(requirement: Requirement) -> str:
    (bound,) = (each.version for each in requirement.specifier if each.operator == ">=")
    return bound


def environment(folder: Path, *packages: str) -> Path:
    """The Python of a new venv with these packages."""
    command(sys.executable, "-m", "venv", str(folder))
    python = folder / "bin" / "python"
    command(str(python), "-m", "pip", "install", "--quiet", *packages)
    return python


def demo(python: Path, folder: Path) -> None:
    """Run the healthy demo, and one with a fault, with that Python's driftgate; look at the reports."""
    driftgate = str(python.with_name("driftgate"))
    command(driftgate, "demo", "--out", "healthy", folder=folder)
    done = start(driftgate, "demo", "--fault", "board-padding", "--out", "faulty", folder=folder)
    assert done.returncode == 1, done.stdout[-3000:]
    for out, cell in (("healthy", "PASS"), ("faulty", "FAIL")):
        assert cell in (folder / out / "summary.md").read_text("utf-8")
        assert ElementTree.parse(folder / out / "junit.xml").getroot().tag == "testsuites"


def command(*arguments: str, folder: Path | None = None) -> None:
    done = start(*arguments, folder=folder)
    assert done.returncode == 0, done.stdout[-5000:]


def start(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        list(arguments),
        cwd=folder,
        env=kept,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
