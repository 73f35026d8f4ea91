"""From what users call a device to its index."""

from __future__ import annotations

from typing import TypeAlias

import torch

from torch_tpu import _C

Device: TypeAlias = "torch.device | str | int | None"


def _get_device_index(device: Device, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index a device stands for; -1 for the CPU when `allow_cpu`.

    None and "tpu" are the current device when `optional`. ValueError for a device of another kind or one without an
    index; whether the index exists is checked where it is used.
    """
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != "tpu":
            raise ValueError(f"Expected a tpu device, but got: {device}")
        device = device.index
    if device is None:
        if not optional:
            raise ValueError("Expected a tpu device with an index, such as 'tpu:0', or an integer")
        return _C.current_device()
    return int(device)


def index_of(device: Device) -> int:
    """The index of a device, the current one for None. RuntimeError when there is no such device."""
    index = _get_device_index(device, optional=True)
    if index < 0:
        return _C.current_device()
    if index >= (count := _C.device_count()):
        raise RuntimeError(f"invalid device ordinal: tpu:{index} does not exist; device_count() is {count}")
    return index
