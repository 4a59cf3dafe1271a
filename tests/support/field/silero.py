"""silero-vad, a speech detector with memory: TorchScript, the ONNX files of its makers, a real conversation."""

from __future__ import annotations

import shutil
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from support.field.wheels import CONVERSATION, SILERO, members

FRAME = 512
CONTEXT = 64  # a frame is heard together with the end of the one before
RATE = 16_000
SEQUENCES = 12
STEPS = 78  # frames of one sequence: 2.5 s

LOADER = Path(__file__).with_name("silero_loader.py")


def conversation(path: Path) -> NDArray[np.float32]:
    """(12, 78, 1, 576): sequences of frames, each with its context."""
    with wave.open(str(path)) as recording:
        assert (recording.getframerate(), recording.getnchannels(), recording.getsampwidth()) == (RATE, 1, 2)
        pcm = np.frombuffer(recording.readframes(recording.getnframes()), "<i2")
    sound = np.concatenate([np.zeros(CONTEXT), pcm / 32768]).astype(np.float32)
    frames = np.stack([sound[at : at + CONTEXT + FRAME] for at in range(0, SEQUENCES * STEPS * FRAME, FRAME)])
    return frames.reshape(SEQUENCES, STEPS, 1, CONTEXT + FRAME)


def build(folder: Path) -> None:
    """Lay out a user's project: the four shipped models, a loader for the TorchScript one, and the frames.

    `frames/<id>.npz` has `input` (78, 1, 576); `frames_rated/<id>.npz` has `sr` (78,) as well, which the
    ONNX file for both sampling rates wants at every step.
    """
    for name, source in members(SILERO).items():
        shutil.copyfile(source, folder / name)
    shutil.copyfile(LOADER, folder / LOADER.name)
    (recording,) = members(CONVERSATION).values()
    (folder / "frames").mkdir()
    (folder / "frames_rated").mkdir()
    for number, sequence in enumerate(conversation(recording)):
        np.savez(folder / "frames" / f"second-{number:02}.npz", input=sequence)
        np.savez(folder / "frames_rated" / f"second-{number:02}.npz", input=sequence, sr=np.full(STEPS, RATE, np.int64))
