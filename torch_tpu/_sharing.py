"""Refuses to share tensors of the device between processes.

Without this, share_memory_() would do nothing and say so nowhere, and a queue would fail on a file descriptor.
"""

from __future__ import annotations

import functools
from multiprocessing import reduction
from typing import Any

import torch
import torch.multiprocessing.reductions as reductions

MESSAGE = (
    "a tensor on the tpu device cannot be shared between processes: its memory belongs to the runtime of this one. "
    "Move it to the CPU first, with tensor.cpu(), and back to the device in the process that receives it."
)


def install() -> None:
    """Wraps sharing and pickling of storages."""
    original_share = torch.UntypedStorage.share_memory_
    original_reduce = reductions.reduce_storage

    @functools.wraps(original_share)
    def share_memory_(self: torch.UntypedStorage, *args: Any, **kwargs: Any) -> Any:
        _refuse(self)
        return original_share(self, *args, **kwargs)

    @functools.wraps(original_reduce)
    def reduce_storage(storage: Any) -> Any:
        _refuse(storage)
        return original_reduce(storage)

    torch.UntypedStorage.share_memory_ = share_memory_
    reduction.register(torch.UntypedStorage, reduce_storage)


def _refuse(storage: Any) -> None:
    if storage.device.type == "tpu":
        raise RuntimeError(MESSAGE)
