"""A small residual network for small grey images, in plain PyTorch."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class Residual(nn.Module):
    """Two 3x3 convolutions with batch norm and a shortcut.

    Maps (batch, inputs, h, w) to (batch, outputs, h / stride, w / stride); the shortcut is a 1x1
    convolution where the shape changes and the identity elsewhere.
    """

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class ResNet(nn.Module):
    """Maps images (batch, 1, h, w) to logits (batch, classes); each width after the first halves h and w."""

    def __init__(self, widths: tuple[int, ...] = (16, 32), classes: int = 10) -> None:
        super().__init__()
        first = widths[0]
        self.stem = nn.Sequential(nn.Conv2d(1, first, 3, padding=1, bias=False), nn.BatchNorm2d(first), nn.ReLU())
        blocks = [Residual(first, first)]
        blocks += [Residual(a, b, stride=2) for a, b in zip(widths, widths[1:])]
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.pool(self.blocks(self.stem(x))).flatten(1))
