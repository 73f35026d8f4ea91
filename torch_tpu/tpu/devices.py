"""Which devices there are, what they are, and which one is current."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torch_tpu import _C
from torch_tpu.tpu._utils import Device, _get_device_index, index_of

# Chips of these kinds show two TensorCores as one device.
TWO_CORE_KINDS = ("TPU v4", "TPU v5", "TPU v5p")

_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"),
)


@dataclass(frozen=True)
class DeviceProperties:
    """What `get_device_properties` returns. Memory is in bytes."""

    name: str
    platform: str  # "tpu" or "cpu"
    platform_version: str
    total_memory: int
    multi_processor_count: int  # TensorCores; processors of the host on XLA's CPU device
    id: int  # of the device among all those of the job
    description: str


def is_available() -> bool:
    """Whether there is a device to use. Starts nothing and never raises."""
    return _C.available()


def device_count() -> int:
    """The number of devices of this process; 0 where none can be used. Starts nothing unless a custom plugin is set."""
    try:
        return _C.device_count()
    except (RuntimeError, ValueError):
        return 0


def is_initialized() -> bool:
    """Whether the runtime has started in this process."""
    return _C.started() and not _C.forked()


def init() -> None:
    """Starts the runtime, which the first use of the device does by itself. RuntimeError says why it cannot."""
    _C.start()


def _lazy_init() -> None:
    init()


def _lazy_call(call: Callable[[], Any], **_: Any) -> None:
    call()  # seeds and the like need no runtime


def _is_in_bad_fork() -> bool:
    """True in a child process that was forked after the runtime had started: the device cannot be used there."""
    return _C.forked()


def current_device() -> int:
    """The index of this thread's current device."""
    return _C.current_device()


def set_device(device: Device) -> None:
    """Makes a device this thread's current one; a negative index leaves it. RuntimeError when it does not exist."""
    index = _get_device_index(device, optional=True)
    if index >= 0:
        _C.set_current_device(index)


def _exchange_device(index: int) -> int:
    before = _C.current_device()
    if index >= 0:
        _C.set_current_device(index)
    return before


def _maybe_exchange_device(index: int) -> int:
    return _exchange_device(index)


class device:
    """Context manager that makes a device current; None or a negative index changes nothing."""

    def __init__(self, device: Device) -> None:
        self.idx = -1 if device is None else _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, *_: object) -> None:
        _exchange_device(self.prev_idx)


class device_of(device):
    """The same, with the device of a tensor or storage; nothing when that is on another kind of device."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == "tpu" else -1)


def synchronize(device: Device = None) -> None:
    """Waits until a device has finished all work given to it, and raises the errors of that work."""
    _C.synchronize(index_of(device))


def platform() -> str:
    """ "tpu", or "cpu" for XLA's CPU device. Starts the runtime."""
    return _C.platform()


def get_device_name(device: Device = None) -> str:
    """The name of a device, such as "TPU v6 lite"."""
    index = index_of(device)
    return "XLA CPU" if _C.platform() == "cpu" else _C.device_kind(index)


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Name, memory and cores of a device."""
    index = index_of(device)
    kind, on_host = _C.device_kind(index), _C.platform() == "cpu"
    cores = len(os.sched_getaffinity(0)) if on_host else 2 if kind in TWO_CORE_KINDS else 1
    return DeviceProperties(
        name=get_device_name(index),
        platform=_C.platform(),
        platform_version=_C.platform_version(),
        total_memory=_C.memory_info(index)[1],
        multi_processor_count=cores,
        id=_C.device_id(index),
        description=_C.device_description(index),
    )


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether a tensor can be copied from one device to the other without the host: true between two devices."""
    return index_of(device) != index_of(peer_device)


def supported_dtypes() -> frozenset[torch.dtype]:
    """The element types a tensor on the device can have."""
    return frozenset(getattr(torch, name) for name in _DTYPES)


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types autocast may use; bfloat16 is the one TPUs compute in."""
    return [torch.bfloat16, torch.float16]


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """bfloat16 is native on TPUs; XLA's CPU device computes it in float32 and rounds."""
    return including_emulation or _C.platform() != "cpu"


def is_tf32_supported() -> bool:
    """TensorFloat-32 is a type of NVIDIA's; float32 matrix products follow torch.set_float32_matmul_precision."""
    return False
