"""The sweep over PyTorch's operator samples: indexing, shaping, creation and more, in the other floats."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from sweep import checks, samples


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(("name", "dtype"), samples.cases("other", samples.FLOATS))
def test_operator(name: str, dtype: torch.dtype, judge: Callable[..., None]) -> None:
    judge(name, dtype, checks.run(samples.OPS[name], dtype))
