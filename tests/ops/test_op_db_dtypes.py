"""Every operator of PyTorch's sample data base in the dtypes beside float32: results."""

from __future__ import annotations

import pytest
import torch
from op_db import OPS, check, supported

DTYPES = (torch.int64, torch.bfloat16, torch.bool, torch.complex64)
CASES = [(name, dtype) for name, op in OPS.items() for dtype in DTYPES if supported(op, dtype)]


@pytest.mark.usefixtures("count_fallbacks")
@pytest.mark.parametrize(("name", "dtype"), CASES, ids=[f"{n}-{str(d).removeprefix('torch.')}" for n, d in CASES])
def test_dtype(name: str, dtype: torch.dtype) -> None:
    check(OPS[name], dtype)
