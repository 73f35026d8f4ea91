"""torch.tpu.amp: torch.amp with the device filled in."""

from __future__ import annotations

import functools
from typing import Any

import torch

custom_fwd = functools.partial(torch.amp.custom_fwd, device_type="tpu")
custom_bwd = functools.partial(torch.amp.custom_bwd, device_type="tpu")


class autocast(torch.amp.autocast):
    """`torch.autocast("tpu")`, in bfloat16 unless told otherwise."""

    def __init__(
        self, enabled: bool = True, dtype: torch.dtype = torch.bfloat16, cache_enabled: bool | None = None
    ) -> None:
        super().__init__("tpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """`torch.amp.GradScaler("tpu")`. float16 needs it; bfloat16 does not."""

    def __init__(self, **options: Any) -> None:
        super().__init__("tpu", **options)
