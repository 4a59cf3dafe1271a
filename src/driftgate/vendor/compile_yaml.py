"""hb_compile's YAML, already loaded: the input contract and what else consistency depends on (toolchain facts §2.6).

Lists stand between semicolons, one entry an input; loaders may have made numbers, booleans or lists of single values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from driftgate.domain.toolchain.build import CompileSettings
from driftgate.domain.toolchain.common import InputContract
from driftgate.errors import ArtifactError
from driftgate.messages.message import Message, message
from driftgate.vendor.cells import boolean, integer, numbers
from driftgate.vendor.contracts import dimensions, listed

#: Section → its keys.
KEYS: Mapping[str, frozenset[str]] = {
    section: frozenset(keys.split())
    for section, keys in {
        "model_parameters": "onnx_model caffe_model prototxt march working_dir output_model_file_prefix output_nodes"
        " remove_node_type remove_node_name node_info debug_mode layer_out_dump enable_vpu enable_spu log_level",
        "input_parameters": "input_name input_type_rt input_type_train input_layout_train input_layout_rt"
        " input_space_and_range input_shape input_batch separate_batch separate_name norm_type mean_value scale_value"
        " std_value",
        "calibration_parameters": "cal_data_dir calibration_type per_channel max_percentile run_on_cpu"
        " run_on_bpu optimization quant_config",
        "compiler_parameters": "compile_mode balance_factor optimize_level core_num max_time_per_fc jobs input_source"
        " advice debug cache_mode cache_path max_l2m_size ability_entry extra_params hbdk3_compatible_mode",
        "custom_op": "op_register_files custom_op_method custom_op_dir",
    }.items()
}
RUNTIME_TYPES = ("nv12", "yuv444", "rgb", "bgr", "gray", "featuremap")
TRAINING_TYPES = ("rgb", "bgr", "yuv444", "gray", "featuremap")
LAYOUTS = ("NCHW", "NHWC")
RANGES = ("regular", "bt601_video")
#: Key of one word for each input → field of the contract and the words that may stand there.
WORDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "input_type_rt": ("type_rt", RUNTIME_TYPES),
    "input_type_train": ("type_train", TRAINING_TYPES),
    "input_layout_rt": ("layout_rt", LAYOUTS),
    "input_layout_train": ("layout_train", LAYOUTS),
    "input_space_and_range": ("space_and_range", RANGES),
}
#: Key of numbers for each input → field of the contract.
VALUES = {"mean_value": "mean", "scale_value": "scale", "std_value": "std"}
PADDING = ("input_no_padding", "output_no_padding")
#: (mean, scale given) → the norm_type that the tool derives, whatever the deprecated key says; with std unknown.
NORMS = {
    (False, False): "no_preprocess",
    (True, False): "data_mean",
    (False, True): "data_scale",
    (True, True): "data_mean_and_scale",
}


@dataclass(slots=True)
class _Reader:
    """The sections and the problems found in them so far."""

    path: str
    sections: Mapping[str, Mapping[str, object]]
    problems: list[Message] = field(default_factory=list)

    def value(self, section: str, key: str) -> object:
        return self.sections[section].get(key)

    def wrong(self, section: str, key: str, wanted: Sequence[str]) -> None:
        found = str(self.value(section, key))
        self.problems.append(
            message("compile-yaml-value", path=self.path, key=f"{section}.{key}", found=found, wanted=tuple(wanted))
        )

    def miscounted(self, section: str, key: str, found: int, inputs: int) -> None:
        self.problems.append(
            message("compile-yaml-count", path=self.path, key=f"{section}.{key}", found=found, inputs=inputs)
        )

    def text(self, section: str, key: str) -> str | None:
        """One value as text; None where the key is absent or empty."""
        value = self.value(section, key)
        if isinstance(value, (Mapping, list)):
            self.wrong(section, key, ("a;b",))
            return None
        return str(value).strip() or None if value is not None else None

    def items(self, section: str, key: str, count: int = 0) -> tuple[str, ...]:
        """The values between semicolons, `count` if the last of them may be empty, or of a list."""
        value = self.value(section, key)
        if isinstance(value, list) and not any(isinstance(item, (Mapping, list)) for item in value):
            return tuple(str(item).strip() for item in value)
        return tuple(listed(self.text(section, key), count))

    def for_each(self, key: str, count: int) -> tuple[str | None, ...]:
        """One value for each input, None where none is given; a problem where there are more or fewer."""
        items = self.items("input_parameters", key, count)
        if items and len(items) != count:
            self.miscounted("input_parameters", key, len(items), count)
            items = ()
        return tuple(item or None for item in items) or (None,) * count


def parse_compile_yaml(loaded: object, *, name: str = "-") -> CompileSettings:
    """What the settings say; keys that are not known are named in `unknown`.

    ArtifactError: it is no mapping of such sections, or values are not what their keys want, all of them together.
    """
    if not isinstance(loaded, Mapping) or not any(section in loaded for section in KEYS):
        wanted = tuple(KEYS)
        found = tuple(map(str, loaded)) if isinstance(loaded, Mapping) else (type(loaded).__name__,)
        raise ArtifactError(message("compile-yaml-none", path=name, found=found or ("-",), wanted=wanted))
    sections = {section: _section(loaded.get(section)) for section in KEYS}
    reader = _Reader(name, {section: keys or {} for section, keys in sections.items()})
    for section, keys in sections.items():
        if keys is None:
            found_type = type(loaded[section]).__name__
            key_names = tuple(sorted(KEYS[section]))
            reader.problems.append(
                message("compile-yaml-value", path=name, key=section, found=found_type, wanted=key_names)
            )
    settings = _settings(reader, _unknown(loaded, sections))
    if reader.problems:
        raise ArtifactError(*reader.problems)
    return settings


def _section(value: object) -> Mapping[str, object] | None:
    """The keys of a section, which may be empty; None where it is something else."""
    if value is None:
        return {}
    return {str(key): entry for key, entry in value.items()} if isinstance(value, Mapping) else None


def _unknown(loaded: Mapping[object, object], sections: Mapping[str, Mapping[str, object] | None]) -> tuple[str, ...]:
    inner = (f"{section}.{key}" for section, keys in sections.items() for key in keys or {} if key not in KEYS[section])
    return (*(str(key) for key in loaded if key not in KEYS), *inner)


def _settings(reader: _Reader, unknown: tuple[str, ...]) -> CompileSettings:
    model, calibration = "model_parameters", "calibration_parameters"
    inputs = _inputs(reader)
    folders = reader.items(calibration, "cal_data_dir")
    if folders and inputs and len(folders) != len(inputs):
        reader.miscounted(calibration, "cal_data_dir", len(folders), len(inputs))
    quant_config = reader.value(calibration, "quant_config")
    inline = isinstance(quant_config, Mapping)
    padding = _padding(reader)
    return CompileSettings(
        model=reader.text(model, "onnx_model") or reader.text(model, "caffe_model"),
        march=reader.text(model, "march"),
        prefix=reader.text(model, "output_model_file_prefix"),
        working_dir=reader.text(model, "working_dir"),
        output_nodes=reader.items(model, "output_nodes"),
        removed_types=reader.items(model, "remove_node_type"),
        removed_names=reader.items(model, "remove_node_name"),
        inputs=inputs,
        separate_names=reader.items("input_parameters", "separate_name"),
        calibration_folders=folders,
        calibration_type=reader.text(calibration, "calibration_type") if folders else "skip",
        quant_config=None if inline else reader.text(calibration, "quant_config"),
        has_inline_quant_config=inline,
        input_no_padding=padding["input_no_padding"],
        output_no_padding=padding["output_no_padding"],
        unknown=unknown,
    )


def _inputs(reader: _Reader) -> tuple[InputContract, ...]:
    """One contract for each input. A model with one input needs no name; it is then empty."""
    section = "input_parameters"
    names = reader.items(section, "input_name")
    counts = [len(reader.items(section, key)) for key in ("input_type_rt", "input_shape", "input_type_train")]
    count = len(names) or max(counts)
    told: list[dict[str, object]] = [{} for _ in range(count)]
    for key, (target, allowed) in WORDS.items():
        for at, item in enumerate(reader.for_each(key, count)):
            if item is not None and item not in allowed:
                reader.wrong(section, key, allowed)
            told[at][target] = item
    for at, item in enumerate(reader.for_each("input_shape", count)):
        told[at]["shape"] = dimensions(item or "")
        if item is not None and told[at]["shape"] is None:
            reader.wrong(section, "input_shape", ("1x3x224x224",))
    _normalisation(reader, told)
    batch, separate = reader.text(section, "input_batch"), reader.text(section, "separate_batch")
    common = {"batch": integer(batch or ""), "separate_batch": boolean(separate or "")}
    for key, wanted in (("input_batch", "1"), ("separate_batch", "True")):
        text = {"input_batch": batch, "separate_batch": separate}[key]
        if text is not None and common[{"input_batch": "batch"}.get(key, key)] is None:
            reader.wrong(section, key, (wanted,))
    sources = reader.value("compiler_parameters", "input_source")
    source_of: Mapping[object, object] = sources if isinstance(sources, Mapping) else {}
    return tuple(
        InputContract(name, source=_word(source_of.get(name)), **common, **fields)  # type: ignore[arg-type]
        for name, fields in zip(names or ("",) * count, told, strict=True)
    )


def _normalisation(reader: _Reader, told: Sequence[dict[str, object]]) -> None:
    """Mean and scale or std of each input, and norm_type, which is derived from them."""
    section = "input_parameters"
    for key, target in VALUES.items():
        for at, item in enumerate(reader.for_each(key, len(told))):
            told[at][target] = numbers(item) if item is not None and item != "None" else ()
            if told[at][target] is None:
                reader.wrong(section, key, ("123.675 116.28 103.53",))
    for fields in told:
        if fields["scale"] and fields["std"]:
            reader.wrong(section, "std_value", ("scale_value | std_value",))
        fields["norm"] = None if fields["std"] else NORMS[bool(fields["mean"]), bool(fields["scale"])]


def _padding(reader: _Reader) -> dict[str, bool | None]:
    """The switches of extra_params; None where they are not given."""
    section = "compiler_parameters"
    value = reader.value(section, "extra_params")
    if value is not None and not isinstance(value, Mapping):
        reader.wrong(section, "extra_params", PADDING)
    extra = value if isinstance(value, Mapping) else {}
    found = {key: boolean(str(extra[key])) if key in extra else None for key in PADDING}
    for key in PADDING:
        if key in extra and found[key] is None:
            reader.wrong(section, "extra_params", (f"{key}: True",))
    return found


def _word(value: object) -> str | None:
    return None if value is None else str(value)
