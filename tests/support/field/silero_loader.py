"""Makes of silero-vad's TorchScript file a network whose memory is an input and an output, as in its ONNX."""

from __future__ import annotations

from pathlib import Path

import torch  # type: ignore[import-not-found]


class Streaming(torch.nn.Module):  # type: ignore[misc]
    """One step: a frame and the memory so far give the probability of speech and the memory from now on."""

    def __init__(self, core: torch.nn.Module) -> None:
        super().__init__()
        self.core = core

    def forward(self, input: torch.Tensor, state: torch.Tensor) -> dict[str, torch.Tensor]:
        """`input` (1, 576), `state` (2, 1, 128)."""
        output, memory = self.core(input, state)
        return {"output": output, "stateN": memory}


def load() -> torch.nn.Module:
    """The core for 16 kHz; the shipped module around it hides its memory in itself."""
    shipped = torch.jit.load(Path(__file__).parent / "silero_vad.jit", map_location="cpu")
    return Streaming(shipped._model)
