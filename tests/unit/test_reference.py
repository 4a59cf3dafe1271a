"""The reference pages are what tools/reference.py writes of the code, in both languages, and leave nothing out."""

from __future__ import annotations

import copy
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from driftgate.errors import ConfigError
from driftgate.judgement.codes import CODES
from driftgate.settings.load import load

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "reference.py"
CONFIG = ("docs/reference/config.md", "docs/zh/reference/config.md")
FINDINGS = ("docs/reference/findings.md", "docs/zh/reference/findings.md")
#: What an example is put into.
AROUND: dict[str, Any] = {
    "version": 1,
    "boards": {"lab": {"hosts": ["192.0.2.7"]}},
    "subjects": {"net": {"artifacts": {"onnx": "net.onnx"}, "samples": {"raw": "data/raw"}}},
}


def loaded() -> Any:
    """The tool as a module."""
    spec = importlib.util.spec_from_file_location("reference_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their module
    spec.loader.exec_module(module)
    return module


tool = loaded()
MADE = tool.made()


@pytest.mark.parametrize("name", [*CONFIG, *FINDINGS])
def test_the_page_is_what_the_tool_writes(name: str) -> None:
    assert (ROOT / name).read_text("utf-8") == MADE.pages[name], "run python tools/reference.py"


def test_there_are_no_other_pages() -> None:
    assert sorted(MADE.pages) == sorted((*CONFIG, *FINDINGS))


@pytest.mark.parametrize("name", [*CONFIG, *FINDINGS])
def test_the_first_line_says_what_made_it(name: str) -> None:
    assert MADE.pages[name].splitlines()[0] == tool.MADE
    assert "tools/reference.py" in tool.MADE


def test_no_description_lacks_a_translation_and_none_is_unused() -> None:
    assert (MADE.missing, MADE.unused) == ((), ())


def test_every_translation_is_chinese_and_keeps_its_parts() -> None:
    translations: dict[str, str] = json.loads(tool.TRANSLATIONS.read_text("utf-8"))
    assert [told for told in translations.values() if not re.search("[\u4e00-\u9fff]", told)] == []
    code = re.compile("`[^`]*`")
    assert {
        english: chinese
        for english, chinese in translations.items()
        if sorted(code.findall(english)) != sorted(code.findall(chinese))
    } == {}


@pytest.mark.parametrize("name", FINDINGS)
def test_every_code_is_there_once(name: str) -> None:
    headings = [line.removeprefix("### ") for line in MADE.pages[name].splitlines() if line.startswith("### ")]
    assert sorted(headings) == sorted(CODES)


@pytest.mark.parametrize("name", CONFIG)
def test_every_key_of_the_schema_is_there(name: str) -> None:
    schema = tool.published()
    objects = {"": schema, **{n: d for n, d in schema["$defs"].items() if "properties" in d}}
    told = {section.definition: section.heading for section in tool.SECTIONS if section.definition is not None}
    assert sorted(told) == sorted(objects)
    parts = re.split(r"^#{2,4} (.*)$", MADE.pages[name], flags=re.MULTILINE)
    page = dict(zip(parts[1::2], parts[2::2], strict=True))
    missing = [
        f"{heading}: {key}"
        for definition, heading in told.items()
        for key in objects[definition]["properties"]
        if f"\n| `{key}` | " not in page[heading]
    ]
    assert missing == []


@pytest.mark.parametrize("section", [one for one in tool.SECTIONS if one.example], ids=lambda one: one.place)
def test_the_example_is_a_configuration(section: Any, tmp_path: Path) -> None:
    document = _merged(AROUND, yaml.safe_load(section.example))
    assert [error.message for error in Draft202012Validator(tool.published()).iter_errors(document)] == []
    path = tmp_path / "driftgate.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert {problem.code for problem in caught.value.problems} == {"config-file-absent"}


def test_check_names_what_is_stale_and_what_is_not_translated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    translations = json.loads(tool.TRANSLATIONS.read_text("utf-8"))
    del translations["A network under test."]
    translations["Nobody says this."] = "没有人这样说。"
    (tmp_path / "zh.json").write_text(json.dumps(translations), "utf-8")
    monkeypatch.setattr(tool, "TRANSLATIONS", tmp_path / "zh.json")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    assert tool.main(["--check"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "stale" in line] == [
        f"{name} is stale; run python tools/reference.py" for name in (CONFIG[0], FINDINGS[0], CONFIG[1], FINDINGS[1])
    ]
    assert "tools/reference_zh.json has no translation of: A network under test." in said
    assert "tools/reference_zh.json translates what is not said: Nobody says this." in said
    assert list(tmp_path.iterdir()) == [tmp_path / "zh.json"]


def _merged(around: dict[str, Any], inside: dict[str, Any]) -> dict[str, Any]:
    """The inner one's keys go before."""
    made = copy.deepcopy(around)
    for key, value in inside.items():
        both = isinstance(value, dict) and isinstance(made.get(key), dict)
        made[key] = _merged(made[key], value) if both else value
    return made
