"""The same program on the device and on the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch


def same(program: Callable[[str], Any], **tolerance: float) -> None:
    """The program gives the same values, dtypes and shapes on both devices, or raises the same kind of exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # empty reductions, half complex numbers: CPU torch warns as much
        try:
            expected = program("cpu")
        except Exception as error:
            with pytest.raises(type(error)):
                program("tpu")
            return
        if isinstance(expected, torch.Tensor) and expected.dtype == torch.complex32:
            with pytest.raises(NotImplementedError, match="ComplexHalf"):  # no compiler has it
                program("tpu")
            return
        found = program("tpu")
    for a, b in zip(*(x if isinstance(x, (tuple, list)) else (x,) for x in (expected, found)), strict=True):
        torch.testing.assert_close(b.cpu() if isinstance(b, torch.Tensor) else b, a, equal_nan=True, **tolerance)


def on_device(program: Callable[[str], Any], **tolerance: float) -> None:
    """same(), and no operator of the program runs on the host."""
    before = dict(torch.tpu.cache_stats()["fallback_ops"])
    same(program, **tolerance)
    assert dict(torch.tpu.cache_stats()["fallback_ops"]) == before
