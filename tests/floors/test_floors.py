"""The floors of the package: imports go down only, heavy libraries stay with their owners, workers stand alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
PACKAGE = SRC / "driftgate"

#: From the ground up: a module may import from its own entry and from those above it in this list.
FLOORS = (
    "messages",
    "errors",
    "domain",
    "numerics",
    "transforms",
    "scoring",
    "sessions",
    "aside",
    "escaping",
    "masking",
    "storage",
    "vendor",
    "judgement",
    "backends",
    "sharing",
    "recall",
    "buildfacts",
    "artifactfacts",
    "localisation",
    "diagnosis",
    "comparing",
    "reporting",
    "github",
    "settings",
    "demo",
    "scorekeeping",
    "plan",
    "pipeline",
    "programs",
    "doctoring",
    "boardhealth",
    "initialising",
    "keeping",
    "unchanged",
    "packing",
    "joining",
    "gathering",
    "investigating",
    "misplaced",
    "explaining",
    "picturing",
    "boardcheck",
    "evidencing",
    "bundling",
    "replaying",
    "verifying",
    "commands",
    "runner",
    "installation",
    "action",
    "publication",
    "fetching",
    "jobs",
    "building",
    "watchdog",
    "cli",
    "__main__",
)

#: Library → the entries of FLOORS that own it. Workers are not in it: their stack is the user's.
OWNERS = {
    "onnx": {"backends", "localisation", "diagnosis", "demo"},
    "onnxruntime": {"backends", "localisation", "diagnosis"},
    "torch": set(),
    "pydantic": {"settings", "storage"},
    "yaml": {"settings"},
    "jinja2": {"reporting"},
    "markdown": {"reporting"},
    "junit_xml": {"reporting"},
    "requests": {"github"},
    "rich": {"reporting", "commands"},
    "click": {"commands", "cli"},
    "PIL": {"transforms"},
    "paramiko": {"backends"},
    "cryptography": {"backends"},
    "pycocotools": {"scoring"},
}

#: What `driftgate --help` must not wait for.
HEAVY = ("numpy", "onnx", "onnxruntime", "pydantic", "jinja2", "requests", "yaml", "PIL", "paramiko")

WORKERS = PACKAGE / "backends" / "workers"


def modules() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


def name_of(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def floor_of(module: Path) -> str:
    """The entry of FLOORS that a module belongs to; empty for the package's own `__init__`."""
    first = module.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything imported, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def floor_of_import(dotted: str) -> str:
    """The entry of FLOORS that is imported; empty for other packages and for `driftgate` itself."""
    parts = dotted.split(".")
    is_ours = parts[0] == "driftgate" and len(parts) > 1 and parts[1] != "__version__"
    return parts[1] if is_ours else ""


def upward_imports(module: Path) -> list[str]:
    own = FLOORS.index(floor_of(module)) if floor_of(module) else -1
    return [
        f"{name_of(module)}:{line} imports {dotted}"
        for line, dotted in imported(ast.parse(module.read_text("utf-8")))
        if floor_of_import(dotted) and FLOORS.index(floor_of_import(dotted)) > own
    ]


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_a_module_stands_on_a_floor_and_says_what_it_is(module: Path) -> None:
    assert floor_of(module) in ("", *FLOORS), "add it to FLOORS"
    assert ast.get_docstring(ast.parse(module.read_text("utf-8"))), "open it with one sentence"


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_imports_go_down_only(module: Path) -> None:
    tree = ast.parse(module.read_text("utf-8"))
    relative = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    assert relative == [], "write imports in full"
    assert upward_imports(module) == []


def test_an_upward_import_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / "numerics").mkdir()
    bad = tmp_path / "numerics" / "bad.py"
    bad.write_text("from driftgate.domain import chain\ndef later():\n    from driftgate import cli\n")
    assert upward_imports(bad) == ["numerics/bad.py:3 imports driftgate.cli"]


@pytest.mark.parametrize("module", modules(), ids=name_of)
def test_a_library_is_imported_by_its_owner_only(module: Path) -> None:
    if module.is_relative_to(WORKERS):
        return
    strangers = [
        f"{name_of(module)}:{line} imports {dotted}"
        for line, dotted in imported(ast.parse(module.read_text("utf-8")))
        if floor_of(module) not in OWNERS.get(dotted.split(".")[0], {floor_of(module)})
    ]
    assert strangers == []


def test_workers_import_nothing_of_ours() -> None:
    workers = [module for module in modules() if module.is_relative_to(WORKERS)]
    assert workers, "no worker found: is the folder still there?"
    ours = [
        f"{name_of(module)}:{line} imports {dotted}"
        for module in workers
        for line, dotted in imported(ast.parse(module.read_text("utf-8")))
        if dotted.split(".")[0] == "driftgate"
    ]
    assert ours == []


@pytest.mark.parametrize("module", modules(), ids=name_of)
@pytest.mark.parametrize("keyword", ["shell", "allow_pickle"])
def test_no_shell_and_no_pickle(module: Path, keyword: str) -> None:
    """The only value that may be written is False."""
    loose = [
        node.value.lineno
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.keyword) and node.arg == keyword
        if not (isinstance(node.value, ast.Constant) and node.value.value is False)
    ]
    assert loose == []


def test_help_imports_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "driftgate", "--help"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    loaded = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "click" in loaded
    assert loaded & set(HEAVY) == set()


def test_the_action_starts_before_anything_is_installed() -> None:
    """`-S`: no site-packages, as on a runner's bare Python."""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            "import sys; sys.path.insert(0, sys.argv[1]); import driftgate.action",
            str(SRC),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
