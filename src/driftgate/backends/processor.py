"""The processor that numbers were computed on, as one line for an Environment."""

from __future__ import annotations

import platform
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")

#: Instruction sets that change how kernels of float and 8-bit networks round, in the order they are shown.
FEATURES = (
    *("avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8", "amx_bf16"),
    *("asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve"),
)


def processor(cpuinfo: Path = CPUINFO) -> str:
    """The model's name and those of FEATURES that it has; the machine type where the system does not say."""
    try:
        lines = cpuinfo.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    entries: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        entries.setdefault(key.strip().lower(), value.strip())
    flags = set((entries.get("flags") or entries.get("features") or "").split())
    name = entries.get("model name") or platform.machine()
    return " ".join((name, *(feature for feature in FEATURES if feature in flags)))
