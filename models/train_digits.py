#!/usr/bin/env python3
"""Train the digits classifier that the tests, the demo and the documentation use.

Trains a small convolution + batch norm network on the 8x8 handwritten digits that ship with
scikit-learn (1797 real scans, no download), checks it on images it has never seen, and writes next
to this script:

    digits.pt2             torch.export archive, dynamic batch, eval mode
    digits_test_x.npy      held-out images, float32 [N, 1, 8, 8], values 0..1
    digits_test_y.npy      their labels, int64 [N]
    digits_logits.npy      the network's outputs on them as Python computes them, float32 [N, 10]
    digits_expected.json   what Python measured: correct count, accuracy, versions, tolerances

Usage:  python3 models/train_digits.py [--out FOLDER] [--epochs N]
Needs:  torch >= 2.9, scikit-learn, numpy. Takes about half a minute on one core.
The run is seeded and single threaded: the same versions give the same files.
"""

import argparse
import json
import pathlib
import re
import sys

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

SEED = 20
REQUIRED_ACCURACY = 0.98


class DigitsNet(nn.Module):
    """Three conv - batch norm - relu blocks, one pooling, a linear head: 24 k weights."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(32)
        self.pool = nn.MaxPool2d(2)
        self.conv3 = nn.Conv2d(32, 64, 3, padding=1)
        self.bn3 = nn.BatchNorm2d(64)
        self.avg = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.bn1(self.conv1(x)))
        x = self.pool(torch.relu(self.bn2(self.conv2(x))))
        x = torch.relu(self.bn3(self.conv3(x)))
        x = torch.flatten(self.avg(x), 1)
        return self.fc(x)


def shifted(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Moves every image by -1, 0 or +1 pixel in both directions; edges are filled with zero."""
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    offsets = torch.randint(0, 3, (images.shape[0], 2), generator=generator).tolist()
    return torch.stack([p[:, dy : dy + 8, dx : dx + 8] for p, (dy, dx) in zip(padded, offsets)])


def train(x: torch.Tensor, y: torch.Tensor, epochs: int) -> DigitsNet:
    generator = torch.Generator().manual_seed(SEED)
    net = DigitsNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-2)
    steps = epochs * ((len(x) + 63) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    net.train()
    for epoch in range(epochs):
        total = 0.0
        for batch in torch.randperm(len(x), generator=generator).split(64):
            loss = nn.functional.cross_entropy(
                net(shifted(x[batch], generator)), y[batch], label_smoothing=0.05
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch + 1:3}/{epochs}  loss {total / len(x):.4f}", file=sys.stderr)
    return net.eval()


def shorten_stack_traces(program: torch.export.ExportedProgram) -> None:
    """Keeps file names and lines in the recorded stack traces, drops this machine's folders."""

    def shorten(match: re.Match) -> str:
        path = match[1].replace("\\", "/")
        _, inside, rest = path.rpartition("site-packages/")
        return f'File "{rest if inside else path.rpartition("/")[2]}"'

    for node in program.graph.nodes:
        if "stack_trace" in node.meta:
            node.meta["stack_trace"] = re.sub(r'File "(.*?)"', shorten, node.meta["stack_trace"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--epochs", type=int, default=30)
    options = parser.parse_args()

    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    digits = load_digits()
    images = (digits.images[:, None] / 16.0).astype(np.float32)  # 17 grey levels, 0..16
    labels = digits.target.astype(np.int64)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=400, random_state=SEED, stratify=labels
    )

    net = train(torch.from_numpy(train_x), torch.from_numpy(train_y), options.epochs)
    # Outputs of the exported program: what a reader of the archive has to reproduce.
    program = torch.export.export(
        net,
        (torch.from_numpy(test_x[:2]),),
        dynamic_shapes={"x": {0: torch.export.Dim("batch", min=1, max=4096)}},
    )
    shorten_stack_traces(program)
    with torch.no_grad():
        logits = program.module()(torch.from_numpy(test_x)).numpy()
        eager = net(torch.from_numpy(test_x)).numpy()
    assert np.array_equal(logits, eager), "the exported program differs from the module"

    correct = int((logits.argmax(1) == test_y).sum())
    accuracy = correct / len(test_y)
    print(f"held-out: {correct} of {len(test_y)} right ({accuracy:.2%})", file=sys.stderr)
    if accuracy < REQUIRED_ACCURACY:
        print(f"below the required {REQUIRED_ACCURACY:.0%}: nothing written", file=sys.stderr)
        return 1

    options.out.mkdir(parents=True, exist_ok=True)
    torch.export.save(program, options.out / "digits.pt2")
    np.save(options.out / "digits_test_x.npy", test_x)
    np.save(options.out / "digits_test_y.npy", test_y)
    np.save(options.out / "digits_logits.npy", logits)
    expected = {
        "images": len(test_y),
        "correct": correct,
        "accuracy": accuracy,
        "parameters": sum(p.numel() for p in net.parameters()),
        "train_images": len(train_y),
        "seed": SEED,
        "epochs": options.epochs,
        "torch": torch.__version__.split("+")[0],
        "logits_rtol": 1.3e-6,
        "logits_atol": 1e-5,
    }
    (options.out / "digits_expected.json").write_text(json.dumps(expected, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
