"""Recordings made of what hrt_model_exec dumped: read by type, shape and stride of model_info, scaled as told there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from driftgate.backends.recorded import RecordedBackend
from driftgate.errors import ArtifactError
from driftgate.sessions import Artifact
from driftgate.transforms.strided import Layout, bytes_of
from support.commandline import call, rows
from support.models import answer, tiny
from support.project import Project, inputs

SCALE = 0.0123456


def model_info(*tensors: str) -> str:
    return "\n".join(["[model name]: net", *tensors]) + "\n"


def tensor(
    name: str, *, index: int = 0, shape: str = "(1,4)", dtype: str = "S32", stride: str = "(64,4)", scale: str = ""
) -> str:
    lines = [
        f"output[{index}]: ",
        f"name: {name}",
        f"valid shape: {shape}",
        "aligned byte size: 256",
        f"tensor type: HB_DNN_TENSOR_TYPE_{dtype}",
        f"quanti type: {'SCALE' if scale else 'NONE'}",
        f"stride: {stride}",
        *([f"scale data: ({scale})", "zero_point data: (0)"] if scale else []),
    ]
    return "\n".join(lines)


def dumped(folder: Path, sample: str, number: int, name: str, content: bytes) -> None:
    (folder / sample).mkdir(parents=True, exist_ok=True)
    (folder / sample / f"model_infer_output_{number}_{name}.bin").write_bytes(content)


def artifact(folder: Path, text: str) -> Artifact:
    (folder / "info.log").write_text(text)
    return Artifact("hbm", "recorded", folder / "dumps", {"model_info": str(folder / "info.log")})


def test_dumps_are_read_by_type_and_stride(tmp_path: Path) -> None:
    values = np.array([[1, -2, 300000, 4]], np.int32)
    dumped(tmp_path / "dumps", "a", 0, "_y", bytes_of(values, Layout("int32", (1, 4), (64, 4)), total_bytes=256))
    dumped(tmp_path / "dumps", "a", 1, "flag", np.array([[7.5, -1.0]], np.float32).tobytes())
    info = model_info(tensor("y", scale=str(SCALE)), tensor("flag", index=1, shape="(1,2)", dtype="F32"))
    with RecordedBackend().open(artifact(tmp_path, info)) as session:
        made = session.infer({}, sample="a")
        assert session.signature is not None
        y, flag = session.signature.outputs
    np.testing.assert_array_equal(made["y"], values)
    np.testing.assert_array_equal(made["flag"], [[7.5, -1.0]])
    assert y.quantization is not None
    assert y.quantization.scales == (SCALE,)
    assert flag.quantization is None


@pytest.mark.parametrize(
    ("text", "content", "said"),
    [
        (model_info(tensor("y", shape="(1,-1)")), b"", "only known when it runs"),
        (model_info(tensor("y", dtype="S4")), b"", "does not tell type"),
        (model_info(tensor("y", stride="(64,4)")).replace("quanti type: NONE\n", ""), b"", "does not tell type"),
        ("no model\n", b"", "hrt_model_exec"),
        (model_info(tensor("y")), b"\0" * 15, "15 bytes, wanted 16 bytes without padding"),
        (model_info(tensor("y"), tensor("z", index=1)), b"\0" * 256, "no model_infer_output_1_"),
    ],
)
def test_dumps_that_are_not_as_described_are_said(text: str, content: bytes, said: str, tmp_path: Path) -> None:
    dumped(tmp_path / "dumps", "a", 0, "y", content)
    with pytest.raises(ArtifactError, match=said):
        RecordedBackend().open(artifact(tmp_path, text))


def test_a_folder_without_dumps_is_said(tmp_path: Path) -> None:
    (tmp_path / "dumps" / "a").mkdir(parents=True)
    with pytest.raises(ArtifactError, match="one folder of hrt_model_exec's dumps for each sample"):
        RecordedBackend().open(artifact(tmp_path, model_info(tensor("y"))))


def test_the_digest_depends_on_the_dumps_and_on_what_is_told_of_them(tmp_path: Path) -> None:
    dumped(tmp_path / "dumps", "a", 0, "y", bytes(256))
    first = RecordedBackend().digest(artifact(tmp_path, model_info(tensor("y"))))
    second = RecordedBackend().digest(artifact(tmp_path, model_info(tensor("y", scale="0.5"))))
    dumped(tmp_path / "dumps", "a", 0, "y", b"\1" + bytes(255))
    third = RecordedBackend().digest(artifact(tmp_path, model_info(tensor("y", scale="0.5"))))
    assert len({first, second, third}) == 3


@pytest.mark.parametrize(("off", "code", "outcome"), [(0, 0, "passed"), (1, 1, "failed")])
def test_integers_of_both_sides_are_compared_as_such_though_the_board_prints_six_digits(
    off: int, code: int, outcome: str, tmp_path: Path
) -> None:
    x, exact = inputs(3), 0.0123456789
    project = Project(tmp_path)
    integers = np.rint(answer(x) / exact).astype(np.int32)
    for number, row in enumerate(integers):
        changed = row[None] + np.array([[off] + [0] * (row.size - 1)], np.int32)
        layout = Layout("int32", changed.shape, (64, 4))
        dumped(tmp_path / "dumps", f"{number:04}", 0, "y", bytes_of(changed, layout, total_bytes=256))
    shape = f"(1,{integers.shape[1]})"
    (tmp_path / "info.log").write_text(model_info(tensor("y", shape=shape, scale=f"{exact:.6g}")))
    project.subject = {
        "artifacts": {
            "onnx": project.onnx("net.onnx", tiny()),
            "quantized": project.npz("bc.npz", y=integers),
            "hbm": {"backend": "recorded", "path": "dumps", "model-info": "info.log"},
        },
        "samples": {"raw": project.npz("eval.npz", x=x)},
    }
    project.signature("bc.signature.json", y={"scales": [exact], "zero_points": [0], "axis": None})
    told = call("check", "-c", project.write(), "--out", tmp_path / "out")
    assert told.code == code, told.out + told.err
    assert rows(tmp_path / "out")["bc-hbm"] == outcome
