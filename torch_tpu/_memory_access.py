"""What PyTorch does with the address of a tensor's memory, for a device whose memory has none.

Pickling of storages goes through the host. Sharing between processes and DLPack are refused with a reason, where
PyTorch would do nothing, or hand out an address that leads nowhere.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from multiprocessing import reduction
from typing import Any

import torch
import torch.multiprocessing.reductions as reductions
import torch.utils.dlpack

NOT_SHARED = (
    "a tensor on the tpu device cannot be shared between processes: its memory belongs to the runtime of this one. "
    "Move it to the CPU first, with tensor.cpu(), and back to the device in the process that receives it."
)
NO_DLPACK = (
    "a tensor on the tpu device cannot be exported through DLPack: its memory has no address that another library "
    "could read. Use tensor.cpu() first."
)


def install() -> None:
    """Wraps the functions concerned; other devices pass through."""
    storage = torch.UntypedStorage
    storage.share_memory_ = _before(storage.share_memory_, _refuse_sharing)
    reduction.register(storage, _before(reductions.reduce_storage, _refuse_sharing))
    torch.Tensor.__dlpack__ = _before(torch.Tensor.__dlpack__, _refuse_dlpack)
    torch.Tensor.__dlpack_device__ = _before(torch.Tensor.__dlpack_device__, _refuse_dlpack)
    torch.to_dlpack = torch.utils.dlpack.to_dlpack = _before(torch.utils.dlpack.to_dlpack, _refuse_dlpack)
    storage._write_file = _through_the_host(storage._write_file, read=False)
    storage._set_from_file = _through_the_host(storage._set_from_file, read=True)


def _before(function: Callable[..., Any], check: Callable[[Any], None]) -> Callable[..., Any]:
    @functools.wraps(function)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.device.type == "tpu":
            check(self)
        return function(self, *args, **kwargs)

    return checked


def _refuse_sharing(_: Any) -> None:
    raise RuntimeError(NOT_SHARED)


def _refuse_dlpack(_: Any) -> None:
    raise BufferError(NO_DLPACK)


def _through_the_host(function: Callable[..., Any], read: bool) -> Callable[..., Any]:
    """A method that moves a storage to or from a file, made to work on a copy in host memory."""

    @functools.wraps(function)
    def moved(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.device.type != "tpu":
            return function(self, *args, **kwargs)
        host = torch.UntypedStorage(self.nbytes()) if read else self.cpu()
        result = function(host, *args, **kwargs)
        if not read:
            return result
        self.copy_(host)
        return self

    return moved
