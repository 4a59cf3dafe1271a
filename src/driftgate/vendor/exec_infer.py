"""`hrt_model_exec infer`: what was fed, how long a frame took, what was dumped where (toolchain facts §7.2, §7.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from driftgate.domain.toolchain.board import BoardInference, Dump, ReadFile
from driftgate.vendor.cells import finite, integer, shape
from driftgate.vendor.console import whole_lines
from driftgate.vendor.files import another_file, read_text
from driftgate.vendor.runtime import (
    chosen_strides,
    has_board_monitor,
    load_milliseconds,
    runtime_versions,
    without_source,
)

TOOL = "hrt_model_exec infer"
_READ = re.compile(r"^read file (.+) length: (\d+)$")
_PADDED = re.compile(r"^Input \[(.+)\] will padding, validShape: (\([^)]*\)), stride: (\([^)]*\))$")
_SCALED = re.compile(
    r"^The input valid shape is (\([^)]*\)), and the image \[(.+)\] will be scaled to (\d{1,9})x(\d{1,9})$"
)
_BEGIN = re.compile(r"^-{3,}\s?Frame (\d{1,9}) begin\s?-{3,}$")
_TIME = re.compile(r"^Infer time: ([\d.]+) ms$")
_DUMP = re.compile(r"^Dump path: (.*?model_infer_(input|output)_(\d{1,9})_(.+)\.(?:bin|txt))$")


def read_inference(path: Path) -> BoardInference:
    """Files, frames and dumps of a run; ArtifactError where the text has none of them."""
    return parse_inference(read_text(path), name=str(path))


def parse_inference(text: str, *, name: str = "-") -> BoardInference:
    """The same from text."""
    lines = whole_lines(text)
    said = [without_source(line) for line in lines]
    found = BoardInference(
        versions=runtime_versions(lines),
        load_ms=load_milliseconds(lines),
        files=_files(said),
        frames=tuple(_frames(said)),
        dumps=tuple(Dump(match[1], match[2], int(match[3]), match[4]) for line in said if (match := _DUMP.match(line))),
        chosen_strides=chosen_strides(lines),
        has_board_monitor=has_board_monitor(lines),
    )
    if not (found.files or found.frames or found.dumps):
        raise another_file(text, name, tool=TOOL, wanted=("read file … length: …", "Infer time: … ms", "Dump path: …"))
    return found


def _files(said: Sequence[str]) -> tuple[ReadFile, ...]:
    """Each file that was read, in order, with what is said about its padding; an image once for each input."""
    files: list[ReadFile] = []
    for line in said:
        if match := _READ.match(line):
            files.append(ReadFile(match[1], integer(match[2])))
        elif match := _PADDED.match(line):
            last = files.pop() if files and files[-1].path == match[1] else ReadFile(match[1])
            files.append(replace(last, padded_shape=shape(match[2]), padded_stride=shape(match[3])))
        elif match := _SCALED.match(line):
            size = (int(match[3]), int(match[4]))
            files.append(ReadFile(match[2], padded_shape=shape(match[1]), scaled_from_image=size))
    return tuple(files)


def _frames(said: Sequence[str]) -> Iterator[tuple[int, float]]:
    """(number, milliseconds) of each frame; a time whose frame is not named, as in excerpts, is the next one."""
    number = 0
    for line in said:
        if begin := _BEGIN.match(line):
            number = int(begin[1])
        elif (time := _TIME.match(line)) and (milliseconds := finite(time[1])) is not None:
            yield number, milliseconds
            number += 1
