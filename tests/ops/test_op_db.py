"""Every operator of PyTorch's sample data base in float32: results, gradients, in-place and out= forms."""

from __future__ import annotations

import pytest
import torch
from op_db import OPS, check, supported


@pytest.mark.usefixtures("count_fallbacks")
@pytest.mark.parametrize("name", [name for name, op in OPS.items() if supported(op, torch.float32)])
def test_float32(name: str) -> None:
    check(OPS[name], torch.float32)
