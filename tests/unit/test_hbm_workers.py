"""An .hbm on a board through hbm_infer and hbm_runtime (STAND-INS of both): numbers, scales, networks, failures, and
servers that are never left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from driftgate.backends.board.boards import Boards
from driftgate.backends.board.cores import hrt_core, infer_core, runtime_cores
from driftgate.backends.board.transport import Host
from driftgate.backends.foreign import WORKERS
from driftgate.backends.hbm_infer_backend import HbmInferBackend
from driftgate.backends.hbm_runtime_backend import HbmRuntimeBackend
from driftgate.backends.hbruntime_backend import HbRuntimeBackend
from driftgate.backends.registry import backend
from driftgate.errors import ArtifactError, BackendError, ConfigError, DriftgateError, LoadRefused, SampleError
from driftgate.numerics.alignment import alike
from driftgate.sessions import Artifact
from driftgate.storage.document import read_results
from support.commandline import call, rows
from support.contract import BackendContract, Case, assert_same, assert_speaks, moved
from support.models import answer, model, tiny, value
from support.project import Project, biased, inputs
from support.vendor.models import PACKAGES, interpreter, write, write_packed
from support.vendor.networks import normalised, pixels, small_network
from support.vendor.toolchain import build

X = np.array([[1.0, -2.0, 0.5]], np.float32)
ADDRESS, PASSWORD, BOARD = "203.0.113.7", "s3cr3t", "bench-2"
HOST = Host(BOARD, ADDRESS, password=PASSWORD)
POOL = Boards(BOARD, (HOST,))
HASTY = replace(POOL, sample_seconds=0.5)
STEP = 0.02
INFER, RUNTIME = "hbm_infer", "hbm_runtime"
BOTH = pytest.mark.parametrize("name", [INFER, RUNTIME])


def artifact(path: Path, name: str, fault: str = "", environment: dict[str, str] | None = None, **own: Any) -> Artifact:
    options = {"python": interpreter(fault, **environment or {}), "timeout": 60.0, **own}
    if name == INFER:
        options = {"boards": POOL, **options}
    return Artifact("hbm", name, path, options)


def opening_fails(found: Artifact, kind: type[DriftgateError]) -> DriftgateError:
    with pytest.raises(kind) as caught:
        backend(found.backend).open(found)
    assert_speaks(caught.value)
    return caught.value


def codes(error: DriftgateError) -> list[str]:
    return [problem.code for problem in error.problems]


def contract_case(folder: Path, name: str) -> Case:
    path = write(folder / "net.hbm", tiny())
    damaged = folder / "damaged.hbm"
    damaged.write_bytes(b"no model of the toolchain's")
    (folder / "copy").mkdir()
    found = artifact(path, name)

    def touch() -> None:
        (folder / "net.signature.json").write_text('{"outputs": {"y": {"step": 0.5}}}')

    return Case(
        backend=backend(name),
        artifact=found,
        feeds={"x": X},
        expected={"y": answer(X)},
        tap="h",
        tapped={},
        touch=touch,
        copied=moved(found, Path(shutil.copy(path, folder / "copy" / "renamed.hbm"))),
        missing=moved(found, folder / "missing.hbm"),
        damaged=moved(found, damaged),
    )


class TestContract(BackendContract):
    """The suite, once for each of the two; a board has outputs only."""

    @pytest.fixture(params=[INFER, RUNTIME])
    def case(self, request: pytest.FixtureRequest, tmp_path: Path) -> Case:
        return contract_case(tmp_path, request.param)

    def test_a_tap_is_a_further_output(self, case: Case) -> None:
        with pytest.raises(BackendError) as caught:
            case.backend.open(case.artifact, [case.tap])
        assert codes(caught.value) == ["hbm-taps"]

    def test_an_unknown_tap_is_named(self, case: Case) -> None:
        with pytest.raises(BackendError) as caught:
            case.backend.open(case.artifact, ["no/such/tensor"])
        assert_speaks(caught.value, "no/such/tensor")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """nash-m: an int32 tail with a scale for each channel, whose Dequantize is removed."""
    calibration = {"x": normalised(pixels(8))}
    folder = tmp_path_factory.mktemp("m")
    return build(folder, small_network(), march="nash-m", calibration=calibration, remove=("Dequantize",))


@BOTH
def test_integers_and_their_scales_are_those_of_the_simulation(name: str, built: Path) -> None:
    feeds = {"x": normalised(pixels(1, seed=2))}
    with HbRuntimeBackend().open(artifact(built / "net.hbm", "hbruntime")) as simulated:
        wanted, described = simulated.infer(feeds, sample="0"), simulated.signature.outputs[0]
    with backend(name).open(artifact(built / "net.hbm", name)) as session:
        before = session.signature
        made = session.infer(feeds, sample="0")
        after = session.signature
        assert session.environment.provider == name
        told = getattr(session, "told", {})
    assert wanted["y"].dtype == np.int32
    assert_same(made, wanted)
    np.testing.assert_array_equal(made["y"], wanted["y"])
    for signature in (before, after):
        assert signature is not None
        (output,) = signature.outputs
        assert (output.dtype, output.shape) == ("int32", (1, 10))
        assert output.quantization is not None
        assert (len(output.quantization.scales), output.quantization.axis) == (10, 1)
        assert alike(output.quantization, described.quantization)
    assert told == {key: told[key] for key in ("march", "version")}
    assert (told["march"], told["version"]) == ("nash-m", simulated.told["version"])


@BOTH
def test_two_planes_go_in_by_their_names(name: str, tmp_path: Path) -> None:
    folder = build(tmp_path, small_network(), march="nash-p", calibration={"x": normalised(pixels(4))}, rt="nv12")
    random = np.random.default_rng(0)
    feeds = {
        "x_y": random.integers(0, 256, (1, 32, 32, 1)).astype(np.uint8),
        "x_uv": random.integers(0, 256, (1, 16, 16, 2)).astype(np.uint8),
    }
    with HbRuntimeBackend().open(artifact(folder / "net.hbm", "hbruntime")) as simulated:
        wanted = simulated.infer(feeds, sample="0")
    with backend(name).open(artifact(folder / "net.hbm", name)) as session:
        signature = session.signature
        np.testing.assert_array_equal(session.infer(feeds, sample="0")["y"], wanted["y"])
    assert signature is not None
    assert [(one.name, one.dtype) for one in signature.inputs] == [("x_y", "uint8"), ("x_uv", "uint8")]
    assert all(one.quantization is None for one in signature.inputs)


def on_integers() -> onnx.ModelProto:
    """The tiny network behind an int8 input, whose quantise node was removed."""
    body = tiny()
    first = onnx.helper.make_node("DequantizeLinear", ["q", "step", "zero"], ["fed"])
    for node in body.graph.node:
        node.input[:] = ["fed" if name == "x" else name for name in node.input]
    held = {one.name: onnx.numpy_helper.to_array(one) for one in body.graph.initializer}
    held |= {"step": np.array(STEP, np.float32), "zero": np.array(0, np.int8)}
    fed = value("q", [1, 3], onnx.TensorProto.INT8)
    return model([first, *body.graph.node], [fed], list(body.graph.output), initializers=held)


@BOTH
def test_numbers_are_quantised_where_the_quantise_node_was_removed(name: str, tmp_path: Path) -> None:
    told = {"name": "q", "shape": [1, 3], "dtype": "S8", "scales": [STEP], "zero_points": [0], "axis": None}
    path = write(tmp_path / "net.hbm", on_integers(), inputs=[told])
    with backend(name).open(artifact(path, name)) as session:
        made = session.infer({"q": X}, sample="0")["y"]
        same = session.infer({"q": np.rint(X / STEP).astype(np.int8)}, sample="1")["y"]
        assert [note.code for note in session.notes] == ["inputs-requantised"]
    np.testing.assert_array_equal(made, same)
    np.testing.assert_allclose(made, answer(X), rtol=1e-5)


@BOTH
def test_a_network_of_a_packed_file_is_named(name: str, tmp_path: Path) -> None:
    path = write_packed(tmp_path / "both.hbm", {"one": (tiny(), {}), "two": (biased(1.0), {})}, march="nash-m")
    with backend(name).open(artifact(path, name, model="two")) as session:
        np.testing.assert_allclose(session.infer({"x": X}, sample="0")["y"], answer(X) + 1, rtol=1e-6)
    for asked in (None, "three"):
        error = opening_fails(artifact(path, name, model=asked), ArtifactError)
        assert codes(error) == ["hbm-networks"]
        assert_speaks(error, "one, two")


@BOTH
def test_a_feed_of_another_type_never_reaches_the_board(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "net.hbm", tiny())
    with backend(name).open(artifact(path, name)) as session, pytest.raises(SampleError) as caught:
        session.infer({"x": X.astype(np.float64)[:, :2]}, sample="0")
    assert codes(caught.value) == ["feed-dtype", "feed-shape"]


@BOTH
def test_an_hbm_of_another_march_is_refused(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "net.hbm", tiny(), march="nash-e")
    error = opening_fails(artifact(path, name, environment={"STAND_IN_MARCH": "nash-p"}), LoadRefused)
    assert_speaks(error, "nash-e", "nash-p")


@BOTH
def test_an_interpreter_without_the_package_is_named(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "net.hbm", tiny())
    error = opening_fails(artifact(path, name, python=(sys.executable,)), BackendError)
    assert codes(error) == [f"{name.replace('_', '-')}-absent"]
    assert_speaks(error, sys.executable, f"cannot import {name}")


@BOTH
def test_the_versions_of_the_distribution_belong_to_the_environment(name: str, tmp_path: Path) -> None:
    told = tmp_path / "site" / f"{name}-3.15.3.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 3.15.3\n")
    path = write(tmp_path / "net.hbm", tiny())
    environment = {"PYTHONPATH": os.pathsep.join([str(PACKAGES), str(told.parent)])}
    with backend(name).open(artifact(path, name, environment=environment)) as session:
        assert dict(session.environment.versions)[name] == "3.15.3"


def test_an_hbm_infer_that_is_too_old_is_told(tmp_path: Path) -> None:
    old = tmp_path / "old" / "hbm_infer"
    old.mkdir(parents=True)
    (old / "__init__.py").write_text("__version__ = '3.8.12'\nclass HbmRpcSession: pass\n")
    path = write(tmp_path / "net.hbm", tiny())
    error = opening_fails(artifact(path, INFER, environment={"PYTHONPATH": str(old.parent)}), BackendError)
    assert codes(error) == ["hbm-infer-old"]
    assert_speaks(error, "3.8.12", "3.9.0")


@pytest.mark.parametrize(
    ("boards", "code"),
    [
        (None, "hbm-infer-host"),
        (Boards("here"), "hbm-infer-host"),
        (replace(POOL, hosts=(replace(HOST, jump=Host("gate", "192.0.2.1")),)), "hbm-infer-jump"),
        (replace(POOL, hosts=(replace(HOST, proxy=("nc", "gate")),)), "hbm-infer-jump"),
    ],
    ids=["no board", "this machine", "a jump host", "a proxy"],
)
def test_a_board_that_hbm_infer_cannot_reach_is_told_at_once(boards: Boards | None, code: str, tmp_path: Path) -> None:
    path = write(tmp_path / "net.hbm", tiny())
    assert codes(opening_fails(artifact(path, INFER, boards=boards), ConfigError)) == [code]


def assert_hidden(error: DriftgateError) -> None:
    """Neither address nor password are in what is said, or in what would be kept of it."""
    said = str(error) + repr(error) + repr(error.__cause__)
    assert ADDRESS not in said
    assert PASSWORD not in said
    assert error.__suppress_context__


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("refused", "hbm-infer-port", ("firewall", f"all addresses; {BOARD}")),
        ("login", "hbm-infer-login", (f"sshpass -p *** ssh root@{BOARD}",)),
        ("full", "hbm-infer-start", ("No space left",)),
    ],
)
def test_a_server_that_does_not_start_is_told_by_its_reason(
    fault: str, code: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    error = opening_fails(artifact(write(tmp_path / "net.hbm", tiny()), INFER, fault), BackendError)
    assert codes(error) == [code]
    assert not isinstance(error, LoadRefused)
    assert_speaks(error, BOARD, *words)
    assert_hidden(error)


@pytest.mark.parametrize(
    ("fault", "frames", "code", "words", "own"),
    [
        ("die", 0, "hbm-infer-port", ("firewall", f"ipv4:{BOARD}"), {}),
        ("lost", 1, "hbm-infer-lost", ("answered before",), {}),
        ("status", 0, "hbm-infer-status", ("-200003",), {}),
        (
            "hang",
            0,
            "hbm-infer-timeout",
            ("within 1 s", "sample-timeout"),
            {"boards": HASTY},
        ),
        ("hang", 0, "worker-silent", (f"connect to root@{BOARD}",), {"timeout": 3.0}),
        ("exit", 0, "worker-died", (f"connect to root@{BOARD}", "exit code 3"), {}),
    ],
)
def test_a_frame_that_does_not_come_back_is_told_by_its_reason(
    fault: str, frames: int, code: str, words: tuple[str, ...], own: dict[str, Any], tmp_path: Path
) -> None:
    path = write(tmp_path / "net.hbm", tiny())
    with HbmInferBackend().open(artifact(path, INFER, fault, **own)) as session:
        for number in range(frames):
            assert_same(session.infer({"x": X}, sample=str(number)), {"y": answer(X)})
        with pytest.raises(BackendError) as caught:
            session.infer({"x": X}, sample="0007")
    assert codes(caught.value) == [code]
    assert_speaks(caught.value, "hbm", *words)
    assert_hidden(caught.value)


def test_what_is_known_of_a_board_shows_its_name_only(tmp_path: Path) -> None:
    path = write(tmp_path / "net.hbm", tiny())
    with HbmInferBackend().open(artifact(path, INFER)) as session:
        assert session.environment.board == BOARD
        assert ADDRESS not in repr((session.environment, session.notes, session.signature, session.told))


def test_an_address_that_is_a_name_hides_what_it_stands_for(tmp_path: Path) -> None:
    said = "import os, sys\nprint('to 127.0.0.1 as localhost', file=sys.stderr, flush=True)\nos._exit(9)\n"
    package = tmp_path / "odd" / "hbm_infer"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(said)
    path = write(tmp_path / "net.hbm", tiny())
    environment, local = {"PYTHONPATH": str(package.parent)}, Boards(BOARD, (Host(BOARD, "localhost"),))
    error = opening_fails(artifact(path, INFER, boards=local, environment=environment), BackendError)
    assert_speaks(error, f"to {BOARD} as {BOARD}")


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [("memory", BackendError, "hbm-runtime-board"), ("few", BackendError, "hbm-outputs")],
)
def test_a_board_at_its_end_is_no_fault_of_the_file(
    fault: str, kind: type[DriftgateError], code: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "net.hbm", tiny())
    with pytest.raises(kind) as caught, HbmRuntimeBackend().open(artifact(path, RUNTIME, fault)) as session:
        session.infer({"x": X}, sample="0")
    assert codes(caught.value) == [code]
    assert not isinstance(caught.value, LoadRefused)
    assert_speaks(caught.value, "hbm")


def server_events(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


@pytest.mark.parametrize(
    ("fault", "own", "is_opened"),
    [
        ("", {}, True),
        ("die", {}, True),
        ("hang", {"timeout": 2.0}, True),
        ("stuck", {}, True),
        ("slow", {"timeout": 2.0}, False),
        ("", {"model": "stranger"}, False),
    ],
    ids=["all well", "a frame fails", "a frame hangs", "closing takes long", "the start takes too long", "no network"],
)
def test_no_server_is_left_behind(fault: str, own: dict[str, Any], is_opened: bool, tmp_path: Path) -> None:
    path, log = write(tmp_path / "net.hbm", tiny()), tmp_path / "servers"
    found = artifact(path, INFER, fault, {"STAND_IN_SERVERS": str(log)}, **own)
    try:
        with HbmInferBackend().open(found) as session:
            session.infer({"x": X}, sample="0")
        failed = False
    except (BackendError, ArtifactError):
        failed = True
    assert failed is (fault not in ("", "stuck") or not is_opened)
    assert server_events(log) == ["started", "ended"]


def opened_by_hand(path: Path, log: Path, fault: str = "") -> subprocess.Popen[str]:
    """The worker as a process of ours, with a server that is up."""
    request = {"path": str(path), "board": BOARD, "host": ADDRESS, "user": "root", "password": None, "port": 22}
    request |= {"core_id": -1, "frame_seconds": 60}
    command = [*interpreter(fault, STAND_IN_SERVERS=str(log)), str(WORKERS / "hbm_infer_worker.py")]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(json.dumps({"number": 1, "do": "open", "request": request, "taps": []}) + "\n")
    worker.stdin.flush()
    assert json.loads(worker.stdout.readline())["protocol"] == 1
    assert json.loads(worker.stdout.readline())["ok"]["provider"] == INFER
    return worker


@pytest.mark.parametrize(
    ("stop", "code"),
    [(lambda worker: worker.send_signal(signal.SIGTERM), 128 + signal.SIGTERM), (lambda worker: None, 0)],
    ids=["SIGTERM", "the end of stdin"],
)
def test_the_worker_closes_its_server_however_it_is_ended(
    stop: Callable[[subprocess.Popen[str]], None], code: int, tmp_path: Path
) -> None:
    log = tmp_path / "servers"
    worker = opened_by_hand(write(tmp_path / "net.hbm", tiny()), log)
    stop(worker)
    _, stderr = worker.communicate(timeout=30)
    assert (worker.returncode, server_events(log)) == (code, ["started", "ended"])
    assert "server left behind" not in stderr


def test_a_second_sigterm_does_not_cut_the_closing_short(tmp_path: Path) -> None:
    log = tmp_path / "servers"
    worker = opened_by_hand(write(tmp_path / "net.hbm", tiny()), log, "stuck")
    worker.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        worker.wait(0.5)  # it is closing its server
    worker.send_signal(signal.SIGTERM)
    _, stderr = worker.communicate(timeout=30)
    assert (worker.returncode, server_events(log)) == (128 + signal.SIGTERM, ["started", "ended"])
    assert "server left behind" not in stderr


@pytest.mark.parametrize(
    ("core", "infer", "hrt", "runtime"), [(None, -1, 0, ()), (0, 0, 1, (0,)), (3, 3, 4, (3,))], ids=["any", "0", "3"]
)
def test_each_tool_has_its_own_number_for_a_core(
    core: int | None, infer: int, hrt: int, runtime: tuple[int, ...]
) -> None:
    assert (infer_core(core), hrt_core(core), runtime_cores(core)) == (infer, hrt, runtime)


@pytest.mark.parametrize("number_of", [infer_core, hrt_core, runtime_cores])
def test_a_tools_word_for_any_core_is_no_core(number_of: Callable[[int | None], Any]) -> None:
    with pytest.raises(ValueError, match="-1"):
        number_of(-1)


def logged(log: Path, *arguments: str) -> tuple[str, ...]:
    """The interpreter, with what its process says kept in a file."""
    return ("sh", "-c", 'log=$1; shift; exec "$@" 2>>"$log"', "-", str(log), *interpreter(), *arguments)


@pytest.mark.parametrize(
    ("name", "own", "words"),
    [
        (INFER, {}, "root@203.0.113.7:22, core_id -1, /map/hbm_infer/"),
        (
            INFER,
            {
                "boards": Boards(BOARD, (Host(BOARD, ADDRESS, 2222, "oe"),), core=0),
                "remote_root": "/userdata/x",
            },
            "oe@203.0.113.7:2222, core_id 0, /userdata/x",
        ),
        (RUNTIME, {}, "priority 0, bpu_cores [0]"),
        (RUNTIME, {"core": 2, "priority": 5}, "priority 5, bpu_cores [2]"),
    ],
)
def test_options_reach_the_tool(name: str, own: dict[str, Any], words: str, tmp_path: Path) -> None:
    path, log = write(tmp_path / "net.hbm", tiny()), tmp_path / "said"
    with backend(name).open(artifact(path, name, python=logged(log), **own)) as session:
        session.infer({"x": X}, sample="0")
    assert words in log.read_text()


@pytest.mark.parametrize(("shift", "code", "outcome"), [(0.0, 0, "passed"), (0.3, 1, "failed")])
def test_a_chain_ends_on_the_board(shift: float, code: int, outcome: str, tmp_path: Path) -> None:
    project = Project(tmp_path)
    write(tmp_path / "net_quantized_model.bc", biased(0.01))
    write(tmp_path / "net.hbm", biased(0.01 + shift))
    project.subject = {
        "artifacts": {
            "onnx": project.onnx("net.onnx", tiny()),
            "quantized": "net_quantized_model.bc",
            "hbm": {"backend": RUNTIME, "path": "net.hbm", "python": interpreter(), "timeout": 60},
        },
        "samples": {"raw": project.npz("eval.npz", x=inputs(4))},
    }
    project.top = {"defaults": {"hbruntime": {"python": interpreter(), "timeout": 60}}}
    told = call("check", "-c", project.write(**project.top), "--out", tmp_path / "out")
    assert told.code == code, told.out + told.err
    assert rows(tmp_path / "out")["bc-hbm"] == outcome
    (facts,) = read_results(tmp_path / "out").facts
    assert {run.stage: run.backend for run in facts.runs}["hbm"] == RUNTIME
