"""What an operator owes beside its formula: type promotion, overflow, NaN, ties, empty tensors, precision."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import pytest
import torch
from comparison import same

DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.complex128,
)  # fmt: skip
nan, inf = float("nan"), float("inf")


def values(dtype: torch.dtype, device: str) -> torch.Tensor:
    return torch.tensor([1, 0, 3, 2], device=device).to(dtype)


# ---- promotion
@pytest.mark.parametrize("name", ["add", "mul", "truediv", "lt", "eq"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_promotion_of_two_tensors(dtype: torch.dtype, name: str) -> None:
    function = getattr(operator, name)
    for other in DTYPES:
        same(lambda d, other=other: function(values(dtype, d), values(other, d)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_promotion_with_numbers_and_0d_tensors(dtype: torch.dtype) -> None:
    for number in (True, 2, 2.5, 1 + 2j):
        same(lambda d, n=number: values(dtype, d) * n)
        same(lambda d, n=number: n + values(dtype, d))
    for other in DTYPES:
        same(lambda d, other=other: values(dtype, d) + torch.tensor(2, device=d).to(other))
        same(lambda d, other=other: values(dtype, d) + torch.tensor(2).to(other))  # a number from the CPU


def test_in_place_results_must_fit() -> None:
    same(lambda d: values(torch.int32, d).add_(1.5))
    same(lambda d: values(torch.float16, d).add_(values(torch.float64, d)))
    same(lambda d: values(torch.bool, d).mul_(2))
    same(lambda d: torch.add(values(torch.int32, d), 1, out=torch.empty(4, device=d)))
    same(lambda d: torch.add(values(torch.float32, d), 1, out=torch.empty(4, device=d, dtype=torch.int32)))


# ---- integers
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
def test_integers_wrap(dtype: torch.dtype) -> None:
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max

    def ends(device: str) -> torch.Tensor:
        return torch.tensor([low, low + 1, high - 1, high], dtype=dtype, device=device)

    same(lambda d: ends(d) + 1)
    same(lambda d: ends(d) - 1)
    same(lambda d: ends(d) * 3)
    same(lambda d: -ends(d))
    same(lambda d: ends(d).abs())
    same(lambda d: ends(d).pow(2))
    same(lambda d: ends(d).sum())
    same(lambda d: ends(d).prod())
    same(lambda d: ends(d).cumsum(0))
    same(lambda d: ends(d) // 3)
    same(lambda d: ends(d) % 7)
    same(lambda d: torch.div(ends(d), 3, rounding_mode="trunc"))
    same(lambda d: ends(d).bitwise_not())
    same(lambda d: ends(d) << 1)
    same(lambda d: ends(d) >> 1)
    same(lambda d: ends(d).sort().values)


def test_division_of_negative_integers_rounds_down() -> None:
    for a, b in itertools.product((-7, 7), (-2, 2)):
        same(lambda d, a=a, b=b: torch.tensor([a], device=d) // b)
        same(lambda d, a=a, b=b: torch.tensor([a], device=d) % b)
        same(lambda d, a=a, b=b: torch.fmod(torch.tensor([a], device=d), b))
        same(lambda d, a=a, b=b: torch.tensor([float(a)], device=d) % b)


# ---- NaN, infinities, signed zeros, ties
SPECIAL = [nan, inf, -inf, 0.0, -0.0, 1.5, -2.5, 0.5]


@pytest.mark.parametrize(
    "name",
    "max min argmax argmin sum prod mean any all amax amin sort cummax cummin cumsum logsumexp median nanmedian "
    "nansum isnan isfinite sign sgn round floor ceil trunc frac relu sigmoid tanh exp log sqrt rsqrt reciprocal "
    "signbit nan_to_num abs neg softmax log1p expm1 unique".split(),
)
def test_special_values(name: str) -> None:
    dims = {
        "cummax": (0,),
        "cummin": (0,),
        "cumsum": (0,),
        "logsumexp": (0,),
        "amax": (0,),
        "amin": (0,),
        "softmax": (0,),
    }
    for data in (SPECIAL, SPECIAL[1:], [0.0, -0.0], [2.0, 1.0, 2.0, 1.0]):
        same(lambda d, data=data: getattr(torch.tensor(data, device=d), name)(*dims.get(name, ())))


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin", "atan2", "fmod", "remainder", "copysign",
                                  "hypot", "pow", "div", "eq", "lt", "floor_divide", "nextafter", "logaddexp",
                                  "xlogy"])  # fmt: skip
def test_special_values_in_pairs(name: str) -> None:
    pairs = list(itertools.product(SPECIAL, SPECIAL))
    left, right = ([p[i] for p in pairs] for i in (0, 1))
    same(lambda d: getattr(torch, name)(torch.tensor(left, device=d), torch.tensor(right, device=d)))


@pytest.mark.parametrize("name", ["neg", "abs", "sqrt", "round", "trunc", "relu", "sign", "sin", "tanh", "ceil"])
def test_signs_of_zeros(name: str) -> None:
    same(lambda d: torch.signbit(getattr(torch, name)(torch.tensor([0.0, -0.0], device=d))))


def test_signs_of_zeros_in_arithmetic() -> None:
    for f in (
        lambda x: x * -1,
        lambda x: x + 0.0,
        lambda x: x - 0.0,
        lambda x: x + x,
        lambda x: 0 - x,
        lambda x: x / -3,
    ):
        same(lambda d, f=f: torch.signbit(f(torch.tensor([0.0, -0.0], device=d))))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool], ids=str)
def test_the_first_of_equals_wins(dtype: torch.dtype) -> None:
    def x(device: str) -> torch.Tensor:
        return torch.tensor([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 1, 0]], device=device).to(dtype)

    same(lambda d: x(d).max(1))
    same(lambda d: x(d).min(1))
    same(lambda d: x(d).max(0))
    if dtype != torch.bool:
        same(lambda d: x(d).argmax(1))
        same(lambda d: x(d).argmin(0))
    same(lambda d: x(d).sort(dim=1, stable=True))
    same(lambda d: x(d).sort(dim=1, stable=True, descending=True))


def test_rounding_ties_go_to_even() -> None:
    same(lambda d: torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5], device=d).round())
    same(lambda d: torch.tensor([0.25, 0.35, 12345.678], device=d).round(decimals=1))
    same(lambda d: torch.tensor([1.00390625, 1.01171875, 1.0078125], device=d).to(torch.bfloat16))


def test_conversions() -> None:
    for source, target in itertools.product(
        (torch.float32, torch.float64, torch.bfloat16), (torch.int32, torch.int64, torch.int16)
    ):
        same(lambda d, s=source, t=target: torch.tensor([1.9, -1.9, 300.5, 0.0], device=d).to(s).to(t))
    same(lambda d: torch.tensor([nan, inf, 0.1, 0.0], device=d).to(torch.bool))
    same(lambda d: torch.tensor([300, -1, 255, 256], device=d).to(torch.uint8))
    same(lambda d: torch.tensor([1e39, -1e39, 1e-46], device=d, dtype=torch.float64).float())
    same(lambda d: torch.tensor([1 + 2j], device=d).abs())


# ---- empty tensors
@pytest.mark.parametrize(
    "name",
    "sum prod mean any all sort cumsum exp relu unique nonzero flatten t std var logsumexp max min argmax argmin "
    "median amax amin norm softmax log_softmax topk flip unbind contiguous clone tolist trace diag triu".split(),
)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)], ids=str)
def test_empty_tensors(name: str, shape: tuple[int, ...]) -> None:
    def program(device: str, *arguments: Any) -> Any:
        out = getattr(torch.zeros(shape, device=device), name)(*arguments)
        return torch.tensor(out) if isinstance(out, list) else out

    with_dim = {"logsumexp", "cumsum", "softmax", "log_softmax", "flip"}
    if name == "topk":
        same(lambda d: program(d, 0))
        return
    if name not in with_dim:
        same(program)
    if name in with_dim or name in {
        "sum",
        "prod",
        "mean",
        "any",
        "all",
        "max",
        "min",
        "argmax",
        "argmin",
        "median",
        "amax",
        "amin",
    }:
        same(lambda d: program(d, 0))
        same(lambda d: program(d, -1))


def test_products_of_empty_matrices() -> None:
    for m, k, n in itertools.product((0, 2), repeat=3):
        same(lambda d, m=m, k=k, n=n: torch.ones(m, k, device=d) @ torch.ones(k, n, device=d))
        same(lambda d, m=m, k=k, n=n: torch.bmm(torch.ones(m, k, n, device=d), torch.ones(m, n, k, device=d)))
        same(
            lambda d, m=m, k=k, n=n: torch.addmm(
                torch.ones(n, device=d), torch.ones(m, k, device=d), torch.ones(k, n, device=d)
            )
        )
    same(lambda d: torch.cat([torch.ones(0, device=d), torch.ones(2, 3, device=d)]))
    same(lambda d: torch.nn.functional.linear(torch.ones(0, 4, device=d), torch.ones(3, 4, device=d)))
    same(lambda d: torch.nn.functional.conv2d(torch.ones(0, 3, 5, 5, device=d), torch.ones(2, 3, 3, 3, device=d)))
    same(lambda d: torch.nn.functional.embedding(torch.ones(0, dtype=torch.long, device=d), torch.ones(3, 2, device=d)))
    same(
        lambda d: torch.nn.functional.cross_entropy(
            torch.ones(0, 3, device=d), torch.ones(0, dtype=torch.long, device=d)
        )
    )


# ---- distinct values and counts
def test_sizes_that_come_from_values() -> None:
    same(lambda d: torch.unique(torch.tensor([3, 1, 1, 2, 3], device=d), return_inverse=True, return_counts=True))
    same(lambda d: torch.unique(torch.tensor([True, False, True], device=d)))
    same(
        lambda d: torch.unique(
            torch.tensor([[1, 2], [0, 5], [1, 2]], device=d), dim=0, return_inverse=True, return_counts=True
        )
    )
    same(lambda d: torch.unique(torch.tensor([[1, 0, 1], [2, 5, 2]], device=d), dim=1))
    same(lambda d: torch.unique(torch.randn(5, 0, device=d), dim=0))
    same(
        lambda d: torch.unique_consecutive(
            torch.tensor([1, 1, 2, 1], device=d), return_inverse=True, return_counts=True
        )
    )
    same(
        lambda d: torch.unique_consecutive(torch.tensor([[1, 1], [1, 1], [2, 1]], device=d), dim=0, return_counts=True)
    )
    same(lambda d: torch.bincount(torch.tensor([1, 4, 1], device=d)))
    same(lambda d: torch.bincount(torch.tensor([1, 4, 1], device=d), torch.tensor([0.5, 1, 2], device=d), minlength=9))
    same(lambda d: torch.bincount(torch.tensor([1, -4], device=d)))
    same(lambda d: torch.repeat_interleave(torch.tensor([2, 0, 3], device=d)))
    same(lambda d: torch.repeat_interleave(torch.tensor([2, -1], device=d)))
    same(lambda d: torch.repeat_interleave(torch.eye(2, device=d), torch.tensor([2, 1], device=d), dim=1))
    same(lambda d: torch.nonzero(torch.tensor([[0, 1], [2, 0]], device=d)))
    same(lambda d: torch.histc(torch.tensor([1.0, 2, 2, 5], device=d), 4))
    same(lambda d: torch.arange(6, device=d)[torch.tensor([True, False] * 3, device=d)])


def test_rows_are_distinct_as_wholes() -> None:
    rows = torch.randint(0, 3, (200, 5), generator=torch.Generator().manual_seed(0))
    same(lambda d: torch.unique(rows.to(d), dim=0, return_inverse=True, return_counts=True))


def test_equal() -> None:
    def pairs(d: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
        x = torch.tensor([1.0, 2.0], device=d)
        n = torch.tensor([nan], device=d)
        return [(x, x.clone()), (x, x + 1), (x, x[:1]), (n, n), (x, x.long()), (x[:0], x[:0]), (x, x.flip(0).flip(0))]

    same(lambda d: [torch.equal(a, b) for a, b in pairs(d)])
    with pytest.raises(RuntimeError, match="two devices"):
        torch.equal(torch.ones(1, device="tpu"), torch.ones(1))


def test_embedding_renorm_scales_the_rows_it_reads() -> None:
    def program(device: str) -> torch.Tensor:
        weight = torch.tensor([[3.0, 4], [0.3, 0.4], [6, 8]], device=device)
        read = torch.nn.functional.embedding(torch.tensor([0, 1, 0], device=device), weight, max_norm=1.0)
        return torch.cat([weight, read])

    same(program)


def test_asynchronous_assertions() -> None:
    torch._assert_async(torch.ones((), device="tpu"))
    with pytest.raises(RuntimeError, match="what failed"):
        torch._assert_async(torch.zeros((), device="tpu"), "what failed")


# ---- precision
def test_float32_matmuls_have_all_their_bits_unless_told_otherwise() -> None:
    a, b = torch.randn(64, 64), torch.randn(64, 64)
    exact = (a.double() @ b.double()).float()
    torch.testing.assert_close((a.to("tpu") @ b.to("tpu")).cpu(), exact, rtol=1e-5, atol=2e-5)


def test_the_precision_of_matmuls_is_part_of_the_key() -> None:
    a = torch.ones(3, 5, device="tpu")
    assert torch.get_float32_matmul_precision() == "highest"

    def misses(precision: str) -> int:
        before = torch.tpu.cache_stats()["memory_misses"]
        torch.set_float32_matmul_precision(precision)
        try:
            a @ a.t()
        finally:
            torch.set_float32_matmul_precision("highest")
        return torch.tpu.cache_stats()["memory_misses"] - before

    misses("highest")
    assert misses("highest") == 0
    assert misses("high") == 1
    assert misses("medium") == 1
    assert misses("high") == 0
