"""What Dynamo asks of the device. Imported right after torch._dynamo.device_interface."""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo import device_interface

from torch_tpu import tpu
from torch_tpu.tpu.devices import _exchange_device, _maybe_exchange_device
from torch_tpu.tpu.streams import _set_stream_by_id


class Interface(device_interface.DeviceInterface):
    """The functions of torch.tpu under the names Dynamo uses."""

    device = tpu.device
    Event = tpu.Event
    Stream = tpu.Stream

    class Worker:
        """Answers in subprocesses that compile, where the device itself is out of reach."""

        @staticmethod
        def set_device(device: int) -> None:
            device_interface.caching_worker_current_devices["tpu"] = device

        @staticmethod
        def current_device() -> int:
            return device_interface.caching_worker_current_devices.get("tpu", tpu.current_device())

        @staticmethod
        def get_device_properties(device: Any = None) -> tpu.DeviceProperties:
            return tpu.get_device_properties(device)

    current_device = staticmethod(tpu.current_device)
    set_device = staticmethod(tpu.set_device)
    device_count = staticmethod(tpu.device_count)
    is_available = staticmethod(tpu.is_available)
    stream = staticmethod(tpu.stream)
    current_stream = staticmethod(tpu.current_stream)
    set_stream = staticmethod(tpu.set_stream)
    _set_stream_by_id = staticmethod(_set_stream_by_id)
    synchronize = staticmethod(tpu.synchronize)
    get_device_properties = staticmethod(tpu.get_device_properties)
    memory_allocated = staticmethod(tpu.memory_allocated)
    exchange_device = staticmethod(_exchange_device)
    maybe_exchange_device = staticmethod(_maybe_exchange_device)

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        return tpu.current_stream(device_idx).stream_id

    @staticmethod
    def get_compute_capability(device: Any = None) -> str:
        return tpu.get_device_name(device)

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return tpu.is_bf16_supported(including_emulation)

    @classmethod
    def is_dtype_supported(cls, dtype: torch.dtype, including_emulation: bool = False) -> bool:
        return dtype in tpu.supported_dtypes()

    @staticmethod
    def is_triton_capable(device: Any = None) -> bool:
        return False

    @staticmethod
    def raise_if_triton_unavailable(device: Any = None) -> None:
        raise RuntimeError("Triton kernels do not run on the tpu device: use torch.compile(backend='tpu')")


def register() -> None:
    """Registers it for "tpu" and each index, after PyTorch's own interfaces, one of which would replace it."""
    device_interface.get_registered_device_interfaces()
    device_interface.register_interface_for_device("tpu", Interface)


register()
