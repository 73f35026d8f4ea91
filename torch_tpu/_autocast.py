"""Makes bfloat16 the type of autocast on the device; PyTorch starts every thread with float16."""

from __future__ import annotations

import functools
import threading
from typing import Any

import torch

_thread = threading.local()


def install() -> None:
    """Sets the default for this thread now, and for another thread when it first enters autocast."""
    _set_default()
    autocast = torch.amp.autocast_mode.autocast
    original = autocast.__init__

    @functools.wraps(original)
    def with_default(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        if device_type == "tpu" and not hasattr(_thread, "set"):
            _set_default()
        original(self, device_type, *args, **kwargs)

    autocast.__init__ = with_default


def _set_default() -> None:
    torch.set_autocast_dtype("tpu", torch.bfloat16)
    _thread.set = True
