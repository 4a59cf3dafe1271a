"""What each of the vendor's tools calls the BPU cores of a board.

Here they are counted from 0, and None is any of them. The tools do not agree (toolchain facts §6, §7.1, §8).
"""

from __future__ import annotations


def infer_core(core: int | None) -> int:
    """For hbm_infer's core_id: -1 is any core, 0 the first. Raises ValueError below 0."""
    return -1 if core is None else _counted(core)


def hrt_core(core: int | None) -> int:
    """For hrt_model_exec's --core_id: 0 is any core, 1 the first. Raises ValueError below 0."""
    return 0 if core is None else _counted(core) + 1


def runtime_cores(core: int | None) -> tuple[int, ...]:
    """For hbm_runtime's bpu_cores: 0 is the first; empty leaves the choice to it. Raises ValueError below 0."""
    return () if core is None else (_counted(core),)


def _counted(core: int) -> int:
    """A tool's word for any core must not pass for a core."""
    if core < 0:
        raise ValueError(f"core {core}")
    return core
