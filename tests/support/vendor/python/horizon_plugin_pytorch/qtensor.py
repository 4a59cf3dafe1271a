"""STAND-IN for horizon_plugin_pytorch.qtensor, for tests only: a tensor that refuses functions it does not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch  # type: ignore[import-not-found]

#: Functions that give another tensor with the scale, and those that give a plain one, or a number.
KEPT = (torch.Tensor.detach,)
KNOWN = (*KEPT, torch.nn.functional.linear, torch.Tensor.numel)


class QTensor(torch.Tensor):  # type: ignore[misc]
    """Numbers that lie on the steps of a scale, as floats."""

    scale: Any

    @classmethod
    def of(cls, numbers: Any, scale: Any) -> QTensor:
        """A tensor with its scale."""
        made: QTensor = numbers.as_subclass(cls)
        made.scale = scale
        return made

    def dequantize(self) -> Any:
        """The numbers without their scale."""
        return self.as_subclass(torch.Tensor)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func not in KNOWN:
            raise ValueError(f"{func} is not implemented for QTensor")
        made = func(*(a.as_subclass(torch.Tensor) if isinstance(a, cls) else a for a in args), **(kwargs or {}))
        return cls.of(made, args[0].scale) if func in KEPT else made
