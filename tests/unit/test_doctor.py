"""What the doctor finds: tools that are there, absent, silent or of another generation; interpreters; room."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from driftgate import __version__, doctoring
from driftgate.doctoring import (
    Interpreter,
    Item,
    State,
    held_together,
    interpreters,
    machine,
    own_packages,
    room,
    unseen_pairs,
    vendor_tools,
    verifier,
)
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


def advice(item: Item) -> str:
    """What is to be done."""
    return "\n".join(map(text, item.advice))


def asked(command: list[str], *serves: str, files: tuple[Path, ...] = (), seconds: float = 30.0) -> Item:
    """What is found of one interpreter."""
    (item,) = interpreters([Interpreter(tuple(command), serves, files)], seconds=seconds)
    return item


def package(folder: Path, name: str, version: str) -> None:
    """An installed distribution with a module of its name, as far as a search of versions sees one."""
    module = name.replace("-", "_")
    (folder / f"{module}-{version}.dist-info").mkdir(parents=True)
    (folder / f"{module}-{version}.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    (folder / module).mkdir()
    (folder / module / "__init__.py").touch()


def environment(folder: Path, **versions: str) -> list[str]:
    """An interpreter with these distributions; `_` in a name stands for a hyphen where the real one has it."""
    for name, version in versions.items():
        package(folder, {"hbdk4_compiler": "hbdk4-compiler"}.get(name, name), version)
    return ["env", f"PYTHONPATH={folder}", sys.executable]


def docker(folder: Path) -> Path:
    """A program that stands for docker: it runs what follows the image, which is called `image`."""
    tool(folder, "docker", 'while [ "$1" != image ]; do shift; done; shift; exec "$@"')
    return folder / "docker"


def test_tools_are_asked_for_their_versions_in_a_folder_of_their_own(tmp_path: Path) -> None:
    tool(tmp_path, "hb_verifier", 'touch trace; echo "hb_verifier, version 3.5.16"')
    tool(tmp_path, "hb_compile", "echo no number")
    tool(tmp_path, "hb_analyzer", "exec sleep 60")
    found = {item.name: item for item in vendor_tools(str(tmp_path), seconds=1.5)}
    assert (found["hb_verifier"].state, found["hb_verifier"].found) == (State.THERE, "3.5.16")
    assert found["hb_compile"].found.endswith("hb_compile")
    assert found["hb_analyzer"].state is State.ODD
    assert found["hrt_model_exec"].state is State.MISSING
    assert "OpenExplorer for Journey 6" in advice(found["hrt_model_exec"])
    assert not (tmp_path / "trace").exists()
    assert not Path("trace").exists()


def test_the_tools_of_the_generation_before_are_told_apart(tmp_path: Path) -> None:
    tool(tmp_path, "hb_mapper", "exit 0")
    found = {item.name: item for item in vendor_tools(str(tmp_path))}
    assert found["hb_compile"].state is State.ODD
    assert "XJ3/J5" in advice(found["hb_compile"])


def test_a_tool_that_both_generations_have_is_told_apart_by_its_version(tmp_path: Path) -> None:
    tool(tmp_path, "hb_verifier", 'echo "hb_verifier, version 1.24.3"')
    (found,) = (item for item in vendor_tools(str(tmp_path)) if item.name == "hb_verifier")
    assert (found.state, found.found) == (State.ODD, "1.24.3")
    assert "version 1.24.3: a tool of XJ3/J5" in advice(found)


def test_numbers_of_a_help_text_are_no_version(tmp_path: Path) -> None:
    tool(tmp_path, "hmct-debugger", 'echo "-pt FLOAT percentile, 0.999 by default"')
    (found,) = (item for item in vendor_tools(str(tmp_path)) if item.name == "hmct-debugger")
    assert found.found.endswith("hmct-debugger")
    assert found.versions == ()


def test_the_runtime_tells_two_versions(tmp_path: Path) -> None:
    tool(tmp_path, "hrt_model_exec", 'echo "[UCP]: UCP version = 3.15.8"; echo "[DNN]: 3.15.8_(4.11.11 HBRT)"')
    (found,) = (item for item in vendor_tools(str(tmp_path)) if item.name == "hrt_model_exec")
    assert found.found == "UCP 3.15.8, HBRT 4.11.11"
    assert held_together([found]) == (found,)


@pytest.mark.parametrize(
    ("versions", "pairs"),
    [
        ({"horizon_tc_ui": "3.5.16", "hbdk4-compiler": "4.11.11", "hmct": "2.8.4", "hbm_infer": "3.15.3"}, ()),
        ({"horizon_tc_ui": "3.3.22", "hbdk4-compiler": "4.2.11", "hmct": "2.4.1"}, ()),
        ({"horizon_tc_ui": "3.4.1", "hbdk4-compiler": "4.11.2"}, ()),
        ({"horizon_tc_ui": "3.3.11", "hbdk4-compiler": "4.11.2"}, ("horizon_tc_ui 3.3.11 with hbdk4-compiler 4.11.2",)),
        ({"hbdk4-compiler": "4.1.17", "hmct": "2.8.4"}, ("hbdk4-compiler 4.1.17 with hmct 2.8.4",)),
        ({"UCP": "3.7.4", "HBRT": "4.11.11"}, ("UCP 3.7.4 with HBRT 4.11.11",)),
        ({"hbdk4-compiler": "", "hmct": "main"}, ()),
    ],
)
def test_pairs_that_are_known_from_other_company_only_are_told(
    versions: dict[str, str], pairs: tuple[str, ...]
) -> None:
    assert unseen_pairs(versions) == pairs


def test_tools_of_one_package_in_two_versions_are_two_environments(tmp_path: Path) -> None:
    tool(tmp_path, "hb_verifier", 'echo "hb_verifier, version 3.5.16"')
    tool(tmp_path, "hb_compile", 'echo "hb_compile, version 3.3.11"')
    found = {item.name: item for item in held_together(tuple(vendor_tools(str(tmp_path))))}
    assert found["hb_verifier"].state is found["hb_compile"].state is State.ODD
    assert "hb_compile 3.3.11, hb_verifier 3.5.16" in advice(found["hb_compile"])
    assert "environments are mixed" not in advice(found["hb_model_info"])


def test_a_runtime_older_than_the_compiler_is_odd_a_newer_one_is_not(tmp_path: Path) -> None:
    compiler = asked(environment(tmp_path / "oe", horizon_tc_ui="3.3.22", hbdk4_compiler="4.2.11"), "hbruntime")
    assert compiler.state is State.THERE, advice(compiler)
    for hbrt, state in (("4.1.17", State.ODD), ("4.3.2", State.THERE)):
        tool(tmp_path, "hrt_model_exec", f'echo "[DNN]: 3.20.0_({hbrt} HBRT)"')
        *_, runtime = held_together((compiler, *vendor_tools(str(tmp_path))))
        assert runtime.state is state
        assert ("older than hbdk 4.2.11" in advice(runtime)) == (state is State.ODD)


def test_interpreters_are_asked_for_what_their_backends_need() -> None:
    there, absent = asked(interpreter(), "hbruntime"), asked(["/nowhere/python"], "torch")
    assert (there.state, "horizon_tc_ui 3.5.16" in there.found) == (State.THERE, True)
    assert (absent.state, absent.lacks) == (State.MISSING, True)
    assert "/nowhere/python cannot be started (No such file or directory)" in advice(absent)
    bare = asked([sys.executable, "-S"], "hbruntime")
    assert bare.state is State.MISSING
    assert "cannot import numpy, horizon_tc_ui" in advice(bare)


def test_a_package_that_breaks_while_it_is_imported_says_why(tmp_path: Path) -> None:
    command = environment(tmp_path, horizon_tc_ui="3.5.16")
    (tmp_path / "horizon_tc_ui" / "__init__.py").write_text("raise ImportError('libhbtl.so: no such file')\n")
    assert "horizon_tc_ui (ImportError: libhbtl.so: no such file)" in advice(asked(command, "hbruntime"))


@pytest.mark.parametrize("versions", [{"horizon_tc_ui": "1.24.3"}, {"hobot_tc_ui": "1.0.1"}])
def test_an_environment_of_the_generation_before_is_told_apart(versions: dict[str, str], tmp_path: Path) -> None:
    found = asked(environment(tmp_path, **versions), "hbruntime")
    assert found.lacks
    assert "XJ3/J5" in advice(found)


def test_versions_that_do_not_belong_together_are_odd_and_nothing_is_missing(tmp_path: Path) -> None:
    found = asked(environment(tmp_path, horizon_tc_ui="3.5.16", hbdk4_compiler="4.2.11"), "hbruntime")
    assert "hbdk4-compiler 4.2.11" in found.found
    (judged,) = held_together([found])
    assert (judged.state, judged.lacks) == (State.ODD, False)
    assert "never seen together: horizon_tc_ui 3.5.16 with hbdk4-compiler 4.2.11" in advice(judged)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "echo 'Cannot connect to the daemon' >&2; exit 125",
            "exit code 125 and no answer: Cannot connect to the daemon",
        ),
        ("echo hello", "exit code 0 and no answer: hello"),
        ("exec sleep 60", "no answer within 1.5 s"),
    ],
)
def test_a_command_that_does_not_answer_is_quoted(body: str, said: str, tmp_path: Path) -> None:
    tool(tmp_path, "python", body)
    found = asked([str(tmp_path / "python")], "torch", seconds=1.5)
    assert found.lacks
    assert said in advice(found)


def test_a_verifier_that_is_not_there_is_named_with_its_place_in_the_configuration() -> None:
    assert "/nowhere/hb_verifier cannot be started" in advice(verifier(["/nowhere/hb_verifier"]))
    assert "defaults.verifier" in advice(verifier(["/nowhere/hb_verifier"]))


def test_a_path_of_an_interpreter_starts_where_driftgate_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "venv").mkdir()
    tool(tmp_path / "venv", "python", f'exec {sys.executable} "$@"')
    monkeypatch.chdir(tmp_path)
    assert asked(["venv/python"], "score").state is State.THERE


def test_a_container_must_hand_on_stdin_and_see_the_files(tmp_path: Path) -> None:
    program = str(docker(tmp_path))
    inside = ["image", sys.executable]
    good = asked([program, "run", "--rm", "-i", *inside], "score", files=(tmp_path,))
    assert (good.state, good.advice) == (State.THERE, ())
    dumb = asked([program, "run", "--rm", *inside], "score")
    assert dumb.lacks
    assert "add -i" in advice(dumb)
    blind = asked([program, "run", "--interactive", *inside], "score", files=(tmp_path / "models",))
    assert blind.lacks
    assert f"does not see {tmp_path / 'models'}: a container must mount" in advice(blind)


@pytest.mark.parametrize(
    ("body", "state", "said"),
    [
        ('echo "hb_verifier, version 3.5.16"', State.THERE, ""),
        ('echo "hb_verifier, version 1.9.9"', State.MISSING, "XJ3/J5"),
        ("echo no such image >&2; exit 125", State.MISSING, "exit code 125: no such image"),
        ("exec sleep 60", State.MISSING, "no answer within 1.5 s"),
    ],
)
def test_the_verifier_that_is_configured_is_asked(body: str, state: State, said: str, tmp_path: Path) -> None:
    tool(tmp_path, "verify", body)
    found = verifier([str(tmp_path / "verify"), "run"], seconds=1.5)
    assert (found.state, found.needed) == (state, True)
    assert said in advice(found)


def test_what_driftgate_stands_on_is_there() -> None:
    assert {item.state for item in own_packages()} == {State.THERE}
    found = {item.name: item.found for item in machine()}
    assert found["driftgate"] == __version__
    assert sys.executable in found["python"]


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
    assert ("cannot be started" in shown.out) == ("MISSING" in shown.out) == (code == 2)


def test_a_build_that_is_not_there_is_told_beside_all_the_rest(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.subject = {
        "targets": ["J6M", "J6P"],
        "artifacts": {"build": {"from": "out_{target}"}},
        "samples": {"raw": project.npz("eval.npz", x=inputs(2))},
    }
    shown = call("doctor", "-c", project.write())
    assert shown.code == 2
    assert "out_J6M" in shown.out
    assert "out_J6P" in shown.out
    assert "numpy" in shown.out


def test_what_a_configuration_names_is_asked_once_a_command(tmp_path: Path) -> None:
    save(tiny(), tmp_path / "net.onnx")
    for stage in ("quantized", "hbm"):
        write(tmp_path / f"net{'.hbm' if stage == 'hbm' else '.bc'}", tiny(), march="nash-m")
    project = Project(tmp_path)
    project.subject = {
        "artifacts": {"onnx": "net.onnx", "quantized": "net.bc", "hbm": "net.hbm"},
        "samples": {"raw": project.npz("eval.npz", x=inputs(2))},
        "score": {
            "task": "classification",
            "labels": project.npz("labels.npz", labels=inputs(2)[:, 0]),
            "postprocess": {"function": "post:post", "python": [sys.executable]},
        },
    }
    tool(tmp_path, "verify", "echo hb_verifier, version 3.5.16")
    defaults = {"hbruntime": {"python": interpreter()}, "verifier": {"command": [str(tmp_path / "verify")]}}
    answer = call("doctor", "-c", project.write(defaults=defaults), "--json")
    assert answer.code == 0, answer.out
    needed = {item["name"]: item for item in json.loads(answer.out)["items"] if item["needed"]}
    assert needed[" ".join(interpreter())]["purpose"] == "workers of hbruntime"
    assert needed[sys.executable]["purpose"] == "workers of score"
    assert needed[str(tmp_path / "verify")]["found"] == "3.5.16"


def test_several_advices_for_one_thing_are_all_said(tmp_path: Path) -> None:
    write(tmp_path / "net.bc", tiny())
    project = Project(tmp_path)
    project.subject = {
        "artifacts": {"onnx": project.onnx("net.onnx", tiny()), "quantized": "net.bc"},
        "samples": {"raw": project.npz("eval.npz", x=inputs(2))},
    }
    bare = [str(docker(tmp_path)), "run", "image", sys.executable, "-S"]
    shown = call("doctor", "-c", project.write(defaults={"hbruntime": {"python": bare}}))
    assert shown.code == 2
    assert "cannot import numpy, horizon_tc_ui" in shown.out
    assert "add -i" in shown.out


def test_a_mixed_path_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, "hb_verifier", 'echo "hb_verifier, version 3.5.16"')
    tool(tmp_path, "hb_compile", 'echo "hb_compile, version 3.3.11"')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    shown = call("doctor")
    assert shown.code == 0
    assert shown.out.count("environments are mixed") == 1
    assert "hb_compile, hb_verifier: of one package" in shown.out
