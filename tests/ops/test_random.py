"""Random operators: distributions by moments and Kolmogorov-Smirnov, ranges, and the checks of arguments."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

N = 20_000
# The distance that samples of the distribution itself exceed once in 100,000 runs; the seed is fixed, so it is once or
# never.
KOLMOGOROV = math.sqrt(-0.5 * math.log(0.5e-5)) / math.sqrt(N)


def empty(dtype: torch.dtype = torch.float32, n: int = N) -> torch.Tensor:
    return torch.empty(n, dtype=dtype, device="tpu")


def normal_cdf(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * torch.erfc(-x / math.sqrt(2))


# name -> (draw into a tensor, cumulative distribution function)
Cdf = Callable[[torch.Tensor], torch.Tensor]
CONTINUOUS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Cdf]] = {
    "uniform": (lambda t: t.uniform_(-1, 3), lambda x: ((x + 1) / 4).clamp(0, 1)),
    "normal": (lambda t: t.normal_(2, 3), lambda x: normal_cdf((x - 2) / 3)),
    "exponential": (lambda t: t.exponential_(1.5), lambda x: -torch.expm1(-1.5 * x)),
    "cauchy": (lambda t: t.cauchy_(1, 2), lambda x: 0.5 + torch.atan((x - 1) / 2) / math.pi),
    "log_normal": (lambda t: t.log_normal_(0.5, 0.7), lambda x: normal_cdf((x.log() - 0.5) / 0.7)),
    "rand": (lambda t: torch.rand_like(t), lambda x: x.clamp(0, 1)),
    "randn": (lambda t: torch.randn_like(t), normal_cdf),
    "gamma": (
        lambda t: torch._standard_gamma(torch.full_like(t, 2.5)),
        lambda x: torch.special.gammainc(2.5 + 0 * x, x),
    ),
    "dirichlet": (
        lambda t: torch._sample_dirichlet(torch.ones((*t.shape, 3), dtype=t.dtype, device=t.device))[..., 0],
        lambda x: 1 - (1 - x) ** 2,
    ),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name: str, dtype: torch.dtype) -> None:
    draw, cdf = CONTINUOUS[name]
    x = draw(empty(dtype)).cpu().double().sort().values
    assert x.shape == (N,)
    expected = cdf(x)
    steps = torch.arange(N + 1, dtype=torch.float64) / N
    distance = torch.maximum((steps[1:] - expected).max(), (expected - steps[:-1]).max())
    assert distance < KOLMOGOROV


# name -> (draw, mean, variance)
DISCRETE: dict[str, tuple[Callable[[], torch.Tensor], float, float]] = {
    "bernoulli": (lambda: empty().bernoulli_(0.3), 0.3, 0.21),
    "bernoulli of a tensor": (lambda: torch.bernoulli(torch.full((N,), 0.8, device="tpu")), 0.8, 0.16),
    "geometric": (lambda: empty().geometric_(0.25), 4, 12),
    "poisson": (lambda: torch.poisson(torch.full((N,), 3.5, device="tpu")), 3.5, 3.5),
    "large poisson": (lambda: torch.poisson(torch.full((N,), 350.0, device="tpu")), 350, 350),
    "binomial": (
        lambda: torch.binomial(torch.full((N,), 20.0, device="tpu"), torch.full((N,), 0.3, device="tpu")),
        6,
        4.2,
    ),
    "randint": (lambda: torch.randint(-3, 8, (N,), device="tpu"), 2, 10),
    "random of int8": (lambda: empty(torch.int8).random_(), 63, (128**2 - 1) / 12),
    "multinomial": (
        lambda: torch.multinomial(torch.tensor([1.0, 0, 2, 1], device="tpu"), N, replacement=True),
        1.75,
        1.1875,
    ),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name: str) -> None:
    draw, mean, variance = DISCRETE[name]
    x = draw().cpu().double()
    # Five standard errors of the mean; the variance's own error is below 0.06 of it for all of these.
    assert x.mean().item() == pytest.approx(mean, abs=5 * math.sqrt(variance / N))
    assert x.var().item() == pytest.approx(variance, rel=0.1)
    assert torch.equal(x, x.round())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_floats_stay_in_their_ranges(dtype: torch.dtype) -> None:
    x = empty(dtype).uniform_().cpu()
    assert x.min() >= 0
    assert x.max() < 1
    assert x.double().mean().item() == pytest.approx(0.5, abs=0.02)
    assert empty(dtype).exponential_().min().item() > 0


def test_draws_differ_and_elements_do_not_depend_on_each_other() -> None:
    a, b = torch.randn(2, N, device="tpu").cpu()
    again = torch.randn(N, device="tpu").cpu()
    for x, y in ((a, b), (a, again), (a[1:], a[:-1])):
        assert abs(torch.corrcoef(torch.stack([x, y]))[0, 1].item()) < 5 / math.sqrt(N)


def test_permutations() -> None:
    p = torch.randperm(1000, device="tpu")
    assert p.dtype == torch.int64
    assert torch.equal(p.cpu().sort().values, torch.arange(1000))
    assert not torch.equal(p, torch.randperm(1000, device="tpu"))
    # The first element of many permutations is any of them.
    first = torch.stack([torch.randperm(4, device="tpu")[0] for _ in range(400)]).cpu()
    assert (torch.bincount(first, minlength=4) > 60).all()


def test_multinomial_draws_without_replacement_what_has_a_weight() -> None:
    weights = torch.tensor([[0.0, 1, 2, 0, 3], [1, 0, 1, 1, 0]], device="tpu")
    draws = torch.multinomial(weights.repeat(200, 1), 3).cpu()
    for i, row in enumerate(draws.tolist()):
        assert sorted(row) == ([1, 2, 4] if i % 2 == 0 else [0, 2, 3])


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_dropout_keeps_the_mean_and_shares_its_mask_with_the_gradient(p: float) -> None:
    x = torch.ones(N, device="tpu", requires_grad=True)
    y = torch.nn.functional.dropout(x, p)
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), y.detach().cpu())
    kept = (y != 0).float().mean().item()
    assert kept == pytest.approx(1 - p, abs=5 * math.sqrt(p * (1 - p) / N))
    if p < 1:
        assert y.max().item() == pytest.approx(1 / (1 - p))


def test_a_changing_parameter_compiles_nothing() -> None:
    x = empty().zero_()  # a tensor that nobody has written to takes programs of its own
    x.normal_(0, 1), x.uniform_(0, 1), x.bernoulli_(0.5), x.exponential_(1.0)
    before = torch.tpu.cache_stats()["memory_misses"]
    for i in range(1, 5):
        x.normal_(i, i / 2), x.uniform_(-i, i), x.bernoulli_(i / 7), x.exponential_(i * 0.3)
    assert torch.tpu.cache_stats()["memory_misses"] == before


WRONG: dict[str, Callable[[torch.Tensor], object]] = {
    "normal": lambda t: t.normal_(0, -1),
    "bernoulli": lambda t: t.bernoulli_(1.5),
    "uniform": lambda t: t.uniform_(2, 1),
    "uniform too wide": lambda t: t.uniform_(-3e38, 3e38),
    "exponential": lambda t: t.exponential_(-1),
    "geometric": lambda t: t.geometric_(0),
    "log_normal": lambda t: t.log_normal_(0, -1),
    "cauchy": lambda t: t.cauchy_(0, 0),
    "random": lambda t: t.random_(3, 3),
    "random to": lambda t: t.random_(0),
    "random of int8": lambda t: t.to(torch.int8).random_(0, 1000),
    "exponential of integers": lambda t: t.long().exponential_(),
    "randint": lambda t: torch.randint(4, 4, (2,), device=t.device),
    "dropout": lambda t: torch.nn.functional.dropout(t, 1.5),
    "negative randperm": lambda t: torch.randperm(-1, device=t.device),
    "multinomial of nothing": lambda t: torch.multinomial(t, 0),
    "multinomial of too many": lambda t: torch.multinomial(t, 5),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_raise_what_cpu_torch_raises(name: str) -> None:
    with pytest.raises(Exception) as expected:
        WRONG[name](torch.ones(4))
    target = torch.ones(4, device="tpu")
    with pytest.raises(type(expected.value)) as found:
        WRONG[name](target)
    if name != "exponential of integers":  # the same sentence, with other blanks
        assert str(found.value) == str(expected.value)
    assert torch.equal(target.cpu(), torch.ones(4))
