"""Decompositions of linear algebra over one LU factorisation.

PyTorch's gradients of these operators take it that the factors are those of the transposed matrix where the matrix is
real and contiguous. What that is, only the strides tell; so these are no entries of the operator table, which sees
values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def decompositions() -> dict[Any, Callable[..., Any]]:
    return {
        aten._linalg_det.default: det,
        aten._linalg_slogdet.default: slogdet,
        aten._linalg_solve_ex.default: solve_ex,
    }


def factor(a: Tensor) -> tuple[bool, Tensor, Tensor, Tensor]:
    """Whether the factors are those of the transposed matrix; LU, pivots, info."""
    transposed = a.is_contiguous() and not a.is_complex()
    return transposed, *aten.linalg_lu_factor_ex(a.mT if transposed else a)


def parity(pivots: Tensor) -> Tensor:
    """1 for an even number of row exchanges, -1 for an odd one; int64 [...]."""
    rows = torch.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype, device=pivots.device)
    return 1 - 2 * ((pivots != rows).sum(-1) % 2)


def det(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    _, lu, pivots, _ = factor(A)
    return lu.diagonal(0, -2, -1).prod(-1) * parity(pivots), lu, pivots


def slogdet(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    _, lu, pivots, _ = factor(A)
    diagonal = lu.diagonal(0, -2, -1)
    return diagonal.sgn().prod(-1) * parity(pivots), diagonal.abs().log().sum(-1), lu, pivots


def solve_ex(
    A: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    check_errors: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Errors are for the caller to check, from `info`."""
    transposed, lu, pivots, info = factor(A)
    vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    solution = aten.linalg_lu_solve(lu, pivots, B.unsqueeze(-1) if vector else B, left=left, adjoint=transposed)
    return solution.squeeze(-1) if vector else solution, lu, pivots, info
