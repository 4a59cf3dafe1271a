"""PyTorch as a backend, with the real one: the contract suite for modules and TorchScript, then its own ways."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from driftgate.backends.onnxruntime_backend import OnnxRuntimeBackend
from driftgate.backends.stateful import StatefulSession
from driftgate.backends.torch_backend import TorchBackend
from driftgate.errors import ArtifactError, BackendError, ConfigError, DriftgateError, LoadRefused, SampleError
from driftgate.sessions import Artifact
from support.contract import BackendContract, Case, assert_same, assert_speaks, moved
from support.models import BIAS, WEIGHT, accumulator, answer, hidden, save
from support.torchpython import torch_python

X = np.array([[1.0, -2.0, 0.5]], np.float32)
BACKEND = TorchBackend()

TINY = """
import torch

print("a print while importing")

class Tiny(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.product = torch.nn.Linear(3, 2, bias=False)
        self.dropout = torch.nn.Dropout(0.5)
        self.bias = torch.nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return torch.relu(self.dropout(self.product(x))) + self.bias

def load():
    return Tiny()
"""

SAVE = """
import sys
import numpy as np
import torch

folder = sys.argv[1]
sys.path.insert(0, folder)
from nets.tiny import Tiny

tiny = Tiny().eval()
weights = np.load(folder + "/weights.npz")
state = {"product.weight": torch.from_numpy(weights["weight"].T.copy()), "bias": torch.from_numpy(weights["bias"])}
tiny.load_state_dict(state)
torch.save(state, folder + "/tiny.pth")
torch.save({"epoch": 3, "state_dict": state}, folder + "/checkpoint.pth")
torch.save(tiny, folder + "/whole.pth")
torch.save({"other": state["bias"], "bias": state["bias"]}, folder + "/other_keys.pth")
torch.save({**state, "bias": torch.zeros(5)}, folder + "/other_shapes.pth")
torch.jit.save(torch.jit.trace(tiny, torch.ones(1, 3)), folder + "/traced.pt")
torch.jit.save(torch.jit.script(tiny), folder + "/scripted.pt")
torch.jit.save(torch.jit.freeze(torch.jit.script(tiny)), folder + "/frozen.pt")
"""


@pytest.fixture(scope="session")
def python() -> str:
    return torch_python()


@pytest.fixture(scope="session")
def pristine(python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's project: nets/tiny.py, its weights in several forms, and TorchScript."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "nets").mkdir()
    (folder / "nets" / "tiny.py").write_text(TINY)
    np.savez(folder / "weights.npz", weight=WEIGHT, bias=BIAS)
    (folder / "save.py").write_text(SAVE)
    subprocess.run([python, str(folder / "save.py"), str(folder)], check=True, stdin=subprocess.DEVNULL, timeout=300)
    return folder


@pytest.fixture
def project(pristine: Path, tmp_path: Path) -> Path:
    return shutil.copytree(pristine, tmp_path / "project")


def loaded(python: str, project: Path, weights: str = "tiny.pth", **options: object) -> Artifact:
    given = {
        "python": (python,),
        "load": "nets.tiny:load",
        "weights": str(project / weights),
        "search_path": (str(project),),
        **options,
    }
    return Artifact("pytorch", "torch", None, given)


def scripted(python: str, path: Path) -> Artifact:
    return Artifact("pytorch", "torch", path, {"python": (python,)})


def written(python: str, folder: Path, body: str, **options: object) -> Artifact:
    """A module of one class `Net`, whose body is given."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    source = f"import sys\nimport torch\n\nclass Net(torch.nn.Module):\n{lines}\ndef load():\n    return Net()\n"
    (folder / "written.py").write_text(source)
    given = {"python": (python,), "load": "written:load", "search_path": (str(folder),), **options}
    return Artifact("pytorch", "torch", None, given)


def refusal(artifact: Artifact, taps: Sequence[str] = ()) -> DriftgateError:
    with pytest.raises((ArtifactError, BackendError)) as caught:
        BACKEND.open(artifact, taps)
    assert_speaks(caught.value, "pytorch" if artifact.path is None else "")
    return caught.value


def change(source: Path) -> None:
    source.write_text(source.read_text() + "# changed\n")


class TestContract(BackendContract):
    """The suite that every backend passes."""

    @pytest.fixture
    def case(self, python: str, project: Path) -> Case:
        artifact = loaded(python, project)
        copy = shutil.copytree(project, project.parent / "copy")
        (project / "damaged.pth").write_bytes((project / "tiny.pth").read_bytes()[:-100])
        return Case(
            backend=BACKEND,
            artifact=artifact,
            feeds={"x": X},
            expected={"output": answer(X)},
            tap="product",
            tapped={"output": answer(X), "product": hidden(X)},
            touch=lambda: change(project / "nets" / "tiny.py"),
            copied=loaded(python, copy),
            missing=loaded(python, project, "missing.pth"),
            damaged=loaded(python, project, "damaged.pth"),
        )


class TestTorchScript:
    """TorchScript files by path."""

    @pytest.mark.parametrize("name", ["traced.pt", "scripted.pt", "frozen.pt"])
    def test_a_script_gives_what_its_module_gives(self, name: str, python: str, project: Path) -> None:
        with BACKEND.open(scripted(python, project / name)) as session:
            assert session.environment.level == "torchscript"
            assert [spec.name for spec in session.signature.inputs] == ["x"]
            assert_same(session.infer({"x": X}, sample="0000"), {"output": answer(X)})

    def test_its_digest_is_that_of_the_file(self, python: str, project: Path) -> None:
        shutil.copy(project / "traced.pt", project / "renamed.pt")
        digests = [BACKEND.digest(scripted(python, project / n)) for n in ("traced.pt", "renamed.pt", "scripted.pt")]
        assert digests[0] == digests[1] != digests[2]

    @pytest.mark.parametrize("name", ["tiny.pth", "whole.pth"])
    def test_a_state_dict_is_told_apart(self, name: str, python: str, project: Path) -> None:
        error = refusal(scripted(python, project / name))
        assert not isinstance(error, LoadRefused)
        assert error.problems[0].code == "torchscript-state-dict"

    def test_a_file_that_is_no_archive_is_told_apart(self, python: str, project: Path) -> None:
        assert refusal(scripted(python, project / "save.py")).problems[0].code == "torchscript-no-zip"

    def test_what_torch_itself_does_not_load_is_refused(self, python: str, project: Path) -> None:
        with zipfile.ZipFile(project / "scripted.pt") as whole, zipfile.ZipFile(project / "bad.pt", "w") as bad:
            for name in whole.namelist():
                if not name.endswith("data.pkl"):
                    bad.writestr(name, whole.read(name))
        assert isinstance(refusal(scripted(python, project / "bad.pt")), LoadRefused)

    def test_it_cannot_be_tapped(self, python: str, project: Path) -> None:
        error = refusal(scripted(python, project / "scripted.pt"), ["product"])
        assert isinstance(error, BackendError)
        assert_speaks(error, "product")


class TestWeights:
    """Weights that fit, and those that do not."""

    def test_a_checkpoint_with_a_state_dict_in_it_is_taken(self, python: str, project: Path) -> None:
        with BACKEND.open(loaded(python, project, "checkpoint.pth")) as session:
            assert_same(session.infer({"x": X}, sample="0000"), {"output": answer(X)})

    def test_they_belong_to_the_digest(self, python: str, project: Path) -> None:
        before = BACKEND.digest(loaded(python, project))
        assert BACKEND.digest(loaded(python, project, "checkpoint.pth")) != before

    @pytest.mark.parametrize(
        ("weights", "code", "words"),
        [
            ("other_keys.pth", "torch-weights-keys", ["product.weight", "other"]),
            ("other_shapes.pth", "torch-weights-shapes", ["bias", "[5]", "[2]"]),
            ("whole.pth", "torch-weights-pickled", ["state_dict()"]),
            ("save.py", "torch-weights-pickled", []),
            ("missing.pth", "artifact-missing", ["missing.pth"]),
        ],
    )
    def test_what_does_not_fit_is_listed(
        self, weights: str, code: str, words: list[str], python: str, project: Path
    ) -> None:
        with pytest.raises(ArtifactError) as caught:
            BACKEND.open(loaded(python, project, weights))
        assert caught.value.problems[0].code == code
        assert_speaks(caught.value, *words)

    def test_nothing_else_than_one_of_load_and_path_makes_a_model(self, python: str, project: Path) -> None:
        both = moved(loaded(python, project), project / "scripted.pt")
        neither = Artifact("pytorch", "torch", None, {"python": (python,)})
        alone = Artifact("pytorch", "torch", project / "scripted.pt", {"weights": "tiny.pth"})
        formless = Artifact("pytorch", "torch", None, {"load": "nets.tiny"})
        for artifact in (both, neither, alone, formless):
            for attempt in (BACKEND.digest, BACKEND.open):
                with pytest.raises(ConfigError) as caught:
                    attempt(artifact)
                assert_speaks(caught.value, "pytorch")


class TestModules:
    """What a user's module may take and give."""

    def test_outputs_are_named_by_their_place(self, python: str, tmp_path: Path) -> None:
        body = """
def forward(self, x):
    return {"head": [{"boxes": x}, x + 1], "none": None}, (x * 2).to(torch.bfloat16), 3.5, x > 0, x.half()
"""
        with BACKEND.open(written(python, tmp_path, body)) as session:
            made = session.infer({"x": X}, sample="0000")
        assert_same(
            made,
            {
                "output.0.head.0.boxes": X,
                "output.0.head.1": X + 1,
                "output.1": 2 * X,
                "output.2": np.array(3.5, np.float32),
                "output.3": X > 0,
                "output.4": X.astype(np.float16),
            },
        )

    def test_a_dict_gives_its_keys(self, python: str, tmp_path: Path) -> None:
        body = "def forward(self, x):\n    return {'boxes': x, 'scores': {'raw': -x}}"
        with BACKEND.open(written(python, tmp_path, body)) as session:
            assert_same(session.infer({"x": X}, sample="0000"), {"boxes": X, "scores.raw": -X})

    def test_inputs_are_the_parameters_and_defaults_may_stay_away(self, python: str, tmp_path: Path) -> None:
        body = "def forward(self, x, /, y, mask=None, *, gain=None):\n    return x - y, mask, gain"
        feeds = {"y": X, "x": 3 * X}
        with BACKEND.open(written(python, tmp_path, body)) as session:
            assert [spec.name for spec in session.signature.inputs] == ["x", "y"]
            assert session.optional_inputs == ("mask", "gain")
            assert_same(session.infer(feeds, sample="0000"), {"output.0": 2 * X})
            made = session.infer({**feeds, "gain": X[0], "mask": X > 0}, sample="0001")
            assert_same(made, {"output.0": 2 * X, "output.1": X > 0, "output.2": X[0]})
            with pytest.raises(SampleError):
                session.infer({"x": X}, sample="0002")

    def test_nameless_inputs_are_refused(self, python: str, tmp_path: Path) -> None:
        error = refusal(written(python, tmp_path, "def forward(self, *tensors):\n    return tensors[0]"))
        assert error.problems[0].code == "torch-inputs-unnamed"

    @pytest.mark.parametrize(
        ("result", "code"),
        [("'text'", "torch-output-type"), ("{'a': {'b': x}, 'a.b': x}", "torch-output-twice")],
    )
    def test_outputs_that_cannot_be_told_apart_or_compared(
        self, result: str, code: str, python: str, tmp_path: Path
    ) -> None:
        artifact = written(python, tmp_path, f"def forward(self, x):\n    return {result}")
        with BACKEND.open(artifact) as session, pytest.raises(BackendError) as caught:
            session.infer({"x": X}, sample="0000")
        assert caught.value.problems[0].code == code
        assert_speaks(caught.value, "pytorch")

    def test_an_error_in_forward_is_told_with_its_line(self, python: str, tmp_path: Path) -> None:
        artifact = written(python, tmp_path, "def forward(self, x):\n    return x @ x")
        with BACKEND.open(artifact) as session, pytest.raises(BackendError) as caught:
            session.infer({"x": X}, sample="0000")
        assert_speaks(caught.value, "cannot be multiplied", "written.py")

    def test_numbers_are_held_still(self, python: str, tmp_path: Path) -> None:
        body = """
def forward(self, x):
    return {
        "training": torch.tensor(self.training),
        "gradients": torch.tensor(torch.is_grad_enabled()),
        "threads": torch.tensor(torch.get_num_threads()),
        "tf32": torch.tensor(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32),
        "benchmark": torch.tensor(torch.backends.cudnn.benchmark),
        "autocast": torch.tensor(torch.is_autocast_enabled()),
        "noise": torch.rand(4),
    }
"""
        with BACKEND.open(written(python, tmp_path, body, threads=2)) as session:
            first = session.infer({"x": X}, sample="0000")
            again = session.infer({"x": X}, sample="0001")
            environment = session.environment
        assert {name: tensor.item() for name, tensor in first.items() if name != "noise"} == {
            "training": False,
            "gradients": False,
            "threads": 2,
            "tf32": False,
            "benchmark": False,
            "autocast": False,
        }
        np.testing.assert_array_equal(first["noise"], again["noise"])
        assert (environment.provider, environment.level, environment.threads) == ("cpu", "eager", 2)
        assert {"python", "numpy", "torch"} == {name for name, _ in environment.versions}

    def test_a_device_that_is_not_there_is_named(self, python: str, tmp_path: Path) -> None:
        error = refusal(written(python, tmp_path, "def forward(self, x):\n    return x", device="cuda:7"))
        assert isinstance(error, BackendError)
        assert_speaks(error, "cuda:7")

    @pytest.mark.parametrize(
        ("load", "word"),
        [
            ("written:nothing", "nothing"),
            ("no_such_module:load", "no_such_module"),
            ("written:torch.nn.Module", "torch.nn.Module"),
            ("written:Net.__name__.upper", "Net"),
            ("sys:exit", "SystemExit"),
            ("builtins:dict", "dict"),
        ],
    )
    def test_a_load_that_makes_no_module_is_an_artifact_error(
        self, load: str, word: str, python: str, tmp_path: Path
    ) -> None:
        error = refusal(written(python, tmp_path, "def forward(self, x):\n    return x", load=load))
        assert isinstance(error, ArtifactError)
        assert_speaks(error, load, word)


class TestTaps:
    """Intermediate tensors by the names of modules."""

    BODY = """
def __init__(self):
    super().__init__()
    self.twice = torch.nn.Identity()
    self.body = torch.nn.Sequential(torch.nn.Identity(), torch.nn.ReLU(inplace=True))
    self.unused = torch.nn.Identity()

def forward(self, x):
    return self.twice(self.body(self.twice(x) * 1) + 1)
"""

    def test_a_tap_is_taken_before_later_operators_work_in_place(self, python: str, tmp_path: Path) -> None:
        with BACKEND.open(written(python, tmp_path, self.BODY), ["body.0", "body.1"]) as session:
            made = session.infer({"x": X}, sample="0000")
        positive = np.maximum(X, 0)
        assert_same(made, {"output": positive + 1, "body.0": X, "body.1": positive})

    def test_each_call_of_a_module_is_kept(self, python: str, tmp_path: Path) -> None:
        with BACKEND.open(written(python, tmp_path, self.BODY), ["twice"]) as session:
            for sample in ("0000", "0001"):
                made = session.infer({"x": X}, sample=sample)
                positive = np.maximum(X, 0)
                assert_same(made, {"output": positive + 1, "twice": X, "twice@2": positive + 1})

    def test_a_module_that_takes_no_part_is_named(self, python: str, tmp_path: Path) -> None:
        with BACKEND.open(written(python, tmp_path, self.BODY), ["unused"]) as session:
            with pytest.raises(BackendError) as caught:
                session.infer({"x": X}, sample="0000")
            assert_speaks(caught.value, "unused")


def test_a_module_with_memory_runs_like_its_onnx_twin(python: str, tmp_path: Path) -> None:
    body = """
def forward(self, x, state, gain):
    state = x + state
    return {"y": state * gain, "next_state": state}
"""
    x = np.random.default_rng(0).normal(size=(50, 1, 2)).astype(np.float32)
    feeds = {"x": x, "gain": np.array(2, np.float32)}
    state = {"next_state": "state"}
    save(accumulator(), tmp_path / "net.onnx")
    onnx = OnnxRuntimeBackend().open(Artifact("onnx", "onnxruntime", tmp_path / "net.onnx"))
    torch = BACKEND.open(written(python, tmp_path, body))
    with (
        StatefulSession(onnx, state, stage="onnx") as reference,
        StatefulSession(torch, state, stage="pytorch", like=onnx.signature.inputs) as candidate,
    ):
        assert_same(candidate.infer(feeds, sample="0000"), reference.infer(feeds, sample="0000"))


def test_nothing_is_left_in_the_temporary_folder(
    python: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    with BACKEND.open(loaded(python, project)) as session:
        session.infer({"x": X}, sample="0000")
        assert [*scratch.iterdir()]
    refusal(loaded(python, project, "other_keys.pth"))
    assert not [*scratch.iterdir()]
