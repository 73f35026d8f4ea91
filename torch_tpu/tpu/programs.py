"""Compiled programs: how many, how long they took, where they came from."""

from __future__ import annotations

from typing import Any

from torch_tpu import _C

_COUNTERS = ("compiles", "disk_hits", "disk_misses", "disk_stores", "memory_hits", "memory_misses", "fallbacks")
_FALLBACK = "fallback:"


def cache_stats() -> dict[str, Any]:
    """Counts since the process started.

    compiles and compile_seconds, and slowest_compiles: (seconds, what for) of the ten that took longest; disk_hits,
    disk_misses and disk_stores of the cache on disk; memory_hits and memory_misses of the one in memory, for eager
    operators; fallbacks to the host, and fallback_ops by operator.
    """
    counters = _C.counters()
    stats: dict[str, Any] = {name: counters.get(name, 0) for name in _COUNTERS}
    stats["compile_seconds"] = counters.get("compile_us", 0) / 1e6
    stats["slowest_compiles"] = [(us / 1e6, why) for us, why in _C.slowest_compiles()]
    stats["fallback_ops"] = {k.removeprefix(_FALLBACK): n for k, n in counters.items() if k.startswith(_FALLBACK)}
    return stats


def compiles() -> int:
    """How many programs this process has compiled; programs from the cache on disk are not among them."""
    return _C.counters().get("compiles", 0)


def cache_clear(disk: bool = False) -> None:
    """Forgets the compiled programs in memory, and with `disk` those on disk too."""
    _C.cache_clear()
    if disk:
        _C.disk_clear()
