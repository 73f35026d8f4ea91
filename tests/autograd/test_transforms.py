"""Autograd beyond one backward: double backward, forward mode, vmap, jacobians, hooks, checkpoints, gradcheck."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import func, nn
from torch.utils.checkpoint import checkpoint

import torch_tpu  # noqa: F401  (registers the device where the entry point is not installed)

# PyTorch's forward mode and vmap warn of themselves, on every device; linear algebra runs on the host.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*has no lowering for the tpu device"),
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
    pytest.mark.filterwarnings("ignore:There is a performance drop"),
]


def both(program: Callable[[str], Any], **tolerance: float) -> None:
    """The program gives the same tensors on both devices, or raises the same kind of exception."""
    try:
        expected = program("cpu")
    except NotImplementedError:  # PyTorch has no such derivative
        with pytest.raises(NotImplementedError):
            program("tpu")
        return
    found = program("tpu")
    for a, b in zip(torch.utils._pytree.tree_leaves(expected), torch.utils._pytree.tree_leaves(found), strict=True):
        assert b.device.type == "tpu"
        torch.testing.assert_close(b.cpu(), a, **tolerance)


def sample(device: str, *shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype).to(device)


def network(device: str, dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 8), nn.Softmax(-1), nn.Linear(8, 2)
    )
    return layers.to(device, dtype)


def on(device: torch.device, *numbers: Any) -> torch.Tensor:
    return torch.tensor(numbers, device=device)


# One of each family, on a 3 x 4 input (and a second input where it takes one).
FAMILIES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "arithmetic": lambda x: x * x.t().reshape(3, 4) / (1 + x * x),
    "power": lambda x: (x * x + 1) ** 1.5,
    "unary": lambda x: torch.tanh(x) + torch.sin(x) * torch.exp(-x * x),
    "activation": lambda x: F.gelu(x) + F.silu(x) + F.softplus(x) + F.elu(x),
    "reduce": lambda x: x.var(1) + x.logsumexp(1) + x.prod(1),
    "scan": lambda x: x.cumsum(1) * x.cumprod(0),
    "softmax": lambda x: x.softmax(1) * x.log_softmax(0),
    "norm": lambda x: F.layer_norm(x, (4,)) + F.group_norm(x, 2),
    "matmul": lambda x: x @ x.t() @ x,
    "linear": lambda x: F.linear(x, x, x[:, 0]),
    "convolution": lambda x: F.conv1d(x[None], x[:, None, :2].expand(3, 3, 2), padding=1),
    "pool": lambda x: F.avg_pool1d(x[None], 2) + F.adaptive_avg_pool1d(x[None], 2),
    "index": lambda x: x[[0, 2, 0]] * x.gather(1, on(x.device, [0, 1, 1, 3])),
    "scatter": lambda x: x.scatter_add(1, on(x.device, *[[0, 0, 1, 2]] * 3), x * x),
    "shape": lambda x: torch.cat([x.flip(0), x.roll(1, 1)]) * F.pad(x, (0, 0, 1, 2)),
    "sort": lambda x: x.sort(1).values * x.topk(4, 1).values,
    "loss": lambda x: F.smooth_l1_loss(x, x.flip(1) * 0.1) + F.cross_entropy(x, on(x.device, 1, 0, 3)),
    "embedding": lambda x: F.embedding(on(x.device, 0, 2, 2), x) ** 2,
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None] + 1, x[None] * 2, is_causal=True),
    "resize": lambda x: F.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
    "distance": lambda x: torch.cdist(x, x.flip(0) + 1),
    "complex": lambda x: torch.view_as_real(torch.complex(x, x * x) * torch.complex(x.cos(), x)),
    "special": lambda x: torch.special.i0(x) + torch.erf(x) + torch.lgamma(x * x + 1),
    "linear algebra": lambda x: torch.linalg.solve(x[:, :3] @ x[:, :3].t() + torch.eye(3).to(x), x),
    "fft": lambda x: torch.fft.rfft(x).abs(),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_gradcheck(name: str) -> None:
    x = sample("tpu", 3, 4, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(FAMILIES[name], (x,))


@pytest.mark.parametrize("name", FAMILIES)
def test_double_backward(name: str) -> None:
    def program(device: str) -> Any:
        x = sample(device, 3, 4).requires_grad_()
        y = FAMILIES[name](x)
        (first,) = torch.autograd.grad((y * torch.cos(y)).sum(), x, create_graph=True)
        return first.detach(), torch.autograd.grad((first * first).sum(), x)[0]

    both(program, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_forward_mode(name: str) -> None:
    def program(device: str) -> Any:
        return func.jvp(FAMILIES[name], (sample(device, 3, 4),), (sample(device, 3, 4, seed=1),))

    both(program, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_vmap(name: str) -> None:
    both(lambda d: func.vmap(FAMILIES[name])(sample(d, 2, 3, 4)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd, func.hessian], ids=lambda t: t.__name__)
def test_jacobians(transform: Callable[..., Any]) -> None:
    def program(device: str) -> Any:
        model = network(device)
        return transform(lambda x: model(x).sum(0)[0])(sample(device, 2, 4))

    both(program, rtol=1e-4, atol=1e-5)


def test_functional_call_and_gradients_of_each_sample() -> None:
    def program(device: str) -> Any:
        model = network(device)
        parameters = {k: p.detach() for k, p in model.named_parameters()}

        def loss(parameters: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return F.mse_loss(func.functional_call(model, parameters, (x,)), y)

        each = func.vmap(func.grad(loss), in_dims=(None, 0, 0))
        return each(parameters, sample(device, 5, 4), sample(device, 5, 2, seed=1))

    both(program, rtol=1e-4, atol=1e-5)


def test_random_numbers_under_vmap() -> None:
    same = func.vmap(lambda x: x + torch.rand(3, device="tpu"), randomness="same")(torch.zeros(4, 3, device="tpu"))
    different = func.vmap(F.dropout, randomness="different")(torch.ones(4, 100, device="tpu"))
    assert (same == same[0]).all()
    assert not (different == different[0]).all()


def test_hooks() -> None:
    def program(device: str) -> Any:
        model, seen = network(device), []
        x = sample(device, 3, 4).requires_grad_()
        x.register_hook(lambda g: g * 2)
        model[0].register_forward_hook(lambda m, i, o: o + 1)
        model[3].register_full_backward_hook(lambda m, i, o: seen.append(o[0].clone()))
        model[0].weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
        model(x).square().sum().backward()
        return x.grad, *seen

    both(program, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_repeats_its_dropout(use_reentrant: bool) -> None:
    def gradients(through: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
        model = nn.Sequential(network("tpu"), nn.Dropout(0.5))
        x = sample("tpu", 64, 4).requires_grad_()
        torch.manual_seed(3)
        through(model, x).square().sum().backward()
        return [x.grad, *(p.grad for p in model.parameters())]

    plain = gradients(lambda model, x: model(x))
    again = gradients(lambda model, x: checkpoint(model, x, use_reentrant=use_reentrant))
    for a, b in zip(plain, again, strict=True):
        torch.testing.assert_close(b, a)


def test_saved_tensors_can_wait_on_the_cpu() -> None:
    def program(device: str) -> Any:
        model = network(device)
        with torch.autograd.graph.save_on_cpu():
            model(sample(device, 3, 4)).square().sum().backward()
        return [p.grad for p in model.parameters()]

    both(program, rtol=1e-4, atol=1e-5)


class Cube(torch.autograd.Function):
    """x ** 3 with a gradient of its own, also of the gradient, and a forward derivative."""

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return 3 * ctx.saved_tensors[0] ** 2 * gradient

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor) -> torch.Tensor:
        return 3 * ctx.saved_tensors[0] ** 2 * tangent


def test_a_function_of_the_user() -> None:
    x = sample("tpu", 3, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(Cube.apply, (x,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(Cube.apply, (x,))


@pytest.mark.filterwarnings("ignore:Error detected in SqrtBackward0")
def test_anomalies_are_found_where_they_arise() -> None:
    x = torch.zeros(2, device="tpu", requires_grad=True)
    with (
        pytest.warns(UserWarning, match="Anomaly Detection"),
        torch.autograd.detect_anomaly(),
        pytest.raises(RuntimeError, match="returned nan values"),
    ):
        (x.sqrt() * 0).sum().backward()
