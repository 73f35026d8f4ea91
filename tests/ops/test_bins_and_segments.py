"""Histograms and reductions over segments: results, edges and refusals as CPU torch has them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from comparison import on_device, same

nan, inf = float("nan"), float("inf")


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


# ---- histograms
@pytest.mark.parametrize("density", [False, True])
def test_histogram(density: bool) -> None:
    x, weight, edges = floats(300), floats(300).abs(), torch.tensor([-2.0, -0.5, 0, 0.25, 3])
    x[:4] = torch.tensor([-2.0, 3, 0.25, nan])
    finite = torch.nan_to_num(x)
    on_device(lambda d: torch.histogram(x.to(d), edges.to(d), density=density))
    on_device(lambda d: torch.histogram(x.to(d), edges.to(d), weight=weight.to(d), density=density))
    on_device(lambda d: torch.histogram(x.to(d), 7, range=(-1.0, 1.0), density=density))
    on_device(lambda d: torch.histogram(finite.to(d), 20, weight=weight.to(d), density=density))
    on_device(lambda d: torch.histogram(finite.to(d).view(30, 10).t(), 5, density=density))
    on_device(lambda d: torch.histogram(finite.double().to(d), 5, density=density))


def test_histogram_of_points() -> None:
    x, weight = floats(200, 3), floats(200).abs()
    edges = [torch.linspace(-2, 2, 4), torch.tensor([-1.0, 0, 0.5, 1.5]), torch.linspace(-1, 3, 3)]

    def program(device: str) -> list[torch.Tensor]:
        points, bins = x.to(device), [e.to(device) for e in edges]
        hist, used = torch.histogramdd(points, bins=[3, 4, 2], weight=weight.to(device), density=True)
        counted, given = torch.histogramdd(points, bins=bins)
        ranged, cut = torch.histogramdd(points, bins=2, range=[-1, 1, -2, 2, 0, 1])
        return [hist, *used, counted, *given, ranged, *cut]

    on_device(program)


def test_histogram_out() -> None:
    x = floats(50)

    def program(device: str) -> tuple[torch.Tensor, torch.Tensor]:
        out = torch.empty(3, device=device), torch.empty(0, device=device)
        torch.histogram(x.to(device), 3, out=out)
        return out

    on_device(program)


def test_equal_ends() -> None:
    on_device(lambda d: torch.histogram(torch.ones(5, device=d), 4))
    on_device(lambda d: torch.histogram(torch.ones(0, device=d), 4))
    on_device(lambda d: torch.histc(torch.ones(5, device=d), 4))
    on_device(lambda d: torch.histc(torch.ones(0, device=d), 4))
    on_device(lambda d: torch.histc(floats(99).to(d), 10, -1, 1.5))


def test_histograms_that_are_refused() -> None:
    for ends in ([nan, 1], [inf, 1]):
        same(lambda d, ends=ends: torch.histc(torch.tensor(ends, device=d), 3))
        same(lambda d, ends=ends: torch.histogram(torch.tensor(ends, device=d), 3))
    same(lambda d: torch.histc(torch.ones(3, device=d), 0))
    same(lambda d: torch.histc(torch.ones(3, device=d), 3, 3, 1))
    same(lambda d: torch.histogram(torch.ones(3, device=d), 0))
    same(lambda d: torch.histogram(torch.ones(3, dtype=torch.long, device=d), 3))
    same(lambda d: torch.histogram(torch.ones(3, device=d), 3, range=(0.0, 1, 2)))
    same(lambda d: torch.histogram(torch.ones(3, device=d), torch.ones(1, 1, device=d)))
    same(lambda d: torch.histogram(torch.ones(3, device=d), torch.ones(1, device=d)))
    same(lambda d: torch.histogram(torch.ones(3, device=d), torch.ones(2, dtype=torch.double, device=d)))
    same(lambda d: torch.histogram(torch.ones(3, device=d), 3, weight=torch.ones(2, device=d)))
    same(lambda d: torch.histogramdd(torch.ones(3, 2, device=d), [3]))


# ---- segments
REDUCTIONS = ["sum", "mean", "prod", "max", "min"]


def segmented(device: str, data: torch.Tensor, reduce: str, sign: float = 1, **options: Any) -> list[torch.Tensor]:
    """The reduction and the gradient of its data under a gradient that differs from element to element."""
    x = data.detach().to(device).requires_grad_()
    options = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    y = torch.segment_reduce(x, reduce, **options)
    y.backward(sign * torch.arange(1.0, y.numel() + 1, device=device).view(y.shape))
    assert x.grad is not None
    return [y.detach(), x.grad]


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_segments(reduce: str) -> None:
    data = torch.tensor([1.0, 3, 3, 0, 0, 2, nan, 4, nan, nan, 0, 5])
    for options in (
        {"lengths": torch.tensor([3, 0, 2, 3, 4])},
        {"lengths": torch.tensor([12])},
        {"offsets": torch.tensor([0, 3, 3, 9, 12])},
        {"lengths": torch.tensor([3, 0, 9], dtype=torch.int32), "initial": 2.0},
    ):
        for sign in (1, -1):
            on_device(lambda d, o=options, s=sign: segmented(d, data, reduce, s, **o))


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_segments_of_an_inner_dimension(reduce: str) -> None:
    data = floats(2, 6, 3)
    on_device(lambda d: segmented(d, data, reduce, lengths=torch.tensor([1, 0, 5]).expand(2, 3), axis=1))
    on_device(lambda d: segmented(d, data, reduce, lengths=torch.tensor([[2, 4], [5, 1]]), axis=1))
    on_device(lambda d: segmented(d, data, reduce, lengths=torch.tensor([1, 1]), axis=0))


def test_segments_that_are_refused() -> None:
    data = torch.arange(6.0)
    for options in (
        {"lengths": torch.tensor([2, 3])},
        {"lengths": torch.tensor([-2, 8])},
        {},
        {"lengths": torch.tensor([6.0])},
        {"lengths": torch.tensor([6]), "indices": torch.tensor([0, 6])},
        {"lengths": torch.tensor([[6]])},
    ):
        same(lambda d, o=options: torch.segment_reduce(data.to(d), "sum", **{k: v.to(d) for k, v in o.items()}))
    same(lambda d: torch.segment_reduce(data.to(d), "median", lengths=torch.tensor([6], device=d)))
    same(lambda d: torch.segment_reduce(data.long().to(d), "sum", lengths=torch.tensor([6], device=d)))
