"""Reductions over awkward sizes, and how much they lose in half floats: never more than CPU torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

# Empty, one, a prime, and one more than a power of two that float32 cannot count beyond.
SIZES = (0, 1, 1009, 2**24 + 1)
HALVES = (torch.bfloat16, torch.float16)

# name -> (reduction, relative tolerance against the float64 result)
FLOATS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], float]] = {
    "sum": (torch.sum, 1e-5),
    "mean": (torch.mean, 1e-5),
    "nansum": (torch.nansum, 1e-5),
    "var": (torch.var, 1e-5),
    "std of all": (lambda x: x.std(correction=0), 1e-5),
    "norm": (torch.linalg.vector_norm, 1e-5),
    "norm 1": (lambda x: torch.linalg.vector_norm(x, 1), 1e-5),
    "logsumexp": (lambda x: x.logsumexp(0), 1e-5),
    "amax": (torch.amax, 0),
    "argmax": (torch.argmax, 0),
    "argmin": (torch.argmin, 0),
    "count_nonzero": (torch.count_nonzero, 0),
    "any": (torch.any, 0),
    "all": (torch.all, 0),
    "last of cumsum": (lambda x: x.cumsum(0)[-1:], 1e-4),
}
INTEGERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": torch.sum,
    "sum in place": lambda x: x.sum(dtype=x.dtype),
    "prod": torch.prod,
    "amin": torch.amin,
    "argmax": torch.argmax,
    "any": torch.any,
    "last of cumsum": lambda x: x.cumsum(0)[-1:],
}


def values(size: int) -> torch.Tensor:
    """Positive, so that sums do not cancel; distinct at their largest and smallest."""
    return torch.rand(size, generator=torch.Generator().manual_seed(size)) + 0.5


def outcome(reduction: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Any:
    """The result on the CPU, or the kind of exception."""
    try:
        return reduction(x).cpu()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
def test_floats(name: str, size: int) -> None:
    reduction, tolerance = FLOATS[name]
    x = values(size)
    expected, found = outcome(reduction, x.double()), outcome(reduction, x.to("tpu"))
    if isinstance(expected, type):
        assert found is expected
        return
    assert found.dtype == reduction(x).dtype
    torch.testing.assert_close(found.double(), expected.double(), rtol=tolerance, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str, dtype: torch.dtype) -> None:
    for size in SIZES:
        x = (values(size) * 100).to(dtype)
        expected, found = outcome(INTEGERS[name], x), outcome(INTEGERS[name], x.to("tpu"))
        if isinstance(expected, type):
            assert found is expected, size
        else:
            torch.testing.assert_close(found, expected, rtol=0, atol=0, msg=lambda m, size=size: f"{size}: {m}")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (7, 1009), (1009, 7)], ids=str)
@pytest.mark.parametrize("dim", [0, 1, (0, 1)], ids=str)
def test_dimensions(shape: tuple[int, int], dim: int | tuple[int, int]) -> None:
    x = torch.rand(shape) + 0.5
    for reduction in (torch.sum, torch.mean, torch.amax, torch.linalg.vector_norm):
        for keepdim in (False, True):
            expected = outcome(lambda t, r=reduction, k=keepdim: r(t, dim=dim, keepdim=k), x)
            found = outcome(lambda t, r=reduction, k=keepdim: r(t, dim=dim, keepdim=k), x.to("tpu"))
            if isinstance(expected, type):
                assert found is expected
            else:
                torch.testing.assert_close(found, expected, equal_nan=True)


# name -> a program whose result is the more exact, the wider it accumulates
ACCUMULATIONS: dict[str, Callable[..., torch.Tensor]] = {
    "sum": lambda x, y: x.sum(1),
    "mean": lambda x, y: x.mean(1),
    "var": lambda x, y: x.var(1),
    "norm": lambda x, y: torch.linalg.vector_norm(x, dim=1),
    "cumsum": lambda x, y: x.cumsum(1),
    "softmax": lambda x, y: x.softmax(1),
    "log_softmax": lambda x, y: x.log_softmax(1),
    "logsumexp": lambda x, y: x.logsumexp(1),
    "layer_norm": lambda x, y: torch.nn.functional.layer_norm(x, x.shape[1:]),
    "matmul": lambda x, y: x @ y,
    "addmm": lambda x, y: torch.addmm(x[:, :8], x, y),
    "baddbmm": lambda x, y: torch.baddbmm(x[None, :, :8], x[None], y[None]),
    "conv1d": lambda x, y: torch.nn.functional.conv1d(x[None], y.t()[:, None, :5].expand(-1, len(x), -1)),
    "attention": lambda x, y: torch.nn.functional.scaled_dot_product_attention(x[None], x[None] * 0.1, x[None]),
    "dot": lambda x, y: torch.dot(x[0], x[1]),
    "index_add": lambda x, y: x[:1].clone().index_add(0, torch.zeros(len(x), dtype=torch.int64, device=x.device), x),
    "embedding gradient": lambda x, y: torch.ops.aten.embedding_dense_backward(
        x, torch.zeros(len(x), dtype=torch.int64, device=x.device), 1, -1, False
    ),
    "avg_pool1d": lambda x, y: torch.nn.functional.avg_pool1d(x[None], 500),
    "mse_loss": lambda x, y: torch.nn.functional.mse_loss(x, x.flip(0) * 0.5),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", ACCUMULATIONS)
def test_halves_lose_no_more_than_on_the_cpu(name: str, dtype: torch.dtype) -> None:
    program = ACCUMULATIONS[name]
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.rand(64, 2000, generator=generator).to(dtype), torch.rand(2000, 8, generator=generator).to(dtype))
    exact = program(x.double(), y.double())
    host, device = program(x, y), program(x.to("tpu"), y.to("tpu")).cpu()
    assert device.dtype == host.dtype

    def loss(t: torch.Tensor) -> float:
        return ((t.double() - exact).abs().max() / exact.abs().max()).item()

    # A rounding of the result itself is nobody's fault.
    assert loss(device) <= max(loss(host), torch.finfo(dtype).eps / 2) * 1.01
