"""Operators that few programs call and PyTorch's samples leave out."""

from __future__ import annotations

import pytest
import torch
from comparison import on_device

aten = torch.ops.aten
nan, inf = float("nan"), float("inf")


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


# ---- rounding to quantised values
def test_fake_quantization_of_tensors() -> None:
    x = torch.cat([floats(200) * 40, torch.tensor([nan, inf, -inf, 1e20])])
    scale, zero = torch.tensor([0.37]), torch.tensor([3], dtype=torch.int32)
    on_device(lambda d: aten.fake_quantize_per_tensor_affine_cachemask(x.to(d), 0.37, -5, -128, 127))
    for enabled in (0, 1):
        on_device(
            lambda d, e=enabled: aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
                x.to(d), scale.to(d), zero.to(d), torch.tensor([e], device=d), 0, 255
            )
        )


@pytest.mark.parametrize("zero", [torch.tensor([0, 3, -4], dtype=torch.int32), torch.tensor([0.2, 3.3, -4.4])])
def test_fake_quantization_of_channels(zero: torch.Tensor) -> None:
    x, scale = floats(2, 3, 50) * 40, torch.tensor([0.3, 0.5, 0.9])
    on_device(lambda d: aten.fake_quantize_per_channel_affine_cachemask(x.to(d), scale.to(d), zero.to(d), 1, -128, 127))


@pytest.mark.parametrize("channels", [False, True])
def test_learnable_fake_quantization(channels: bool) -> None:
    x = floats(3, 50) * 40

    def program(device: str) -> list[torch.Tensor]:
        size = 3 if channels else 1
        leaves = [x, torch.linspace(0.3, 0.6, size), torch.linspace(-2.2, 5.1, size)]
        leaves = [t.detach().to(device).requires_grad_() for t in leaves]
        if channels:
            y = torch._fake_quantize_learnable_per_channel_affine(*leaves, 0, -128, 127, 0.5)
        else:
            y = torch._fake_quantize_learnable_per_tensor_affine(*leaves, -128, 127, 0.5)
        return [y.detach(), *torch.autograd.grad(y, leaves, torch.cos(y.detach()))]

    on_device(program, rtol=1e-4, atol=1e-4)


# ---- derivatives of samples
def test_derivative_of_gamma_samples() -> None:
    alpha = torch.tensor([0.1, 0.7, 1, 2.5, 10, 200, 2e6], dtype=torch.float64)
    # x moves with alpha so that the cumulative distribution stays what it is.
    for share in (0.02, 0.5, 0.97):
        x = torch.tensor([quantile(a, share) for a in alpha.tolist()], dtype=torch.float64)
        step = 1e-4 * alpha
        moved = torch.tensor([quantile(a, share) for a in (alpha + step).tolist()], dtype=torch.float64)
        back = torch.tensor([quantile(a, share) for a in (alpha - step).tolist()], dtype=torch.float64)
        found = aten._standard_gamma_grad(alpha.to("tpu"), x.to("tpu")).cpu()
        torch.testing.assert_close(found, (moved - back) / (2 * step), rtol=1e-4, atol=1e-6)


def quantile(alpha: float, share: float) -> float:
    """Where the cumulative gamma distribution has this value, by bisection."""
    low, high = 0.0, alpha + 20 * alpha**0.5 + 20
    a = torch.tensor(alpha, dtype=torch.float64)
    for _ in range(200):
        middle = (low + high) / 2
        if torch.special.gammainc(a, torch.tensor(middle, dtype=torch.float64)).item() < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def test_derivatives_of_samples_are_the_cpu_ones() -> None:
    """CPU torch approximates them, to about a thousandth."""
    alpha = torch.tensor([0.05, 0.3, 1, 3, 9, 50, 300.0])
    for x in (0.2, 0.9, 1.0, 1.4):
        on_device(lambda d, x=x: aten._standard_gamma_grad(alpha.to(d), alpha.to(d) * x), rtol=5e-3, atol=1e-3)
    alpha, beta = alpha[:5], alpha[:5].flip(0) + 0.5
    for x in (0.2, 0.4, 0.6, 0.8):
        on_device(
            lambda d, x=x: aten._dirichlet_grad(torch.full((5,), x, device=d), alpha.to(d), (alpha + beta).to(d)),
            rtol=1e-2,
            atol=1e-3,
        )


def test_reparameterised_distributions() -> None:
    before = dict(torch.tpu.cache_stats()["fallback_ops"])
    alpha = torch.tensor([0.5, 2.0, 7.0], device="tpu", requires_grad=True)
    for distribution in (
        torch.distributions.Gamma(alpha, alpha),
        torch.distributions.Beta(alpha, alpha),
        torch.distributions.Dirichlet(alpha),
        torch.distributions.StudentT(alpha),
    ):
        (gradient,) = torch.autograd.grad(distribution.rsample((5,)).square().sum(), alpha)
        assert gradient.isfinite().all()
    assert dict(torch.tpu.cache_stats()["fallback_ops"]) == before


# ---- others
@pytest.mark.parametrize("dim", [0, 2])
def test_weight_normalisation(dim: int) -> None:
    def program(device: str) -> list[torch.Tensor]:
        v = floats(3, 4, 5).to(device).requires_grad_()
        g = torch.linspace(1, 2, v.size(dim)).view([-1 if d == dim else 1 for d in range(3)]).to(device)
        g.requires_grad_()
        w = torch._weight_norm(v, g, dim)
        return [w.detach(), *torch.autograd.grad(w, [v, g], torch.cos(w.detach()))]

    on_device(program, rtol=1e-4, atol=1e-5)


def test_forward_derivative_of_the_gradient_of_a_gated_unit() -> None:
    def program(device: str) -> torch.Tensor:
        x, dx = floats(3, 8).to(device), floats(3, 8).flip(0).to(device)
        grad, dgrad = floats(3, 4).to(device), floats(3, 4).flip(1).to(device)
        return aten.glu_backward_jvp(aten.glu_backward(grad, x, 1), grad, x, dgrad, dx, 1)

    on_device(program, rtol=1e-4, atol=1e-5)


def test_alignment_loss_with_lengths_in_tensors() -> None:
    def program(device: str) -> torch.Tensor:
        x = floats(8, 2, 5).log_softmax(-1).to(device)
        targets, lengths = torch.tensor([[1, 2, 3], [4, 1, 0]], device=device), torch.tensor([8, 6], device=device)
        loss, alpha = aten._ctc_loss.Tensor(x, targets, lengths, torch.tensor([3, 2], device=device), 0, False)
        grad = aten._ctc_loss_backward.Tensor(
            torch.ones(2, device=device), x, targets, lengths, torch.tensor([3, 2], device=device), loss, alpha, 0
        )
        return torch.cat([loss, grad.flatten()])

    on_device(program, rtol=1e-4, atol=1e-4)


def test_hashes() -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.int64, torch.bool):
        x = (floats(4, 5) * 50).to(dtype)
        on_device(lambda d, x=x: [torch.hash_tensor(x.to(d)).item(), torch.hash_tensor(x.to(d), 1).tolist()])
    on_device(lambda d: torch.hash_tensor(torch.ones(0, device=d)))


def test_leaky_relu_with_given_noise() -> None:
    x = floats(50)

    def program(device: str) -> list[torch.Tensor]:
        y, noise = x.clone().to(device), torch.full((50,), 7.0, device=device)
        out = torch.empty(0, device=device)
        aten.rrelu_with_noise_(y, noise, 0.1, 0.3)
        aten.rrelu_with_noise.out(x.to(device), noise, 0.1, 0.3, out=out)
        return [y, out]

    on_device(program)
    noise = torch.zeros(50, device="tpu")
    y = aten.rrelu_with_noise_(x.to("tpu"), noise, 0.1, 0.3, True)
    torch.testing.assert_close(y, x.to("tpu") * noise)
    kept = noise.cpu()[x <= 0]
    assert (kept >= 0.1).all() and (kept < 0.3).all() and (noise.cpu()[x > 0] == 1).all()


# ---- out= forms that run by their functional ones
def test_out_forms() -> None:
    x = floats(2, 3, 8, 8)

    def program(device: str) -> list[torch.Tensor]:
        y = x.to(device)
        outs = [torch.empty(0, device=device) for _ in range(4)]
        aten.adaptive_avg_pool2d.out(y, [2, 2], out=outs[0])
        aten.adaptive_avg_pool3d.out(y, [1, 2, 2], out=outs[1])
        torch.mvlgamma(y.abs() + 3, 2, out=outs[2])
        aten.narrow_copy.out(y, 1, 1, 2, out=outs[3])
        return outs

    on_device(program, rtol=1e-4, atol=1e-4)


def test_out_form_of_a_normalisation_that_writes_its_statistics() -> None:
    def program(device: str) -> list[torch.Tensor]:
        x = floats(4, 3, 5).to(device)
        mean, var = torch.zeros(3, device=device), torch.ones(3, device=device)
        outs = {name: torch.empty(0, device=device) for name in ("out", "save_mean", "save_invstd")}
        aten._native_batch_norm_legit.out(x, None, None, mean, var, True, 0.1, 1e-5, **outs)
        return [mean, var, *outs.values()]

    on_device(program, rtol=1e-4, atol=1e-4)


def test_permutation_into_a_given_tensor() -> None:
    out = torch.empty(0, dtype=torch.long, device="tpu")
    generator = torch.Generator(device="tpu").manual_seed(1)
    torch.randperm(100, generator=generator, out=out)
    assert out.sort()[0].tolist() == list(range(100))
