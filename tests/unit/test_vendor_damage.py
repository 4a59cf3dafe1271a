"""Every reader of the vendor's files on damaged, changed and foreign text: right values, fewer of them, or an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftgate.domain.toolchain.board import BoardModels
from driftgate.errors import ArtifactError
from driftgate.vendor.advice import read_advice
from driftgate.vendor.analyzer import read_analysis
from driftgate.vendor.compile_log import read_compile_log
from driftgate.vendor.exec_infer import read_inference
from driftgate.vendor.exec_info import read_model_tensors
from driftgate.vendor.exec_perf import read_board_perf
from driftgate.vendor.faults import read_faults
from driftgate.vendor.files import MOST_BYTES, read_text
from driftgate.vendor.model_info import read_model_info
from driftgate.vendor.node_info import read_node_info
from driftgate.vendor.perf import read_perf
from driftgate.vendor.quant_info import read_quant_info
from driftgate.vendor.quantanalysis import read_layers, read_sensitive_operators, read_statistics
from driftgate.vendor.runtime_query import read_input_info, read_runtime_query
from driftgate.vendor.sensitivity import read_sensitivity
from driftgate.vendor.verifier import read_verifier
from unit.test_vendor_samples import SAMPLES, is_part, told

SHARED = Path(__file__).parents[3] / "shared" / "vendor-logs"
READERS: dict[str, Callable[[Path], object]] = {
    "advice": read_advice,
    "analysis": read_analysis,
    "compile-log": read_compile_log,
    "inference": read_inference,
    "model-tensors": read_model_tensors,
    "board-perf": read_board_perf,
    "model-info": read_model_info,
    "node-info": read_node_info,
    "perf": read_perf,
    "quant-info": read_quant_info,
    "layers": read_layers,
    "sensitive-operators": read_sensitive_operators,
    "statistic": read_statistics,
    "input-info": read_input_info,
    "runtime-query": read_runtime_query,
    "sensitivity": read_sensitivity,
    "verifier": read_verifier,
}
LINED = {name: sample for name, sample in SAMPLES.items() if sample.lines}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_cut_at_any_place_says_less_and_nothing_else(name: str) -> None:
    sample = SAMPLES[name]
    whole = told(sample.text, sample.parse)
    ends = range(0, len(sample.text), 3 if len(sample.text) > 4000 else 1)
    wrong = [end for end in ends if not is_part(told(sample.text[:end], sample.parse), whole)]
    assert wrong == [], sample.text[: wrong[0]][-200:]


@pytest.mark.parametrize("name", LINED)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "".join(f"\x1b[32m{line}\x1b[0m\n" for line in text.split("\n")[:-1]),
        lambda text: text.replace("\n", "\nworking  50%\rworking 100%\r", 1),
        lambda text: f"$ some command\n{text}\n$ another\n" if not text.startswith(("Node,", "op,")) else text,
    ],
    ids=["crlf", "mark", "colours", "progress", "shell"],
)
def test_the_form_of_lines_changes_no_value(name: str, change: Callable[[str], str]) -> None:
    sample = LINED[name]
    assert sample.parse(change(sample.text).removeprefix("\ufeff")) == sample.parse(sample.text)


def in_order(value: object) -> object:
    """Tensors by name: without the list of their names they come as they are printed."""
    if isinstance(value, BoardModels):
        models = (
            replace(model, tensors=tuple(sorted(model.tensors, key=lambda tensor: tensor.name or "")))
            for model in value.models
        )
        return replace(value, models=tuple(models))
    return value


@pytest.mark.parametrize("name", LINED)
def test_a_line_that_is_left_out_takes_its_own_values_with_it(name: str) -> None:
    """No other value may move into its place."""
    sample = LINED[name]
    ordered = in_order if name == "runtime-query" else lambda value: value
    whole = ordered(told(sample.text, sample.parse))
    lines = sample.text.split("\n")
    for at in range(len(lines)):
        if lines[at] == "op,problem":
            continue  # the header of a table of unknown columns
        found = ordered(told("\n".join([*lines[:at], *lines[at + 1 :]]), sample.parse))
        assert is_part(found, whole, gaps=True), lines[at]


@pytest.mark.parametrize("name", SAMPLES)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_noise_anywhere_ends_in_values_or_an_error(name: str, data: st.DataObject) -> None:
    sample = SAMPLES[name]
    start = data.draw(st.integers(0, len(sample.text)))
    end = data.draw(st.integers(start, min(len(sample.text), start + 200)))
    alphabet = st.sampled_from("|+-=#*:;,()[]{}'\" \n\r\t\x1b[0m\0.eE019ax/\ufeff\ud800é")
    noise = data.draw(st.text(alphabet=alphabet, max_size=40))
    told(sample.text[:start] + noise + sample.text[end:], sample.parse)


@pytest.mark.parametrize("reader", READERS)
@settings(deadline=None, max_examples=40)
@given(content=st.binary(max_size=300))
def test_random_bytes_are_no_such_file(reader: str, content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / f"{reader}.bin"
    path.write_bytes(content)
    try:
        READERS[reader](path)
    except ArtifactError as error:
        assert str(path) in str(error)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", b"hello\n", b"{}", b"[]", b"null", b"[" * 100_000, b'{"a":' * 100_000, b'{"summary": {"FPS": NaN}}'],
    ids=["empty", "blank", "prose", "object", "list", "null", "deep-list", "deep-object", "nan"],
)
def test_what_is_something_else_is_said(reader: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "it.bin"
    path.write_bytes(content)
    if reader == "advice" and content in (b"{}", b"[]", b'{"summary": {"FPS": NaN}}'):
        return  # its form is not published: any list or object is one
    with pytest.raises(ArtifactError, match=r"it\.bin"):
        READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
def test_no_file_and_a_folder_are_said(reader: str, tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(ArtifactError, match="cannot be read"):
            READERS[reader](path)


def test_a_file_beyond_all_measure_is_not_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "large.log"
    with path.open("wb") as stream:
        stream.truncate(MOST_BYTES + 1)
    with pytest.raises(ArtifactError, match="larger than 64 MB"):
        read_text(path)


def test_a_log_that_windows_redirected_is_read(tmp_path: Path) -> None:
    path = tmp_path / "perf.log"
    path.write_bytes(SAMPLES["board-perf"].text.replace("\n", "\r\n").encode("utf-16"))
    assert read_board_perf(path) == SAMPLES["board-perf"].parse(SAMPLES["board-perf"].text)


def test_half_a_character_in_json_can_be_written_again(tmp_path: Path) -> None:
    path = tmp_path / "quant_info.json"
    path.write_text('{"/\\ud800/Conv": {"thresholds": [[1.0]]}}', "utf-8")
    read_quant_info(path).nodes[0].node.encode("utf-8")


def test_long_lines_do_not_take_long() -> None:
    for line in (" " * 200_000, "a " * 100_000, "| " * 100_000, "-" * 200_000, "(1," * 60_000, ": (" * 60_000):
        for sample in SAMPLES.values():
            told(f"{line}x\n{line}", sample.parse)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the vendor's real output is not here")
@pytest.mark.parametrize("reader", READERS)
def test_real_output_of_another_tool_is_an_error_or_has_such_a_part(reader: str) -> None:
    for path in sorted(SHARED.iterdir()):
        try:
            READERS[reader](path)
        except ArtifactError as error:
            assert path.name in str(error)
        else:
            assert any(path.match(pattern) for pattern in ACCEPTED[reader]), path.name
        read_faults(path)


ACCEPTED: dict[str, tuple[str, ...]] = {
    "advice": ("*.json", "*.csv"),  # its form is not published
    "analysis": (),
    "compile-log": ("hb_compile*.log",),
    "inference": ("hrt_model_exec-infer*",),
    "model-tensors": ("hrt_model_exec-model_info*",),
    "board-perf": ("hrt_model_exec-perf*",),
    "model-info": ("hb_model_info*", "hb_compile*"),
    "node-info": ("node_info.csv", "hb_compile-full*", "hb_compile-ondisk*"),
    "perf": (),
    "quant-info": (),
    "layers": ("*compare_per_layer*",),
    "sensitive-operators": ("*sensitive_ops*",),
    "statistic": ("*statistic*",),
    "input-info": ("*get_input_info*",),
    "runtime-query": ("hbm_runtime*",),
    "sensitivity": (),
    "verifier": ("hb_verifier*",),
}
REAL = {
    "hb_compile-full.log": (read_compile_log, 211),
    "hb_compile-ondisk-3.3.11-excerpt.log": (read_compile_log, 89),
    "hb_model_info-bc-3.3.11.log": (read_model_info, 7),
    "hb_verifier-cosine-int8.log": (read_verifier, 7),
    "hrt_model_exec-infer.log": (read_inference, 7),
    "hrt_model_exec-model_info-ucp3.3.3-trailing-comma.log": (read_model_tensors, 17),
    "hrt_model_exec-model_info-ucp3.7.4-s100.log": (read_model_tensors, 17),
    "hrt_model_exec-perf-ucp3.3.3-s100.log": (read_board_perf, 3),
    "hbm_runtime-query-ucp3.13.6-s600.log": (read_runtime_query, 7),
    "node_info.csv": (read_node_info, 7),
    "quantanalysis-compare_per_layer_out.txt": (read_layers, 17),
    "quantanalysis-statistic.txt": (read_statistics, 17),
    "quantanalysis-sensitive_ops.txt": (read_sensitive_operators, 3),
}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the vendor's real output is not here")
@pytest.mark.parametrize("name", REAL)
def test_real_output_that_is_cut_says_less_and_nothing_else(name: str, tmp_path: Path) -> None:
    read, step = REAL[name]
    data = (SHARED / name).read_bytes()
    whole = read(SHARED / name)
    path = tmp_path / name
    for end in range(0, len(data), step):
        path.write_bytes(data[:end])
        try:
            found = read(path)
        except ArtifactError:
            continue
        assert is_part(found, whole), data[:end][-200:]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the vendor's real output is not here")
@pytest.mark.parametrize("name", REAL)
def test_real_output_that_lacks_a_line_says_less_and_nothing_else(name: str, tmp_path: Path) -> None:
    read, _ = REAL[name]
    lines = (SHARED / name).read_bytes().split(b"\n")
    ordered = in_order if name.startswith("hbm_runtime") else lambda value: value
    whole = ordered(read(SHARED / name))
    path = tmp_path / name
    for at in range(0, len(lines), 1 if len(lines) < 150 else 3):
        path.write_bytes(b"\n".join([*lines[:at], *lines[at + 1 :]]))
        try:
            found = ordered(read(path))
        except ArtifactError:
            continue
        assert is_part(found, whole, gaps=True), lines[at]
