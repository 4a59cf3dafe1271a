"""STAND-IN for hrt_model_exec on a board: model_info, infer and perf in the layout of UCP 3.15.8 (facts §7).

STAND_IN_MARCH or HB_UCP_SIM_PLATFORM_TYPE is the march of the platform (the model's own where neither is set; the
latter is the x86 simulator, which has no BPU monitor); STAND_IN_HBRT the version of its runtime. STAND_IN_FAULT: die,
hang, silent, garbage, memory.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from support.vendor.files import Network, TensorTold, read
from support.vendor.layouts import chosen, padded_bytes, view
from support.vendor.running import Runner, dequantised

Array = np.ndarray[Any, Any]
UCP = "3.15.8"
RULE = "-" * 69
FRAME = "-" * 21
#: Frames that perf really runs, and lines that it prints at most.
MEASURED, MOST_TICKS = 10, 20
FRAMES_A_TICK = 200
CORES = {"nash-h": 3, "nash-p": 4}
MADE_UP = (
    "\n [Warning]: These operators have range limitations on input data:\n"
    " [Acos, Acosh, Asin, Atanh, BevPoolV2, Div, Gather, GatherElements, GatherND, GridSample, ImageDecoder,"
    " IndexSelect, Log, Mod, Pow, Reciprocal, RoiAlign, ScatterElements, ScatterND, Slice, Sqrt, Tan, Tile, Topk,"
    " Upsample].\n"
    " Please make sure that these operators are not in your model, when no input data is provided to the tool.\n"
    " [Suggestion]: Using --input_file command to specify perf input data, which can appoint valid input data.\n"
)


class BoardError(Exception):
    """What ends a run; its text is what is printed."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A loaded network with its inputs as they lie in memory."""

    runner: Runner
    inputs: tuple[TensorTold, ...]
    buffers: tuple[Array, ...]

    def outputs(self) -> dict[str, Array]:
        """What the network makes of them."""
        feeds = zip(self.inputs, self.buffers, strict=True)
        return self.runner.run({told.name: view(buffer, told).copy() for told, buffer in feeds})


def main(arguments: Sequence[str] | None = None) -> int:
    """One call of the tool; 1 where it fails."""
    asked = _parser().parse_args(arguments)
    fault = os.environ.get("STAND_IN_FAULT", "")
    if fault == "die":
        os._exit(3)
    if fault == "hang":
        time.sleep(600)
    if fault == "silent":
        return 0
    if fault == "garbage":
        sys.stdout.buffer.write(bytes(range(128, 256)) * 4 + b"\n\0\0model_in[0]; shape ???\n")
        return 0
    try:
        for line in _greeting():
            print(line)
        if asked.command is None:
            raise BoardError("[E] no sub-command: model_info, infer or perf")
        COMMANDS[asked.command](asked, _loaded(Path(asked.model_file), fault))
    except BoardError as error:
        print(error, flush=True)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hrt_model_exec")
    parser.add_argument("-v", "--version", action="version", version=f"hrt_model_exec version: {UCP}")
    parser.add_argument("command", nargs="?", choices=("model_info", "infer", "perf"))
    for name in ("model_file", "model_name", "input_file", "input_valid_shape", "input_stride", "profile_path"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--core_id", default="0")
    parser.add_argument("--dump_path", default="./")
    parser.add_argument("--dump_format", choices=("bin", "txt"), default="bin")
    parser.add_argument("--dump_precision", type=int, default=9)
    for name in ("enable_dump", "dequantize_process", "remove_padding_process"):
        parser.add_argument(f"--{name}", type=_switch, nargs="?", const=True, default=False)
    for name in ("enable_warmup", "enable_mem_lru"):
        parser.add_argument(f"--{name}", type=_switch, nargs="?", const=True, default=True)
    defaults = {"frame_count": 200, "thread_num": 1, "perf_time": 0, "perf_time_in_seconds": 0, "statistic_cycle": 0}
    for name, default in {**defaults, "task_priority": 0, "task_timeout": 0, "log_level": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser


def _switch(text: str) -> bool:
    return text.lower() in ("true", "1")


def _greeting() -> Iterator[str]:
    yield from ("[UCP]: log level = 3", f"[UCP]: UCP version = {UCP}", "[VP]: log level = 3", "[DNN]: log level = 3")
    yield from ("[HPL]: log level = 3", "[UCPT]: log level = 6", " ".join(("hrt_model_exec", *sys.argv[1:])))
    if "HB_UCP_SIM_PLATFORM_TYPE" not in os.environ:
        yield f"[BPU][[BPU_MONITOR]][{os.getpid()}][INFO]BPULib verison(2, 1, 2)[0d3f195]!"


def _info(text: str, place: str) -> None:
    """A line of the tool's logger."""
    now = f"{datetime.datetime.now():%m-%d][%H:%M:%S:%f}"[:-3]
    print(f"[I][{os.getpid()}][{now}][{place}][hrt_model_exec][HRT_MODEL_EXEC] {text}")


def _loaded(path: Path, fault: str) -> tuple[Network, ...]:
    """The networks of a file, once march and version have been found to fit. Raises BoardError."""
    runtime = os.environ.get("STAND_IN_HBRT", "4.11.11")
    print(f"[DNN]: {UCP}_({runtime} HBRT)")
    start = time.perf_counter()
    try:
        networks = read(path)
    except OSError as error:
        raise BoardError(f"[E] open file {path} failed, error code: -500001") from error
    except RuntimeError as error:
        raise BoardError(f"[E] {path} is no model, error code: -600002") from error
    march, version = networks[0].march, str(networks[0].told.get("version", runtime))
    platform = os.environ.get("STAND_IN_MARCH") or os.environ.get("HB_UCP_SIM_PLATFORM_TYPE") or march
    if march is not None and platform != march:
        raise BoardError(
            f"Model march incompatible! model march: {march}, platform march: {platform}\n"
            "[E] hbDNNInitializeFromFiles failed, error code: -600004"
        )
    if _minor(version) > _minor(runtime):
        raise BoardError(
            f"  hbrt4_loader/src/hbm4/parsing.rs:145: Cannot load hbm of version {version}, "
            f"the runtime's version is {runtime}\n"
            f'    {{ filename: "{path}" }}\n'
            "  -> HBRT4_STATUS_INVALID_ARGUMENT\n"
            "[E] hbDNNInitializeFromFiles failed, error code: -600002"
        )
    if fault == "memory":
        raise BoardError(
            "  hbrt4_mem/src/unified.rs:156: Cannot malloc bpu memory with length 5703561320 bytes\n"
            "    { len: 5704908800 }\n"
            "  Fail to do ION_IOC_ALLOC(ret=Cannot allocate memory)!\n"
            "  -> HBRT4_STATUS_RESOURCE_EXHAUSTED\n"
            f"[E] file {path} may be corrupted, error code: -400001"
        )
    print(f"Load model to DDR cost {1000 * (time.perf_counter() - start):.6g}ms.")
    return networks


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _tuple(values: Sequence[object]) -> str:
    return f"({','.join(map(str, values))})"


def model_info(asked: argparse.Namespace, networks: Sequence[Network]) -> None:
    """The tensors of all networks, or of the one that was asked for."""
    print(f"This model file has {len(networks)} model{'s' if len(networks) > 1 else ''}:")
    print(f"[{','.join(network.name for network in networks)}]")
    print(RULE)
    for network in networks:
        if asked.model_name not in ("", network.name):
            continue
        print(f"[model name]: {network.name}\n\n[model desc]: {json.dumps(network.desc, ensure_ascii=False)}")
        runner = Runner(network)
        for side, tensors in (("input", runner.inputs), ("output", runner.outputs)):
            for at, tensor in enumerate(tensors):
                print("\n".join(_described(f"{side}[{at}]: ", tensor)), end="\n\n")
        print(RULE)


def _described(head: str, tensor: TensorTold) -> Iterator[str]:
    yield head
    yield f"name: {tensor.name}"
    yield f"valid shape: {_tuple(tensor.shape)}"
    yield f"aligned byte size: {tensor.aligned_bytes}"
    yield f"tensor type: HB_DNN_TENSOR_TYPE_{tensor.dtype}"
    yield f"quanti type: {'SCALE' if tensor.scales else 'NONE'}"
    yield f"stride: {_tuple(tensor.stride)}"
    if tensor.scales:
        yield f"scale data: {_tuple([f'{scale:.6g}' for scale in tensor.scales])}"
        if len(tensor.scales) > 1:
            yield f"quantizeAxis: {tensor.axis}"
        yield f"zero_point data: {_tuple(tensor.zero_points)}"


def _chosen_network(asked: argparse.Namespace, networks: Sequence[Network]) -> Runner:
    march = networks[0].march or ""
    if not all(core.isdigit() and int(core) <= CORES.get(march, 1) for core in asked.core_id.split(",")):
        raise BoardError(f"[E] core_id {asked.core_id} is invalid, error code: -100001")
    names = [network.name for network in networks]
    if asked.model_name and asked.model_name not in names:
        raise BoardError(f"[E] model_name {asked.model_name} is not in {names}, error code: -100001")
    if not asked.model_name and len(networks) > 1:
        raise BoardError(f"[E] model_name is required, the file has {names}, error code: -100001")
    return Runner(next(network for network in networks if asked.model_name in ("", network.name)))


def _strided(asked: argparse.Namespace, runner: Runner) -> Iterator[TensorTold]:
    """The inputs with strides that are all known, given or chosen by the tool."""
    march = runner.network.march or ""
    given = [one for one in asked.input_stride.split(";") if one]
    for at, tensor in enumerate(runner.inputs):
        if -1 not in tensor.stride:
            yield tensor
        elif at < len(given):
            stride = tuple(int(item) for item in given[at].strip("()").split(","))
            least = chosen(tensor, march).stride
            if len(stride) != len(least) or any(a < b for a, b in zip(stride, least, strict=True)):
                raise BoardError(f"[E] Input[{at}] stride {_tuple(stride)} is invalid, error code: -100001")
            yield replace(tensor, stride=stride, aligned_bytes=stride[0] * tensor.shape[0])
        else:
            made = chosen(tensor, march)
            said = f"Input[{at}] stride is dynamic, but you did not specify the stride, set as {_tuple(made.stride)}"
            _info(said, "tensor_util.cpp:293")
            yield made


def _frame(asked: argparse.Namespace, networks: Sequence[Network]) -> Frame:
    """The network and what was read into its inputs; without files zeros. Raises BoardError."""
    runner = _chosen_network(asked, networks)
    paths = [path for path in asked.input_file.split(",") if path]
    if paths and len(paths) != len(runner.inputs):
        raise BoardError(f"[E] input_file has {len(paths)} files, the model {len(runner.inputs)} inputs, code: -100001")
    inputs = tuple(_strided(asked, runner))
    if not paths:
        return Frame(runner, inputs, tuple(padded_bytes(np.zeros(told.shape, told.kind), told) for told in inputs))
    return Frame(runner, inputs, tuple(map(_buffer, paths, inputs)))


def _buffer(path: str, tensor: TensorTold) -> Array:
    """The file as it lies in memory: padded if it has the valid size, as it is if it has the aligned one."""
    try:
        if path.endswith(".txt"):
            data: Array = np.array(Path(path).read_text().split(), tensor.kind).view(np.uint8)
        elif path.endswith(".bin"):
            data = np.fromfile(path, np.uint8)
        else:
            raise BoardError(f"[E] input file {path} is neither bin nor txt, error code: -100001")
    except (OSError, ValueError) as error:
        raise BoardError(f"[E] read file {path} failed, error code: -500001") from error
    _info(f"read file {path} length: {data.size}", "file_util.cpp:128")
    if data.size == tensor.aligned_bytes:
        return data
    if data.size != tensor.valid_bytes:
        raise BoardError(
            f"[E] file {path} length {data.size} is neither valid byte size {tensor.valid_bytes} nor aligned byte size "
            f"{tensor.aligned_bytes}, error code: -100001"
        )
    said = f"Input [{path}] will padding, validShape: {_tuple(tensor.shape)}, stride: {_tuple(tensor.stride)}"
    _info(said, "file_util.cpp:155")
    return padded_bytes(data.view(tensor.kind).reshape(tensor.shape), tensor)


def infer(asked: argparse.Namespace, networks: Sequence[Network]) -> None:
    """One frame, and dumps of its inputs and outputs."""
    if not asked.input_file:
        raise BoardError("[E] input_file is required, error code: -100001")
    frame = _frame(asked, networks)
    start = time.perf_counter()
    outputs = frame.outputs()
    spent = 1000 * (time.perf_counter() - start)
    print(f"\n{FRAME}Frame 0 begin{FRAME}\nInfer time: {spent:.6g} ms\n{FRAME}Frame 0 end{FRAME}")
    if not asked.enable_dump:
        return
    folder = Path(asked.dump_path)
    folder.mkdir(parents=True, exist_ok=True)
    for at, (told, buffer) in enumerate(zip(frame.inputs, frame.buffers, strict=True)):
        _dump(asked, folder / f"model_infer_input_{at}_{told.name}", buffer, told.kind)
    for at, told in enumerate(frame.runner.outputs):
        made = outputs[told.name]
        if asked.dequantize_process and told.scales:
            made, told = dequantised(told, made), _as_floats(told)
        buffer = np.ascontiguousarray(made) if asked.remove_padding_process else padded_bytes(made, told)
        _dump(asked, folder / f"model_infer_output_{at}_{told.name}", buffer, told.kind)


def _as_floats(told: TensorTold) -> TensorTold:
    """The tensor behind its dequantisation: the same elements in the padding, four bytes each."""
    grown = 4 // told.kind.itemsize
    stride = tuple(step * grown for step in told.stride)
    return replace(told, dtype="F32", stride=stride, aligned_bytes=told.aligned_bytes * grown, scales=())


def _dump(asked: argparse.Namespace, path: Path, buffer: Array, kind: np.dtype[Any]) -> None:
    """The elements of a buffer, its padding among them."""
    path = path.with_name(f"{path.name.replace('/', '_')}.{asked.dump_format}")
    content = np.ascontiguousarray(buffer).reshape(-1).view(np.uint8)
    if asked.dump_format == "bin":
        path.write_bytes(content.tobytes())
    else:
        form = f"%.{asked.dump_precision}g" if kind.kind == "f" else "%d"
        np.savetxt(path, content[: content.size // kind.itemsize * kind.itemsize].view(kind), form)
    _info(f"Dump path: {asked.dump_path.rstrip('/')}/{path.name}", "function_util.cpp:1156")


def perf(asked: argparse.Namespace, networks: Sequence[Network]) -> None:
    """Latencies of some frames that are run, told for all that were asked for."""
    if not asked.input_file:
        print(MADE_UP)
    frame = _frame(asked, networks)
    frame.outputs()
    spent = []
    for _ in range(min(MEASURED, max(1, asked.frame_count))):
        start = time.perf_counter()
        frame.outputs()
        spent.append(1000 * (time.perf_counter() - start))
    average = float(np.mean(spent))
    seconds = asked.perf_time_in_seconds or 60 * asked.perf_time
    frames = max(1, int(1000 * seconds * asked.thread_num / average)) if seconds else asked.frame_count
    total = frames * average
    run = total / asked.thread_num
    rate = 1000 * frames / run
    for tick in list(range(FRAMES_A_TICK, frames + 1, FRAMES_A_TICK))[:MOST_TICKS]:
        print(
            f"Frame count: {tick},  Thread Average: {average:.6f} ms,  thread max latency: {max(spent):.6f} ms,  "
            f"thread min latency: {min(spent):.6f} ms,  FPS: {rate:.6f}"
        )
    print(
        f"\nRunning condition:\n  Thread number is: {asked.thread_num}\n  Frame count   is: {frames}\n"
        f"  Program run time: {run:.3f} ms\nPerf result:\n  Frame totally latency is: {total:.3f} ms\n"
        f"  Average    latency    is: {average:.3f} ms\n  Frame      rate       is: {rate:.3f} FPS"
    )
    if asked.profile_path:
        condition = {
            "core_id": int(asked.core_id.split(",")[0]),
            "frame_count": frames,
            "model_name": frame.runner.network.name,
            "run_time": round(run, 3),
            "thread_num": asked.thread_num,
        }
        _profile(Path(asked.profile_path), condition, average, max(spent), min(spent))


def _profile(folder: Path, condition: Mapping[str, Any], average: float, longest: float, shortest: float) -> None:
    """profiler.log with its two JSON blocks, and profiler.csv; milliseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    times = {"avg_time": round(average, 3), "max_time": round(longest, 3), "min_time": round(shortest, 3)}
    rate = 1000 * condition["frame_count"] / condition["run_time"]
    result = {
        "perf_result": {"FPS": round(rate, 3), "average_latency": round(average, 3)},
        "running_condition": condition,
    }
    detail = {
        "model_latency": {f"BPU_{condition['model_name']}": times},
        "processor_latency": {
            "BPU_inference_time_cost": times,
            "CPU_inference_time_cost": dict.fromkeys(times, 0.0),
        },
        "task_latency": {"TaskRunningTime": times},
    }
    blocks = [f"ucp_version: {UCP}", json.dumps(result, indent=2), "*" * 60, json.dumps(detail, indent=2)]
    (folder / "profiler.log").write_text("\n".join(blocks) + "\n")
    rows = [("name", *times), *((name, *entry.values()) for name, entry in detail["processor_latency"].items())]
    (folder / "profiler.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


COMMANDS = {"model_info": model_info, "infer": infer, "perf": perf}
