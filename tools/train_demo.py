"""Trains the demo's network on scikit-learn's digits and writes the data driftgate ships; for maintainers.

    python -m pip install torch==2.13.0 numpy scikit-learn
    PYTHONPATH=src python tools/train_demo.py

One thread, fixed seeds and deterministic kernels: a second run writes the same files. Takes about ten seconds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from torch import nn

from driftgate.storage.npz import write_npz

DATA = Path(__file__).parents[1] / "src" / "driftgate" / "demo" / "data"

SEED = 0
EPOCHS = 40
STILL_EPOCHS = 5  # the last ones see the images as they are, the others shifted by up to one pixel
BATCH = 64
LEARNING_RATE = 3e-3
PEAK_LEARNING_RATE = 6e-3
WHITE = 16  # the digits' brightest grey
EVERY_NTH_EVALUATES = 5
EVERY_NTH_CALIBRATES = 16
RECORDED_IMAGES = 4  # whose module outputs are kept


class Digits(nn.Module):
    """A small CNN with one of everything: depthwise, pointwise, stride, residual, pooling. (n, 1, 8, 8) to (n, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu1 = nn.ReLU()
        self.dw2 = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.bn2 = nn.BatchNorm2d(16)
        self.relu2 = nn.ReLU()
        self.pw3 = nn.Conv2d(16, 16, 1)
        self.bn3 = nn.BatchNorm2d(16)
        self.relu3 = nn.ReLU()
        self.conv4 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.bn4 = nn.BatchNorm2d(32)
        self.relu4 = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(128, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of images in 0..1."""
        stem = self.relu1(self.bn1(self.conv1(images)))
        branch = self.bn3(self.pw3(self.relu2(self.bn2(self.dw2(stem)))))
        joined = self.relu3(branch + stem)
        features = self.pool(self.relu4(self.bn4(self.conv4(joined))))
        return self.fc(features.flatten(1))


def main() -> None:
    """Train, evaluate, record, write."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    digits = load_digits()
    images = digits.images.astype(np.uint8)
    labels = digits.target
    held_out = np.arange(len(images)) % EVERY_NTH_EVALUATES == 0
    evaluation, training = images[held_out], images[~held_out]

    network = Digits()
    train(network, as_floats(training), torch.from_numpy(labels[~held_out]))
    network.eval()
    logits, modules = record(network, as_floats(evaluation))

    write_npz(DATA / "weights.npz", parameters(network))
    write_npz(
        DATA / "digits.npz",
        {
            "evaluation": evaluation[:, None],
            "labels": labels[held_out].astype(np.uint8),
            "calibration": training[::EVERY_NTH_CALIBRATES, None],
        },
    )
    write_npz(DATA / "pytorch.npz", {"logits": logits} | modules)
    right = int((logits.argmax(1) == labels[held_out]).sum())
    print(f"{right}/{len(evaluation)} right")
    for path in sorted(DATA.glob("*.npz")):
        print(f"{path.stat().st_size:8d} {path.name}")


def as_floats(images: NDArray[np.uint8]) -> torch.Tensor:
    """What the network eats: (n, 1, 8, 8) in 0..1, channels last in memory, by which PyTorch chooses its kernels."""
    return torch.from_numpy((images / WHITE).astype(np.float32))[..., None].permute(0, 3, 1, 2)


def train(network: Digits, images: torch.Tensor, labels: torch.Tensor) -> None:
    """Adam with a one-cycle schedule; whole batches are shifted together."""
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    batches = -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_LEARNING_RATE, total_steps=EPOCHS * batches)
    chance = torch.Generator().manual_seed(SEED)
    for epoch in range(EPOCHS):
        for chosen in torch.randperm(len(images), generator=chance).split(BATCH):
            right, down = torch.randint(-1, 2, (2,), generator=chance).tolist()
            batch = images[chosen]
            if epoch < EPOCHS - STILL_EPOCHS:
                batch = torch.roll(batch, (down, right), (2, 3))
            loss = nn.functional.cross_entropy(network(batch), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def parameters(network: Digits) -> dict[str, NDArray[np.float32]]:
    """All weights and statistics by their PyTorch names, without the counters of batches."""
    return {name: value.numpy() for name, value in network.state_dict().items() if value.is_floating_point()}


def record(network: Digits, images: torch.Tensor) -> tuple[NDArray[np.float32], dict[str, NDArray[np.float32]]]:
    """The logits of all images, and `module.<name>` outputs of the first few."""
    modules: dict[str, NDArray[np.float32]] = {}

    def keep(name: str) -> None:
        module = network.get_submodule(name)
        module.register_forward_hook(
            lambda _module, _inputs, output: modules.update({f"module.{name}": output.numpy().copy()})
        )

    with torch.no_grad():
        logits = network(images).numpy()
        for name, _ in network.named_children():
            keep(name)
        network(images[:RECORDED_IMAGES])
    return logits, modules


if __name__ == "__main__":
    main()
