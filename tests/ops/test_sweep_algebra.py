"""The sweep over PyTorch's operator samples: reductions, linear algebra and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from sweep import checks, samples


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(("name", "dtype"), samples.cases("algebra", [torch.float32]))
def test_operator(name: str, dtype: torch.dtype, judge: Callable[..., None]) -> None:
    judge(name, dtype, checks.run(samples.OPS[name], dtype))
