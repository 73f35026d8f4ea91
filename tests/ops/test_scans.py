"""Prefix scans and what is made of them, over extents on both sides of every case they distinguish."""

from __future__ import annotations

import pytest
import torch
from comparison import on_device

EXTENTS = [1, 2, 7, 8, 9, 16, 17, 100, 128, 129, 255, 256, 257, 1000, 5000]
nan = float("nan")


def numbers(*shape: int, limit: int = 5) -> torch.Tensor:
    return torch.randint(-limit, limit, shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("n", EXTENTS)
def test_extents_and_the_dimensions_around_them(n: int) -> None:
    for shape, dim in [((n,), 0), ((3, n), 1), ((40, n), 1), ((n, 3), 0), ((n, 40), 0), ((2, n, 5), 1)]:
        x = numbers(*shape)
        on_device(lambda d, x=x, dim=dim: x.to(d).cumsum(dim))
        on_device(lambda d, x=x, dim=dim: x.float().to(d).cummax(dim))


def test_dtypes() -> None:
    x = numbers(3, 300)
    for dtype in (torch.bool, torch.int8, torch.uint8, torch.int32, torch.float64, torch.complex64):
        on_device(lambda d, dtype=dtype: x.to(dtype).to(d).cumsum(1))
    for dtype in (torch.bool, torch.int8, torch.uint8, torch.float64, torch.bfloat16):
        on_device(lambda d, dtype=dtype: x.to(dtype).to(d).cummin(1))
    on_device(lambda d: torch.randn(2, 300, generator=torch.Generator().manual_seed(0)).to(d).logcumsumexp(1))


def test_what_is_no_number_spreads_forwards_only() -> None:
    x = torch.ones(600)
    x[300] = nan
    x[400] = float("inf")
    on_device(lambda d: x.to(d).cumsum(0))
    on_device(lambda d: x.to(d).cumprod(0))
    on_device(lambda d: x.to(d).cummax(0))
    on_device(lambda d: torch.tensor([1.0, nan, 2, nan, 3] * 60, device=d).cummax(0))
    on_device(lambda d: torch.tensor([0.0, -0.0, -1, 0.0] * 60, device=d).cummax(0))


@pytest.mark.parametrize("n", [1, 100, 3000])
def test_masks(n: int) -> None:
    x = numbers(n)
    for threshold in (-6, 0, 4, 6):
        on_device(lambda d, t=threshold: (x.to(d) > t).nonzero())
        on_device(lambda d, t=threshold: x.to(d).masked_select(x.to(d) > t))
        on_device(lambda d, t=threshold: x.to(d).masked_scatter(x.to(d) > t, torch.arange(n, device=d)))
        on_device(lambda d, t=threshold: torch.nonzero_static(x.to(d) > t, size=10, fill_value=-7))


def test_runs() -> None:
    counts = numbers(500).abs()
    counts[:3] = 0
    counts[-3:] = 0
    on_device(lambda d: torch.repeat_interleave(counts.to(d)))
    on_device(lambda d: torch.repeat_interleave(torch.zeros(3, dtype=torch.long, device=d)))
    on_device(lambda d: torch.unique_consecutive(counts.to(d), return_inverse=True, return_counts=True))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_that_are_empty(mode: str) -> None:
    weight = numbers(20, 6).float()
    offsets = torch.tensor([0, 0, 3, 3, 3, 7, 10, 10])

    def program(device: str) -> list[torch.Tensor]:
        w = weight.detach().to(device).requires_grad_()
        y = torch.nn.functional.embedding_bag(torch.arange(10, device=device), w, offsets.to(device), mode=mode)
        y.square().sum().backward()
        assert w.grad is not None
        return [y.detach(), w.grad]

    on_device(program)
