"""The console text and log of hb_model_info (toolchain facts §3)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from driftgate.domain.toolchain.build import ModelInfo
from driftgate.vendor.blocks import MARCH, block_versions, read_blocks
from driftgate.vendor.console import last_run, whole_lines
from driftgate.vendor.contracts import word
from driftgate.vendor.files import another_file, read_text

TOOL = "hb_model_info"
_TOOL_VERSION = re.compile(r"^hb_model_info version:? (\d[\w.\-+]*)$")
_START = re.compile(r"^Start hb_model_info\b")


def read_model_info(path: Path) -> ModelInfo:
    """Versions, march, input contracts, tensors, removable nodes and memory; ArtifactError: none of these is there."""
    return parse_model_info(read_text(path), name=str(path))


def parse_model_info(text: str, *, name: str = "-") -> ModelInfo:
    """The same from text: of several runs the last."""
    lines = whole_lines(last_run(text, _START)[1])
    blocks = read_blocks(lines)
    tool = next((found[1] for line in lines if (found := _TOOL_VERSION.match(line))), None)
    if not (blocks.entries or blocks.inputs or blocks.tensors or blocks.removable):
        raise another_file(text, name, tool=TOOL, wanted=("BPU march", "input info", "NAME TYPE SHAPE DATA_TYPE"))
    march = blocks.entry(*MARCH)
    return ModelInfo(replace(block_versions(blocks), tool=tool), word(march or ""), blocks)
