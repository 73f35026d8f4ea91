"""torch.tpu: the device's functions, under the names that torch.cuda and torch.xpu use.

docs/device-module.md lists the names of torch.cuda that are left out, and why.
"""

from __future__ import annotations

from typing import Any

from torch_tpu import _C
from torch_tpu.tpu import (
    _utils,  # noqa: F401
    amp,
    memory,
    random,
    streams,
)

# PyTorch and Dynamo look these up by name.
from torch_tpu.tpu.devices import (  # noqa: F401
    DeviceProperties,
    _exchange_device,
    _is_in_bad_fork,
    _lazy_call,
    _lazy_init,
    _maybe_exchange_device,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_amp_supported_dtype,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    platform,
    set_device,
    supported_dtypes,
    synchronize,
)
from torch_tpu.tpu.memory import (
    device_memory_used,
    empty_cache,
    host_memory_stats,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
)
from torch_tpu.tpu.programs import cache_clear, cache_stats, compiles
from torch_tpu.tpu.random import (  # noqa: F401
    _get_rng_state_offset,
    _set_rng_state_offset,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_tpu.tpu.streams import (
    Event,
    Stream,
    StreamContext,
    _set_stream_by_id,  # noqa: F401
    current_stream,
    default_stream,
    is_current_stream_capturing,
    set_stream,
    stream,
)

__all__ = [
    "DeviceProperties",
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "cache_clear",
    "cache_stats",
    "can_device_access_peer",
    "compiles",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "get_amp_supported_dtype",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "host_memory_stats",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "platform",
    "random",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "supported_dtypes",
    "synchronize",
]

default_generators: tuple[Any, ...]
"""The default generator of each device."""
_initialized: bool


def __getattr__(name: str) -> Any:
    # Both change, or cost something to know, so they are asked for each time.
    if name == "default_generators":
        return random.default_generators()
    if name == "_initialized":
        return _C.started()
    raise AttributeError(f"module 'torch.tpu' has no attribute {name!r}")
