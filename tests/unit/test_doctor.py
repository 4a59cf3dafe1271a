"""What the doctor finds: tools that are there, absent, silent or of another generation; interpreters; room."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from driftgate import doctoring
from driftgate.doctoring import State, interpreters, own_packages, room, vendor_tools
from driftgate.messages.text import text
from support.commandline import call
from support.models import save, tiny
from support.project import Project, inputs
from support.vendor.models import interpreter, write


def tool(folder: Path, name: str, body: str) -> None:
    """An executable that stands for one of the vendor's."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_tools_are_asked_for_their_versions_in_a_folder_of_their_own(tmp_path: Path) -> None:
    tool(tmp_path, "hb_verifier", 'touch trace; echo "hb_verifier, version 3.5.16"')
    tool(tmp_path, "hb_compile", "echo no number")
    tool(tmp_path, "hb_analyzer", "exec sleep 60")
    found = {item.name: item for item in vendor_tools(str(tmp_path), seconds=1.5)}
    assert (found["hb_verifier"].state, found["hb_verifier"].found) == (State.THERE, "3.5.16")
    assert found["hb_compile"].found.endswith("hb_compile")
    assert found["hb_analyzer"].state is State.ODD
    assert found["hrt_model_exec"].state is State.MISSING
    assert "OpenExplorer for Journey 6" in text(found["hrt_model_exec"].advice or pytest.fail("no advice"))
    assert not (tmp_path / "trace").exists()
    assert not Path("trace").exists()


def test_the_tools_of_the_generation_before_are_told_apart(tmp_path: Path) -> None:
    tool(tmp_path, "hb_mapper", "exit 0")
    found = {item.name: item for item in vendor_tools(str(tmp_path))}
    assert found["hb_compile"].state is State.ODD
    assert "XJ3/J5" in text(found["hb_compile"].advice or pytest.fail("no advice"))


def test_interpreters_are_asked_for_what_their_backends_need() -> None:
    wanted = {
        tuple(interpreter()): ["hbruntime"],
        ("/nowhere/python",): ["torch"],
        (sys.executable, "-S"): ["hbruntime"],
    }
    there, absent, bare = interpreters(wanted)
    assert (there.state, "horizon_tc_ui 3.5.16" in there.found) == (State.THERE, True)
    assert absent.state is bare.state is State.MISSING
    assert "horizon_tc_ui" in text(bare.advice or pytest.fail("no advice"))


def test_what_driftgate_stands_on_is_there() -> None:
    assert {item.state for item in own_packages()} == {State.THERE}


def test_little_room_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert room(tmp_path / "not" / "yet").state is State.THERE
    monkeypatch.setattr(doctoring, "LEAST_FREE", 1 << 60)
    assert room(tmp_path).state is State.ODD


@pytest.mark.parametrize(("python", "code"), [(interpreter(), 0), (["/nowhere/python"], 2)])
def test_the_verb_ends_with_2_where_the_configuration_misses_something(
    python: list[str], code: int, tmp_path: Path
) -> None:
    save(tiny(), tmp_path / "net.onnx")
    write(tmp_path / "net.bc", tiny())
    project = Project(tmp_path)
    project.subject = {
        "artifacts": {"onnx": "net.onnx", "quantized": "net.bc"},
        "samples": {"raw": project.npz("eval.npz", x=inputs(2))},
    }
    config = project.write(defaults={"hbruntime": {"python": python}})
    answer = call("doctor", "-c", config, "--json")
    assert answer.code == code, answer.out + answer.err
    items = {item["name"]: item for item in json.loads(answer.out)["items"]}
    assert items[" ".join(python)]["needed"] is True
    shown = call("doctor", "-c", config)
    assert shown.code == code
    assert ("cannot be started" in shown.out) == (code == 2)
