"""A Python number that changes is an argument of a compiled program, not a part of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

X = torch.Tensor

OPERATORS: dict[str, Callable[[X, float], Any]] = {
    "add": lambda x, s: x + s,
    "add alpha": lambda x, s: torch.add(x, x, alpha=s),
    "rsub": lambda x, s: s - x,
    "mul": lambda x, s: x * s,
    "div": lambda x, s: x / s,
    "reciprocal": lambda x, s: s / x,
    "floor_divide": lambda x, s: x // s,
    "remainder": lambda x, s: x % s,
    "pow": lambda x, s: x ** (s + 0.123),
    "exponent": lambda x, s: s**x,
    "compare": lambda x, s: x > s,
    "clamp": lambda x, s: x.clamp(-s, s),
    "clamp_min": lambda x, s: x.clamp_min(s),
    "fill_": lambda x, s: x.clone().fill_(s),
    "full": lambda x, s: torch.full_like(x, s),
    "masked_fill": lambda x, s: x.masked_fill(x > 0, s),
    "where": lambda x, s: torch.where(x > 0, x, s),
    "lerp": lambda x, s: torch.lerp(x, -x, s),
    "addcmul": lambda x, s: torch.addcmul(x, x, x, value=s),
    "addcdiv": lambda x, s: torch.addcdiv(x, x, x, value=s),
    "addmm": lambda x, s: torch.addmm(x, x, x, beta=s, alpha=s),
    "baddbmm": lambda x, s: torch.baddbmm(x[None], x[None], x[None], beta=s, alpha=s),
    "setitem": lambda x, s: x.clone().__setitem__(0, s),
    "index_fill": lambda x, s: x.index_fill(0, torch.zeros(1, dtype=torch.int64, device=x.device), s),
    "scatter": lambda x, s: x.scatter(0, torch.zeros(1, 4, dtype=torch.int64, device=x.device), s),
    "leaky_relu": lambda x, s: torch.nn.functional.leaky_relu(x, s),
    "elu": lambda x, s: torch.nn.functional.elu(x, s),
    "hardtanh": lambda x, s: torch.nn.functional.hardtanh(x, -s, s),
    "threshold": lambda x, s: torch.nn.functional.threshold(x, s, s),
    "softplus": lambda x, s: torch.nn.functional.softplus(x, s),
    "layer_norm eps": lambda x, s: torch.nn.functional.layer_norm(x, (4,), eps=s),
    "dropout": lambda x, s: torch.nn.functional.dropout(x, s / 100),
    "arange": lambda x, s: torch.arange(s, s + 4, device=x.device),
    "linspace": lambda x, s: torch.linspace(0, s, 4, device=x.device),
    "foreach mul": lambda x, s: torch._foreach_mul([x, x], s),
    "foreach add": lambda x, s: torch._foreach_add([x, x], [x, x], alpha=s),
    "0-d cpu tensor": lambda x, s: x * torch.tensor(s),
    "gradient": lambda x, s: torch.autograd.grad((x.requires_grad_() * s).sum() * s, x),
    "smooth_l1": lambda x, s: torch.nn.functional.smooth_l1_loss(x, -x, beta=s),
    "label smoothing": lambda x, s: torch.nn.functional.cross_entropy(
        x, torch.zeros(4, dtype=torch.int64, device=x.device), label_smoothing=s / 100
    ),
}


def misses() -> int:
    return torch.tpu.cache_stats()["memory_misses"]


@pytest.mark.parametrize("name", OPERATORS)
def test_a_changing_number_compiles_nothing(name: str) -> None:
    run = OPERATORS[name]
    x = torch.eye(4, device="tpu")
    run(x, 1.5)
    before = misses()
    for number in (2.5, 0.3, 7.25, 1e-3):
        run(x, number)
    assert misses() == before
    torch.tpu.synchronize()


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "SGD fused": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "Adam single": lambda p: torch.optim.Adam(p, lr=0.1, foreach=False),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1),
    "AdamW fused": lambda p: torch.optim.AdamW(p, lr=0.1, fused=True),
    "AdamW amsgrad": lambda p: torch.optim.AdamW(p, lr=0.1, amsgrad=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.5),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.1),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_and_learning_rates_compile_nothing_and_match_the_cpu(name: str) -> None:
    def train(device: str) -> tuple[torch.Tensor, int]:
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 2).to(device)
        optimizer = OPTIMIZERS[name](layer.parameters())
        x = torch.arange(12.0).view(4, 3).to(device) / 10
        compiled = 0
        for step in range(12):
            optimizer.zero_grad()
            (layer(x).pow(2).sum() * (1 + step / 10)).backward()
            torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
            if step == 7:  # RAdam changes its formula at the sixth step
                compiled = misses()
            optimizer.step()
        return layer.weight.detach().cpu(), misses() - compiled

    expected, _ = train("cpu")
    found, compiled = train("tpu")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert compiled == 0
