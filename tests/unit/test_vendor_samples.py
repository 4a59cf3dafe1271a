"""Samples of what the vendor's tools write, of our own and in their form, and what each reader must find in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass

import pytest

from driftgate.errors import ArtifactError
from driftgate.vendor.advice import parse_advice, parse_advice_csv
from driftgate.vendor.analyzer import parse_analysis
from driftgate.vendor.compile_log import parse_compile_log
from driftgate.vendor.exec_infer import parse_inference
from driftgate.vendor.exec_info import parse_model_tensors
from driftgate.vendor.exec_perf import parse_board_perf
from driftgate.vendor.model_info import parse_model_info
from driftgate.vendor.node_info import parse_node_info
from driftgate.vendor.perf import parse_perf
from driftgate.vendor.quant_info import parse_quant_info
from driftgate.vendor.quantanalysis import parse_layers, parse_sensitive_operators, parse_statistics
from driftgate.vendor.runtime_query import parse_input_info, parse_runtime_query
from driftgate.vendor.sensitivity import parse_sensitivity
from driftgate.vendor.verifier import parse_verifier

STAMP = "2026-11-02 08:01:02,345 "
INFO, WARNING = f"{STAMP}\x1b[92mINFO\x1b[0m ", f"{STAMP}\x1b[93mWARNING\x1b[0m "
ON_DISK = f"{STAMP}file: some_part.py func: some_part line No: 12 "


def bars(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], border: bool = True) -> list[str]:
    widths = [max(len(row[k]) for row in [columns, *rows]) for k in range(len(columns))]
    edge = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [
        "|" + "|".join(f" {cell.ljust(width)} " for cell, width in zip(row, widths, strict=True)) + "|"
        for row in [columns, *rows]
    ]
    return [edge, lines[0], edge, *lines[1:], edge] if border else lines


def ruled(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], gap: str = " ") -> list[str]:
    widths = [max(len(row[k]) for row in [columns, *rows]) for k in range(len(columns))]
    lines = [
        gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [columns, *rows]
    ]
    return [lines[0], gap.join("-" * width for width in widths), *lines[1:]]


NODE_COLUMNS = (
    "Node",
    "NodeType",
    "ON",
    "Threshold",
    "Calibrated Cosine",
    "Quantized Cosine",
    "Output Data Type",
)
NODES = [
    ("/stem/Conv", "Conv", "BPU", "3.25", "0.999812", "0.998731", "si8"),
    ("/stem/Relu", "Relu", "BPU", "fused", "0.999815", "0.998744", "si8"),
    ("/mid/Softmax", "Softmax", "VPU+BPU", "1.0", "0.981503", "0.940021", "f32"),
    ("/mid/Add+/mid/Mul", "Add", "NULL", "1.0", "0.98", "--", "si16"),
    ("/head/Gather", "Gather", "CPU", "--", "1.000004", "--", "si64"),
    ("/head/Out", "Reshape", "BPU", "0.5", "0.999", "0.998", "f32,si16"),
]
OUTPUTS = [("boxes", "0.999001", "0.998002"), ("scores", "0.998", "0.997")]
TENSORS = [
    ("data_y", "input", "[1, 64, 96, 1]", "UINT8"),
    ("data_uv", "input", "[1, 32, 48, 2]", "UINT8"),
    ("boxes", "output", "[1, 10, 4]", "FLOAT32"),
    ("scores", "output", "[1, -9223372036854775808]", "INT32"),
]
TENSOR_COLUMNS = ("NAME", "TYPE", "SHAPE", "DATA_TYPE")
REMOVABLE = [("/head/Out", "Dequantize"), ("data_q", "Quantize")]


def logged(lines: list[str], prefix: str = INFO) -> str:
    return "".join(f"{prefix}{line}\n" for line in lines)


def banner(title: str) -> str:
    return f"############# {title} #############"


INPUT_BLOCK = [
    "---------input info : data ---------",
    "input_name          : data",
    "input_type_rt       : nv12",
    "input_space&range   : bt601_video",
    "input_type_train    : bgr",
    "input_layout_train  : NCHW",
    "norm_type           : data_mean_and_scale",
    "input_shape         : 1x3x64x96",
    "mean_value          : [103.5, 116.25, 123.75]",
    "scale_value         : [0.0078125]",
    "std_value           : []",
    "separate_batch      : True",
    "---------input info : data end -------",
]
BLOCKS = [
    banner("model deps info"),
    "builder version     : 3.4.1",
    "hbdk version        : 4.9.2",
    "hmct version        : 2.7.0",
    banner("model_parameters info"),
    "BPU march           : nash-m",
    "output_model_file_prefix: net",
    banner("input_parameters info"),
    *INPUT_BLOCK,
    banner("calibration_parameters info"),
    "calibration_type    : default",
    "cal_data_dir        : /cal/data;/cal/other",
    banner("compiler_parameters info"),
    "extra_params        : {'input_no_padding': True, 'output_no_padding': False}",
    banner("memory info"),
    "input memory        : 9216",
    "static memory       : 500000",
    "min memory requirement: 509216",
]
TENSOR_BLOCK = [banner("Model input/output info"), *ruled(TENSOR_COLUMNS, TENSORS)]

COMPILE_LOG = (
    logged(
        [
            "Start hb_compile...",
            "hbdk version: 4.9.2",
            "hmct version: 2.7.0",
            "hb_compile version: 3.4.1",
            "Start verifying yaml",
        ]
    )
    + f"{WARNING}Something about a key is old\n"
    + logged(
        [
            "End verifying yaml",
            "Processing calibration set data for input[data]",
            "First calibration picture name: /cal/data/0.npy",
            f"First calibration picture md5: {'0123456789abcdef' * 2}",
            "Finished. data num: 24",
            "Start to prepare the onnx model.",
            "Input ONNX Model Information:",
        ]
    )
    + "IR Version:               9\n"
    "Opset Version:            ['ai.onnx v18', 'horizon v1']\n"
    "Model Producer:           pytorch v2.5.1\n"
    "Graph Input:\n"
    "    data                : shape=[1, 3, 64, 96], dtype=FLOAT32\n"
    "Graph Output:\n"
    "    boxes               : shape=[1, 10, 4], dtype=FLOAT32\n"
    "    ...scores           : shape=[1, 10], dtype=FLOAT32\n"
    + logged(
        [
            "The input model's opset version is 18, try to convert to opset version of 19.",
            "End to prepare the onnx model.",
            "Saving model to: /out/net_original_float_model.onnx.",
            "The activation calibration configuration:",
        ]
    )
    + "    calibration_type:     ['kl']\n    max_percentile:       [0.9999]\n"
    + logged(["Start to calibrate the model."])
    + "\x1b[1;31m2026-11-02 08:01:03.1 [E:onnxruntime:, exec.cc:1 Run] bad Reshape\n\x1b[m\n"
    + "\rcalibration in progress:   0%| | 0/24\rcalibration in progress: 100%|x| 24/24\n"
    + logged(
        [
            "Select kl:num_bin=2048 method.",
            "End to calibrate the model.",
            "Start to export model.",
            "Successfully export model.",
            "Start to convert model.",
            "Successful convert model.",
            *bars(NODE_COLUMNS, NODES),
            *bars(("TensorName", "Calibrated Cosine", "Quantized Cosine"), OUTPUTS),
            "Successfully remove node, the removed node info is:",
            *ruled(("Node Name", "Type"), REMOVABLE),
            "Start to compile model.",
        ]
    )
    + "[--  ]5%\r[====]100%\n"
    + logged(["Successfully compile the hbm model, generated hbm model is saved at /out/net.hbm"])
    + '  FPS=812.5, latency = 1230.75 us, DDR = 4096 bytes, Compiling HBDK version = "4.9.2"\n'
    + logged(BLOCKS)
    + logged(TENSOR_BLOCK)
    + logged(["The hb_compile completes running."])
    + "HBDK hbm perf SUCCESS\n"
)

MODEL_INFO = logged(
    [
        "Start hb_model_info....",
        "hb_model_info version 3.4.1",
        *BLOCKS,
        banner("Removable node info"),
        *ruled(("Node Name", "Node Type"), REMOVABLE),
        *TENSOR_BLOCK,
    ]
)

NODE_INFO = "\n".join(",".join(row) for row in [NODE_COLUMNS, *NODES]) + "\n"

QUANT_INFO = '{"/stem/Conv": {"thresholds": [[3.25, 1.5], [2]], "bits": 8}, "/stem/Relu": {"kind": "fused"}}'
PERF = """{"summary": {
  "model info": {"BPU march": "nash-m", "BPU core number": 1, "original conv ops": 1234567},
  "performance": {"FPS": 812.5, "latency (us)": 1230.75, "latency (ms)": 1.23075, "more": "x"},
  "DDR access data": {"DDR bytes per run": 4096, "DDR megabytes per run": 0.0039, "L2M bytes per run": 1,
    "loaded bytes per run": 3000, "stored bytes per run": "1,096", "min memory requirement": 509216}},
 "layer details": []}"""
ANALYSIS = """{"hbm_key_indicators": [{"title": "FPS", "value": 812.5, "unit": ""},
  {"title": "CPU operators", "value": "2", "unit": "nodes"}, {"title": "Bottleneck", "value": "DDR", "unit": null}],
  "more": {}}"""
ADVICE = '{"/stem/Conv": [{"problem": "slow", "cost": 3}], "general": "use nash"}'
ADVICE_CSV = 'op,problem\n/stem/Conv,slow\n/head/Out,"small, odd"\n'

DESCRIPTION = (
    '{"BUILDER_VERSION": "3.4.1", "HBDK_VERSION": "4.9.2", "HORIZON_NN_VERSION": "2.7.0", "MARCH": "nash-m",'
    ' "INPUT_NAMES": "data;state", "INPUT_TYPE_RT": "nv12;featuremap", "INPUT_TYPE_TRAIN": "bgr;featuremap",'
    ' "INPUT_SHAPE": "1x3x64x96;1x8", "MEAN_VALUE": "[103.5, 116.25, 123.75];[]", "SCALE_VALUE": "[0.5];[]",'
    ' "NORM_TYPE": "data_mean_and_scale;no_preprocess", "SEPARATE_BATCH": "False", "CALI_TYPE": "kl",'
    ' "CAL_DATA_DIR": "/cal/data;/cal/state", "INPUT_SOURCE": {"data": "pyramid", "state": "ddr"}}'
)
RUNTIME = (
    "[UCP]: log level = 3\n[UCP]: UCP version = 3.9.1\n"
    "[BPU][[BPU_MONITOR]][281][INFO]BPULib verison(2, 1, 2)[0]!\n[DNN]: 3.9.1_(4.9.2 HBRT)\n"
    "Load model to DDR cost 12.5ms.\n"
)
MODEL_TENSORS = (
    RUNTIME + "This model file has 1 model:\n[net]\n" + "-" * 69 + "\n[model name]: net\n\n"
    f"[model desc]: {DESCRIPTION}\n\n"
    "input[0]: \nname: data_y\nvalid shape: (1,64,96,1)\naligned byte size: -1\n"
    "tensor type: HB_DNN_TENSOR_TYPE_U8\nquanti type: NONE\nstride: (-1,-1,1,1)\n\n"
    "input[1]:\nname: state\nvalid shape: (1,8,)\naligned byte size: 64\n"
    "tensor type: HB_DNN_TENSOR_TYPE_S8\nquanti type: SCALE\nstride: (64,1,)\n"
    "scale data: (0.0078125)\nzero_point data: (3)\n\n"
    "output[0]:\nname: boxes\nvalid shape: (1,2,4)\naligned byte size: 256\n"
    "tensor type: HB_DNN_TENSOR_TYPE_S32\nquanti type: SCALE\nstride: (64,32,4)\n"
    "scale data: 0.5,2.5e-05,\nquantizeAxis: 1\nzero_point data: \0,\0,\n\n" + "-" * 69 + "\n"
)
BOARD_PERF = (
    RUNTIME + "\n [Warning]: These operators have range limitations on input data: \n [Log, Mod]. \n"
    "[I][1][01-17][10:50:35:516][a.cpp:293][hrt_model_exec][HRT_MODEL_EXEC] "
    "Input[0] stride is dynamic, but you did not specify the stride, set as (6144,96,1,1)\n"
    "Frame count: 200,  Thread Average: 1.5 ms,  thread max latency: 3.25 ms,  "
    "thread min latency: 1.25 ms,  FPS: 650.5\n"
    "\nRunning condition:\n  Thread number is: 2\n  Frame count   is: 200\n  Program run time: 310.5 ms\n"
    "Perf result:\n  Frame totally latency is: 300.25 ms\n  Average    latency    is: 1.501 ms\n"
    "  Frame      rate       is: 644.122 FPS\n"
)
SOURCE = "[I][7][09-24][19:18:43:208][file_util.cpp:128][hrt_model_exec][HRT_MODEL_EXEC] "
INFERENCE = (
    RUNTIME + f"{SOURCE}read file /in/state.bin length: 8\n"
    f"{SOURCE}Input [/in/state.bin] will padding, validShape: (1,8), stride: (64,1)\n"
    f"{SOURCE}The input valid shape is (1,64,96,1), and the image [a b.jpeg] will be scaled to 96x64\n"
    "\n---------------------Frame 0 begin---------------------\nInfer time: 33.5 ms\n"
    "---------------------Frame 0 end---------------------\n"
    "---------------------Frame 1 begin---------------------\nInfer time: 34.5 ms\n"
    "---------------------Frame 1 end---------------------\n"
    f"{SOURCE}Dump path: ./model_infer_input_0_state.bin\n"
    f"{SOURCE}Dump path: ./d/model_infer_output_1__output_0.txt\n"
)
RUNTIME_QUERY = (
    RUNTIME + "=== Model Name List ===\n['net']\n\n=== Input Counts ===\nnet: 2\n\n"
    "=== Input Names ===\nnet:\n  - in_y\n  - in_uv\n\n"
    "=== Input Tensor Shapes ===\nnet:\n  in_uv -> shape: [1, 32, 48, 2]\n  in_y -> shape: [1, 64, 96, 1]\n\n"
    "=== Input Tensor Types ===\nnet:\n  in_uv -> dtype: U8\n  in_y -> dtype: U8\n\n"
    "=== Input Tensor Stride ===\nnet:\n  in_uv -> stride: [-1, -1, 2, 1]\n  in_y -> stride: [-1, -1, 1, 1]\n"
    "\n===== OUTPUT =====\n\n=== Output Counts ===\nnet: 1\n\n=== Output Names ===\nnet:\n  - out\n\n"
    "=== Output Tensor Types ===\nnet:\n  out -> dtype: S32\n\n"
    "=== Output Quantization Info ===\nnet:\n  out:\n    quanti_type: SCALE\n    quantize_axis: 1\n"
    "    scale_data: [0.5, 0.25]\n    zero_point_data: [0, 0]\n\n"
    f"Model Description:\n - net: {DESCRIPTION}\n\n=== Scheduling Parameters ===\nnet:\n  priority    : 0\n"
)
INPUT_INFO = """{"data": {"valid_shape": [1, 3, 8], "tensor_type": "DATA_TYPE_S8", "quanti_type": "QUANTI_TYPE_SCALE",
 "quantizeAxis": 0, "scale_data": [0.0078125], "zero_point_data": [0]},
 "state": {"valid_shape": [1, -1], "tensor_type": "DATA_TYPE_F32", "quanti_type": "QUANTI_TYPE_NONE",
 "quantizeAxis": 0, "scale_data": [], "zero_point_data": []}}"""

VERIFIER_HEAD = [
    "hb_verifier starts...",
    "verifier tool version: 3.4.1",
    "Start to inference onnx model net_ptq_model",
    "Start to inference bc model net_quantized_model",
]
COSINES = [("/stem/Relu", "t1", "0.999402"), ("/head/Out", "boxes", "0.712345"), ("/head/B", "scores", "nan")]
VERIFIER_COSINE = logged(
    [
        *VERIFIER_HEAD,
        "The output of t9 is empty, skip this tensor calculation.",
        *bars(("NodeName", "TensorName", "CosineSimilarity"), COSINES),
    ]
)
CONSISTENCY_COLUMNS = ("name", "ret", "mismatched", "max_abs_diff", "max_rel_diff")
CONSISTENCY = [
    ("boxes", "True", "0/40 (0.00%)", "0.0", "0.0"),
    ("scores", "False", "3/10 (30.00%)", "0.00125", "0.5"),
]
FAILED = "The model output consistency compare was failed."
PASSED = "The model output consistency comparison was successful."
VERIFIER_CONSISTENCY = logged(
    [
        *VERIFIER_HEAD[:2],
        "Start to inference bc model net_quantized_model",
        "Receive board info, run inference with board",
        "Start to inference hbm model net",
        *bars(CONSISTENCY_COLUMNS, CONSISTENCY),
        FAILED,
    ]
)
SENSITIVITY = (
    "=======================node sensitivity=======================\n"
    + "\n".join(ruled(("node", "cosine-similarity", "mse"), [("/a", "0.91", "1.5"), ("/b", "0.999", "0.1")], "    "))
    + "\n\n====================activation sensitivity====================\n"
    + "\n".join(ruled(("activation", "cosine-similarity", "threshold", "bit"), [("t", "0.95", "3.5", "8")], "    "))
    + "\n"
)
LAYERS = (
    "\n".join(
        bars(
            ("", "mod_name", "base_op_type", "analy_op_type", "shape", "quant_dtype", "qscale", "Cosine", "SQNR"),
            [
                (
                    "0",
                    "stem",
                    "nn.Conv2d",
                    "qat.Conv2d",
                    "torch.Size([1, 3, 8])",
                    "qint8",
                    "0.0078125",
                    "0.999",
                    "31.5",
                ),
                ("1", "", "torch.add", "torch.add", "", "torch.float32", "", "", "nan"),
                ("2", "stem", "nn.Relu", "qat.Relu", "torch.Size([])", "qint16", "0.5", "1.0", "60"),
            ],
        )
    )
    + "\n"
)
STATISTIC = (
    "\n".join(
        bars(
            ("Index", "Op Name", "Mod Name", "Attr", "Dtype", "Scale", "Min", "Max", "Shape"),
            [
                ("0", "qat.Conv2d", "stem", "input", "torch.float32", "", "-1.5", "2.5", "torch.Size([1, 3, 8])"),
                ("0", "qat.Conv2d", "stem", "output", "qint8", "0.25", "-1", "2", "torch.Size([1, 4, 8])"),
            ],
        )
    )
    + "\n"
)
SENSITIVE = (
    "\n".join(
        ruled(
            ("op_name", "sensitive_type", "op_type", "L1", "quant_dtype", "flops"),
            [
                ("stem", "weight", "<class 'qat.Conv2d'>", "0.00364654", "qint8", "36720(100.00%)"),
                ("add", "activation", "<class 'qat.Add'>", "3.5e-05", "qint16", "0(0%)"),
            ],
            "  ",
        )
    )
    + "\n"
)


@dataclass(frozen=True)
class Sample:
    """A text and its reader; `lines`: whether it is read line by line, so that a cut one still says something."""

    text: str
    parse: Callable[[str], object]
    lines: bool = True


SAMPLES = {
    "compile-log": Sample(COMPILE_LOG, parse_compile_log),
    "compile-log-on-disk": Sample(COMPILE_LOG.replace(INFO, ON_DISK).replace(WARNING, ON_DISK), parse_compile_log),
    "model-info": Sample(MODEL_INFO, parse_model_info),
    "node-info": Sample(NODE_INFO, parse_node_info),
    "quant-info": Sample(QUANT_INFO, parse_quant_info, lines=False),
    "perf": Sample(PERF, parse_perf, lines=False),
    "analysis": Sample(ANALYSIS, parse_analysis, lines=False),
    "advice": Sample(ADVICE, parse_advice, lines=False),
    "advice-csv": Sample(ADVICE_CSV, parse_advice_csv),
    "model-tensors": Sample(MODEL_TENSORS, parse_model_tensors),
    "board-perf": Sample(BOARD_PERF, parse_board_perf),
    "inference": Sample(INFERENCE, parse_inference),
    "runtime-query": Sample(RUNTIME_QUERY, parse_runtime_query),
    "input-info": Sample(INPUT_INFO, parse_input_info, lines=False),
    "verifier-cosine": Sample(VERIFIER_COSINE, parse_verifier),
    "verifier-consistency": Sample(VERIFIER_CONSISTENCY, parse_verifier),
    "sensitivity": Sample(SENSITIVITY, parse_sensitivity),
    "layers": Sample(LAYERS, parse_layers),
    "statistic": Sample(STATISTIC, parse_statistics),
    "sensitive-operators": Sample(SENSITIVE, parse_sensitive_operators),
}
#: Of a text that is cut these may differ: they say that something is missing, or that an end was reached.
COUNTS = {"unread", "runs", "benign"}


def is_part(part: object, whole: object, *, gaps: bool = False) -> bool:
    """Whether everything that `part` says is what `whole` says; it may say less: the first items of a tuple, with
    `gaps` any of them in their order."""
    if part is None or part == whole or (part is False and whole is True):
        return True
    if isinstance(part, tuple) and isinstance(whole, tuple):
        if not gaps:
            return len(part) <= len(whole) and all(map(is_part, part, whole))
        left = iter(whole)
        return all(any(is_part(item, other, gaps=True) for other in left) for item in part)
    if is_dataclass(part) and type(part) is type(whole):
        names = [field.name for field in fields(part) if field.name not in COUNTS]
        return all(is_part(getattr(part, name), getattr(whole, name), gaps=gaps) for name in names)
    return False


def told(text: str, parse: Callable[[str], object]) -> object:
    """What a reader says, or None where it says that it cannot."""
    try:
        return parse(text)
    except ArtifactError as error:
        assert str(error).strip()
        return None


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_read(name: str) -> None:
    sample = SAMPLES[name]
    assert told(sample.text, sample.parse) is not None
