"""The sweep over PyTorch's optimizers: every option set and implementation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from sweep import optimizers


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(("name", "dtype"), optimizers.cases())
def test_optimizer(name: str, dtype: torch.dtype, judge: Callable[..., None]) -> None:
    judge(name, dtype, optimizers.run(optimizers.OPTIMIZERS[name], dtype))
