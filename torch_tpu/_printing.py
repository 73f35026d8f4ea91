"""Prints a tensor of the device from one copy on the host.

PyTorch formats a tensor with a dozen small operations, each of which would be compiled for its shape.
"""

from __future__ import annotations

import functools

import torch


def install() -> None:
    """Wraps the function that PyTorch prints contents with."""
    original = torch._tensor_str._tensor_str

    @functools.wraps(original)
    def on_the_host(self: torch.Tensor, indent: int) -> str:
        return original(self.detach().cpu() if self.device.type == "tpu" else self, indent)

    torch._tensor_str._tensor_str = on_the_host
