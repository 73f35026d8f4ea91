"""Memory in use, by PyTorch's names.

Arrays are taken from and given back to the plugin's own pool one by one, so "reserved" equals "allocated".
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from torch_tpu import _C
from torch_tpu.tpu._utils import Device, index_of


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """The statistics of `memory_stats` as a tree; empty before the runtime has started."""
    index = index_of(device)
    return torch._C._accelerator_getDeviceStats(index) if _C.started() else {}


def memory_stats(device: Device = None) -> OrderedDict[str, Any]:
    """Bytes and numbers of arrays, under the keys of `torch.accelerator.memory_stats`."""
    return OrderedDict(sorted(_flat("", memory_stats_as_nested_dict(device))))


def _flat(prefix: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        return [(prefix, value)]
    return [row for key, part in value.items() for row in _flat(f"{prefix}.{key}" if prefix else key, part)]


def memory_allocated(device: Device = None) -> int:
    """Bytes of the arrays alive on a device."""
    return _C.memory_statistics(index_of(device))["allocated"]


def max_memory_allocated(device: Device = None) -> int:
    """The most bytes that were alive at one time since the start or `reset_peak_memory_stats`."""
    return _C.memory_statistics(index_of(device))["peak"]


def memory_reserved(device: Device = None) -> int:
    """Equal to `memory_allocated`: nothing is kept for reuse here."""
    return memory_allocated(device)


def max_memory_reserved(device: Device = None) -> int:
    """Equal to `max_memory_allocated`."""
    return max_memory_allocated(device)


def reset_peak_memory_stats(device: Device = None) -> None:
    """Starts the peaks of a device anew from what is alive now."""
    _C.reset_peak_memory_stats(index_of(device))


def reset_max_memory_allocated(device: Device = None) -> None:
    """The same as `reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Sets the totals of what was allocated and freed to zero."""
    _C.reset_accumulated_memory_stats(index_of(device))


def empty_cache() -> None:
    """Gives back memory that is kept for reuse. There is none: arrays are freed when their last user is done."""
    torch.accelerator.empty_cache()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free and total bytes of a device; those of the host on XLA's CPU device. Starts the runtime."""
    return _C.memory_info(index_of(device))


def device_memory_used(device: Device = None) -> int:
    """Bytes of a device in use by anyone, this process or not."""
    free, total = mem_get_info(device)
    return total - free


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """A table of the statistics, for people to read."""
    index = index_of(device)
    m = _C.memory_statistics(index)
    rows = [("bytes", m["allocated"], m["peak"], m["total_allocated"], m["total_freed"])]
    if not abbreviated:
        rows.append(("arrays", m["live"], m["peak_live"], m["allocations"], m["frees"]))
    lines = [
        f"Memory of tpu:{index}",
        f"{'':8}{'now':>18}{'peak':>18}{'allocated':>18}{'freed':>18}",
        *(f"{name:8}" + "".join(f"{n:>18,}" for n in numbers) for name, *numbers in rows),
    ]
    if _C.started():
        free, total = mem_get_info(index)
        lines.append(f"free {free:,} of {total:,} bytes")
    return "\n".join(lines)


def host_memory_stats() -> dict[str, int]:
    """Pinned host memory: bytes and numbers of blocks, now, at the peak, and in total."""
    return _C.host_memory_statistics()


def reset_peak_host_memory_stats() -> None:
    """Starts the peaks of `host_memory_stats` anew."""
    _C.reset_host_memory_stats(True)


def reset_accumulated_host_memory_stats() -> None:
    """Sets the totals of `host_memory_stats` to zero."""
    _C.reset_host_memory_stats(False)
