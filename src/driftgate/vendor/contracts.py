"""Input contracts from the words of the vendor's files: what an input wants, one field at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from driftgate.domain.toolchain.common import InputContract
from driftgate.vendor.cells import boolean, integer, integers, numbers

Field = str | int | bool | tuple[int, ...] | tuple[float, ...] | None


def dimensions(text: str) -> tuple[int, ...] | None:
    """`1x3x224x224` as a shape."""
    return integers(text, "x") if text else None


def word(text: str) -> str | None:
    """The word; None where nothing, or Python's None, stands."""
    return text if text not in ("", "None") else None


#: Field of the contract → what reads it.
READERS: Mapping[str, Callable[[str], Field]] = {
    "type_rt": word,
    "type_train": word,
    "layout_rt": word,
    "layout_train": word,
    "shape": dimensions,
    "batch": integer,
    "separate_batch": boolean,
    "space_and_range": word,
    "mean": numbers,
    "scale": numbers,
    "std": numbers,
    "norm": word,
    "source": word,
}
#: Keys of an input's block in hb_compile's log and hb_model_info (toolchain facts §2.4, §3).
BLOCK_KEYS = {
    "input_type_rt": "type_rt",
    "input_type_train": "type_train",
    "input_layout_rt": "layout_rt",
    "input_layout_train": "layout_train",
    "input_shape": "shape",
    "input_batch": "batch",
    "separate_batch": "separate_batch",
    "input_space&range": "space_and_range",
    "input_space_and_range": "space_and_range",
    "mean_value": "mean",
    "scale_value": "scale",
    "std_value": "std",
    "norm_type": "norm",
}
#: Keys of a model's description, lists between semicolons (toolchain facts §7.3).
DESCRIPTION_KEYS = {
    "INPUT_TYPE_RT": "type_rt",
    "INPUT_TYPE_TRAIN": "type_train",
    "INPUT_LAYOUT_RT": "layout_rt",
    "INPUT_LAYOUT_TRAIN": "layout_train",
    "INPUT_SHAPE": "shape",
    "INPUT_SPACE_AND_RANGE": "space_and_range",
    "MEAN_VALUE": "mean",
    "SCALE_VALUE": "scale",
    "STD_VALUE": "std",
    "NORM_TYPE": "norm",
}


def contract(name: str, told: Mapping[str, str]) -> InputContract:
    """The contract of one input from fields of READERS as text; what cannot be read stays None."""
    return InputContract(name, **{key: READERS[key](value) for key, value in told.items()})  # type: ignore[arg-type]


def contracts_of_description(description: Mapping[str, object]) -> tuple[InputContract, ...]:
    """The contracts that the builder wrote into a model; a list with another length than the names' tells nothing."""
    names = listed(description.get("INPUT_NAMES"))
    sources = description.get("INPUT_SOURCE")
    common = {
        "batch": str(description.get("INPUT_BATCH") or ""),
        "separate_batch": str(description.get("SEPARATE_BATCH") or ""),
    }
    found = []
    for at, name in enumerate(names):
        told = {
            field: items[at]
            for key, field in DESCRIPTION_KEYS.items()
            if len(items := listed(description.get(key), len(names))) == len(names)
        }
        source = {"source": str(sources[name])} if isinstance(sources, dict) and name in sources else {}
        found.append(contract(name, {**common, **told, **source}))
    return tuple(found)


def listed(value: object, count: int = 0) -> Sequence[str]:
    """The items of a list between semicolons; none where there is no text. Nothing behind a last semicolon is an
    item where `count` are wanted and one would be missing."""
    items = [item.strip() for item in value.split(";")] if isinstance(value, str) and value.strip() else []
    return items[:-1] if items and not items[-1] and len(items) != count else items
