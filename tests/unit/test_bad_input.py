"""Bad input: a clear sentence, exit code 2, and nothing half-written."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftgate.commands.checking import OUTPUTS
from driftgate.storage.folder import write_all
from support.commandline import PROGRAM, Answer, call, codes, judged, process, reasons, rows
from support.models import answer, tiny
from support.project import LOSS, Project, classes, inputs, torch_stand_in, two_stages, whole_chain

COUNT = 6  # samples of two_stages


def refused(project: Project, *said: str, before: Callable[[], None] | None = None) -> Answer:
    """A check that ends with code 2, says all of this, and leaves nothing: not even what was there before."""
    out = project.root / "out"
    out.mkdir(exist_ok=True)
    for name in OUTPUTS:
        (out / name).write_text("of an earlier run")
    project.write()
    if before is not None:
        before()
    found = call("check", "-c", project.config, "--out", out)
    assert found.code == 2
    assert found.out == ""
    assert [*out.iterdir()] == []
    assert all(line.startswith("driftgate: ") for line in found.err.splitlines())
    assert "internal error" not in found.err
    for part in said:
        assert part in found.err
    return found


def established(project: Project, slug: str, *wanted: str) -> Path:
    """A check that is carried through, in which this row is an ERROR for these reasons."""
    out = project.root / "out"
    found = call("check", "-c", project.write(), "--out", out)
    assert found.code == 2, found.out + found.err
    assert rows(out)[slug] == "error"
    assert set(wanted) <= set(codes(out, slug))
    return out


# --- settings and files


def test_settings_are_refused_with_their_lines(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.subject["sampels"] = {}
    project.artifacts["onnx"] = {"path": "absent.onnx", "level": "fast"}
    project.subject["samples"]["raw"] = "absent.npz"
    refused(project, "driftgate.yaml:", "did you mean samples?", "'disabled', 'basic'", "absent.npz is not there")


def test_an_unknown_key_hides_no_missing_file(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.subject["frobnicate"] = 1
    project.artifacts["onnx"] = "absent.onnx"
    found = refused(project, "frobnicate", "absent.onnx is not there")
    assert len(found.err.splitlines()) == 2


def test_no_configuration_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for verb in (["check"], ["plan"], ["run", "--leg", "a", "--out", "out"]):
        found = call(*verb)
        assert (found.code, found.out) == (2, "")
        assert "driftgate.yaml" in found.err
        assert "driftgate init" in found.err
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--policy", "strict", "there is no policy strict; known: gentle"),
        ("--profile", "nightly", "there is no profile nightly; known: none, all"),
        ("--profile", "none", "profile none wants 0 samples, there are 6"),
        ("--profile", "all", "profile all wants 1000 samples, there are 6"),
        ("--subject", "resnet", "there is no subject resnet; known: net"),
    ],
)
def test_names_that_the_configuration_does_not_have(tmp_path: Path, option: str, value: str, said: str) -> None:
    project = two_stages(tmp_path)
    project.subject["samples"]["profiles"] = {"none": 0, "all": 1000}
    project.write(policies={"gentle": {}})
    found = call("check", "-c", project.config, "--out", tmp_path / "out", option, value)
    assert found.code == 2
    assert said in found.err
    assert not (tmp_path / "out").exists()


def test_an_unknown_fault_of_the_demo_removes_what_an_earlier_run_left(tmp_path: Path) -> None:
    for arguments in (["demo", "--fault", "gremlins"], ["check", "-c", "demo:gremlins"]):
        (tmp_path / "results.json").write_text("of an earlier run")
        found = call(*arguments, "--out", tmp_path)
        assert found.code == 2
        assert "no fault gremlins" in found.err
        assert [*tmp_path.iterdir()] == []


# --- artifacts


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_truncated_model(tmp_path: Path, size: int) -> None:
    project = two_stages(tmp_path)
    model = tmp_path / "net.onnx"
    model.write_bytes(model.read_bytes()[:size])
    refused(project, "net.onnx is no whole ONNX file")


def test_all_artifacts_that_cannot_be_read_are_named_together(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    for name in ("net.onnx", "calibrated.onnx"):
        (tmp_path / name).write_bytes(b"no model")
    (tmp_path / "hbm.npz").write_bytes(b"no recording")
    refused(project, "net.onnx is no whole ONNX file", "calibrated.onnx is no whole ONNX file", "hbm.npz is no whole")


def test_a_model_that_its_runtime_refuses_is_a_failure_and_no_error(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    proto = tiny()
    proto.graph.node[0].op_type = "MatMulX"
    project.onnx("net.onnx", proto)
    out = tmp_path / "out"
    assert call("check", "-c", project.write(), "--out", out).code == 1
    assert rows(out)["pytorch-onnx"] == "failed"
    assert codes(out, "pytorch-onnx")[0].startswith("ort-refused")


def test_a_reference_that_its_runtime_refuses_proves_nothing(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    proto = tiny()
    proto.graph.node[0].op_type = "MatMulX"
    project.onnx("calibrated.onnx", proto)
    out = tmp_path / "out"
    assert call("check", "-c", project.write(), "--out", out).code == 1
    verdicts = next(check for check in judged(out)["checks"] if check["slug"] == "float-int8")["verdicts"]
    outcomes = {(verdict["target"], verdict["outcome"]) for verdict in verdicts}
    assert outcomes == {("optimized_float..calibrated", "failed"), ("calibrated..quantized", "error")}


def test_a_stage_alone_is_no_link(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    del project.artifacts["onnx"]
    refused(project, "net has only the stages pytorch and no score")


def test_a_score_alone_judges_nothing_but_a_declared_one(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.subject["artifacts"] = {"hbm": project.artifacts["hbm"]}
    out = tmp_path / "out"
    assert call("check", "-c", project.write(), "--out", out).code == 2
    assert set(rows(out).values()) == {"skipped"}


# --- recordings


def test_a_recording_with_too_few_samples(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.npz("pytorch.npz", y=answer(inputs(COUNT))[:4])
    established(project, "pytorch-onnx", "recording-sample-missing", "samples-partial")


def test_outputs_of_different_shapes(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.npz("pytorch.npz", y=answer(inputs(COUNT))[:, :1])
    established(project, "pytorch-onnx", "output-shape")


def test_outputs_without_a_common_name_or_form(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    y = answer(inputs(COUNT))
    project.npz("pytorch.npz", a=y, b=y)
    established(project, "pytorch-onnx", "output-unpaired", "outputs-none")


def test_text_in_a_recording(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.npz("pytorch.npz", y=np.array([["a", "b"]] * COUNT))
    refused(project, "pytorch.npz", '"y" is of type <U1, wanted are numbers')


def test_a_signature_that_does_not_fit(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.signature("hbm.signature.json", y={"scales": [0.1, 0.2, 0.3], "axis": 1})
    established(project, "bc-hbm", "signature-axis")


# --- samples


def test_an_empty_sample_folder(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    (tmp_path / "raw").mkdir()
    project.subject["samples"]["raw"] = "raw"
    refused(project, "raw holds no sample")


def test_zero_samples_in_a_stacked_file(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.npz("eval.npz", x=inputs(COUNT)[:0])
    refused(project, "eval.npz holds no sample")


@pytest.mark.parametrize("name", ["eval.npz", "pytorch.npz"])
def test_pickled_arrays_are_never_loaded(tmp_path: Path, name: str) -> None:
    project = two_stages(tmp_path)
    project.npz(name, x=np.array([{"__reduce__": 1}] * COUNT, dtype=object))
    refused(project, name, "holds Python objects, which are never loaded")


def test_a_damaged_sample_file(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    path = tmp_path / "eval.npz"
    path.write_bytes(path.read_bytes()[:-30])
    refused(project, "eval.npz is no whole .npz file")


def test_feeds_of_another_type_or_shape_name_the_stage_and_sample(tmp_path: Path) -> None:
    for number, x in enumerate((inputs(COUNT).astype(np.float64), inputs(COUNT)[:, :2])):
        project = two_stages(tmp_path / str(number))
        project.npz("eval.npz", x=x)
        out = established(project, "pytorch-onnx", ("feed-dtype", "feed-shape")[number])
        assert "onnx, sample 0000: " in reasons(out, "pytorch-onnx")


def test_feeds_that_no_stage_takes(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.npz("eval.npz", x=inputs(COUNT), spare=inputs(COUNT))
    refused(project, "no stage takes the feeds spare")


def test_inputs_without_a_feed_are_named_beside_the_feeds_without_an_input(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.npz("eval.npz", a=inputs(COUNT), b=inputs(COUNT))
    refused(project, "the inputs x have no feed; the sample has a, b", "no stage takes the feeds a, b")


def folder_of_samples(project: Project, odd: dict[str, np.ndarray[Any, Any]]) -> None:
    """One .npz a sample; the fourth holds `odd`."""
    x = inputs(COUNT)
    (project.root / "raw").mkdir()
    for number in range(COUNT):
        project.npz(f"raw/{number:04}.npz", **(odd if number == 3 else {"x": x[number : number + 1]}))
    project.subject["samples"]["raw"] = "raw"


@pytest.mark.parametrize("names", [("z",), ("x", "z")])
def test_a_later_sample_with_other_tensors(tmp_path: Path, names: Sequence[str]) -> None:
    project = two_stages(tmp_path)
    folder_of_samples(project, {name: inputs(1) for name in names})
    refused(project, f"sample 0003 has the tensors {', '.join(names)}, the samples before it have x")


def test_raw_and_runtime_samples_must_be_the_same(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.subject["samples"]["runtime"] = project.npz("runtime.npz", x=inputs(COUNT - 1))
    refused(project, "raw has 6 samples and runtime has 5", "0005")


def test_names_that_no_document_could_hold(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    folder_of_samples(project, {"x": inputs(1)})
    (tmp_path / "raw" / "0000.npz").rename(tmp_path / "raw" / os.fsdecode(b"caf\xe9.npz"))
    refused(project, "'caf\\udce9.npz'", "not UTF-8")


# --- the manifest


def with_manifest(folder: Path) -> Project:
    project = two_stages(folder)
    assert call("samples", folder / "eval.npz", "--manifest", folder / "m.json").code == 0
    project.subject["samples"] = {"raw": "eval.npz", "manifest": "m.json"}
    return project


def test_a_changed_sample(tmp_path: Path) -> None:
    project = with_manifest(tmp_path)
    x = inputs(COUNT)
    x[4, 1] = np.nextafter(x[4, 1], np.float32(9))
    project.npz("eval.npz", x=x)
    refused(project, "sample 0004 is not what the plan has")


def test_lost_samples(tmp_path: Path) -> None:
    project = with_manifest(tmp_path)
    project.npz("eval.npz", x=inputs(COUNT)[:4])
    refused(project, "these samples of m.json are not in the data: 0004, 0005")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"samples": []}, "no samples"),
        ({"samples": [{"id": "a", "digest": "b"}, {"id": "a", "digest": "b"}]}, "an id stands twice: a"),
        ({"version": 2}, "is wrong at version"),
        ({"schema": "driftgate.results"}, "is wrong at schema"),
        ({"block": 0}, "block must be 1 or more"),
        ({"origin": "dreams"}, "is wrong at origin"),
        ({"colour": "blue"}, "is wrong at colour"),
    ],
)
def test_a_manifest_that_is_wrong(tmp_path: Path, change: dict[str, object], said: str) -> None:
    project = with_manifest(tmp_path)
    manifest = json.loads((tmp_path / "m.json").read_text("utf-8"))
    (tmp_path / "m.json").write_text(json.dumps({**manifest, **change}))
    refused(project, "m.json", said, "driftgate samples")


@pytest.mark.parametrize(("content", "said"), [("", "is no JSON"), ('{"schema"', "is no JSON"), ("[]", "is wrong")])
def test_a_manifest_that_is_none(tmp_path: Path, content: str, said: str) -> None:
    project = with_manifest(tmp_path)
    (tmp_path / "m.json").write_text(content)
    refused(project, "m.json", said)


# --- labels

LABELS = classes(inputs(10))
Labels = Callable[[Project], str]


def cut(project: Project) -> str:
    name = project.npz("l.npz", labels=LABELS)
    (project.root / name).write_bytes((project.root / name).read_bytes()[:-20])
    return name


def not_zipped(project: Project) -> str:
    with (project.root / "l.npz").open("wb") as stream:
        np.save(stream, LABELS)
    return "l.npz"


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (lambda project: project.npz("l.npz", labels=LABELS[:4]), "has 4 labels for 10 samples"),
        (lambda project: project.npz("l.npz", labels=np.tile(LABELS, 2)), "has 20 labels for 10 samples"),
        (lambda project: project.npz("l.npz", labels=LABELS, ids=np.array(["0000"])), "has 10 labels for 1 samples"),
        (lambda project: project.npz("l.npz", labels=LABELS, ids=np.array(["0000"] * 10)), "names a sample twice"),
        (lambda project: project.npz("l.npz", labels=LABELS.astype(float)), "`labels` is float64 of shape (10,)"),
        (lambda project: project.npz("l.npz", labels=np.array([{}] * 10, dtype=object)), "cannot be understood"),
        (lambda project: project.npz("l.npz", label=LABELS), "There is no item named 'labels.npy'"),
        (cut, "cannot be understood"),
        (not_zipped, "cannot be understood"),
        (lambda project: project.csv("l.csv", [("name", "label"), ("0000", 1)]), "has the columns name, label"),
        (lambda project: project.csv("l.csv", [("id", "label"), ("0000", "cat")]), "l.csv, line 2: cat is no number"),
        (lambda project: project.csv("l.csv", [("id", "label"), ("0000",)]), "l.csv, line 2: - is no number"),
        (lambda project: project.csv("l.csv", [("id", "label"), ("0000", 1)]), "has none for the samples 0001, 0002"),
        (lambda project: project.csv("l.csv", [("id", "label"), ("a", 1), ("a", 1)]), "names a sample twice"),
        (lambda project: project.csv("l.csv", []), "has the columns -"),
        (lambda project: project.csv("l.txt", []), "has an ending that is not known; wanted: .npz, .csv"),
    ],
)
def test_labels_that_do_not_fit(tmp_path: Path, labels: Labels, said: str) -> None:
    project = whole_chain(tmp_path)
    project.subject["score"]["labels"] = labels(project)
    refused(project, said)


def test_labels_that_are_no_classes(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.npz("labels.npz", labels=LABELS + 7)
    out = established(project, "baseline", "score-sample")
    assert set(rows(out).values()) == {"error"}


def test_a_score_that_one_stage_does_not_have_is_an_error_of_its_links(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    y = answer(inputs(10))
    project.artifacts["calibrated"] = project.npz("calibrated.npz", y=y + LOSS, z=y + LOSS)
    project.subject["score"]["output"] = "logits"
    out = established(project, "float-int8", "score-output")
    assert rows(out) | {"float-int8": "passed"} == dict.fromkeys(rows(out), "passed")


# --- workers


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        ("die at start", "worker-died", "libtorch.so is not here"),
        ("greet with garbage", "worker-nonsense", "Welcome to the container"),
        ("die", "worker-died", "infer 0002 with exit code 3; its last words: out of memory"),
        ("hang", "worker-silent", "within 1 s at infer 0002; its last words: out of memory"),
        ("garbage", "worker-nonsense", "Segmentation fault"),
    ],
)
def test_a_worker_that_fails_is_an_error_of_its_stage_alone(tmp_path: Path, fault: str, code: str, said: str) -> None:
    project = whole_chain(tmp_path)
    project.artifacts["pytorch"] = torch_stand_in(project, fault, timeout=1 if fault == "hang" else 60)
    out = established(project, "pytorch-onnx", code)
    assert rows(out) == {
        "baseline": "error",
        "pytorch-onnx": "error",
        "onnx-optimized": "passed",
        "float-int8": "passed",
        "bc-hbm": "passed",
        "board": "error",
    }
    assert reasons(out, "pytorch-onnx").startswith("pytorch: the worker of ")
    assert said in reasons(out, "pytorch-onnx")
    run = next(
        run
        for run in json.loads((out / "results.json").read_text("utf-8"))["facts"][0]["runs"]
        if run["stage"] == "pytorch"
    )
    assert (run["outcome"], run["samples_done"]) == ("error", 0 if "start" in fault or "greet" in fault else 2)


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.artifacts["pytorch"] = {**torch_stand_in(project), "python": ["/no/such/python"]}
    established(project, "pytorch-onnx", "worker-start")


# --- a folder that cannot be written


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.write()
    out = tmp_path / "out"
    out.mkdir()
    (out / "results.json").write_text("of an earlier run")

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    found = process("check", "-c", project.config, "--out", out, before=limited)
    assert (found.code, found.out) == (2, "")
    assert f"driftgate: folder {out} cannot be written: File too large; nothing was kept there" in found.err
    assert [*out.iterdir()] == []


def test_a_folder_is_not_left_behind_empty(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.write()

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    found = process("check", "-c", project.config, "--out", tmp_path / "out", before=limited)
    assert found.code == 2
    assert not (tmp_path / "out").exists()


#: Mounts a small file system on $1, calls the rest, and lists what is left there.
_IN_A_SMALL_DISK = 'mount -t tmpfs -o size=16k none "$1" || exit 77; cd "$1"; shift; "$@"; code=$?; ls -A; exit $code'
_NAMESPACES = (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount"), ("sudo", "-n", "unshare", "--mount"))


def small_disk(place: Path) -> tuple[str, ...]:
    """The command that gives what follows it a disk of 16 KiB as its working directory."""
    place.mkdir()
    for namespace in _NAMESPACES:
        command = (*namespace, "sh", "-c", _IN_A_SMALL_DISK, "sh", str(place))
        try:
            tried = subprocess.run([*command, "true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        except FileNotFoundError:
            continue
        if tried.returncode == 0:
            return command
    reason = "no file system can be mounted here: be root, or allow user namespaces or sudo"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def test_a_full_disk(tmp_path: Path) -> None:
    project = whole_chain(tmp_path)
    project.write()
    command = small_disk(tmp_path / "disk")
    done = subprocess.run(
        [*command, *PROGRAM, "check", "-c", str(project.config), "--out", "out"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2, done.stderr
    assert "driftgate: folder out cannot be written: No space left on device; nothing was kept there" in done.stderr
    assert done.stdout == ""


def test_an_output_folder_that_is_a_file(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    project.write()
    (tmp_path / "out").write_text("mine")
    found = call("check", "-c", project.config, "--out", tmp_path / "out")
    assert found.code == 2
    assert f"folder {tmp_path / 'out'} cannot be written: Not a directory" in found.err
    assert (tmp_path / "out").read_text() == "mine"


class Interrupted(dict[str, bytes]):
    """Files of which the second is never reached."""

    def items(self) -> Any:
        yield "a", b"a"
        raise KeyboardInterrupt


def test_writing_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_all(tmp_path / "out", Interrupted())
    assert [*tmp_path.iterdir()] == []


def test_stdout_that_nobody_reads(tmp_path: Path) -> None:
    project = two_stages(tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PROGRAM, "check", "-c", str(project.write()), "--out", str(tmp_path / "out")],
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=120,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rows(tmp_path / "out")["pytorch-onnx"] == "passed"
