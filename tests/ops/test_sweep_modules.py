"""The sweep over PyTorch's modules: results, gradients and buffers, in training and in evaluation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from sweep import modules


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(("name", "dtype"), modules.cases())
def test_module(name: str, dtype: torch.dtype, judge: Callable[..., None]) -> None:
    judge(name, dtype, modules.run(modules.MODULES[name], dtype))
