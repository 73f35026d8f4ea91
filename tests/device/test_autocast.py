"""Autocast and gradient scaling."""

import threading

import pytest
import torch


def test_default_type():
    assert torch.get_autocast_dtype("tpu") == torch.bfloat16
    assert torch.amp.is_autocast_available("tpu")
    with torch.autocast("tpu"):
        assert torch.is_autocast_enabled("tpu")
    with torch.tpu.amp.autocast(enabled=False):
        assert not torch.is_autocast_enabled("tpu")


def test_default_type_in_another_thread():
    seen = []

    def work():
        x = torch.ones(2, 2, device="tpu")
        with torch.autocast("tpu"):
            seen.append((x @ x).dtype)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [torch.bfloat16]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_policies(dtype):
    x, w = torch.randn(4, 8, device="tpu"), torch.randn(8, 8, device="tpu")
    with torch.autocast("tpu", dtype=dtype):
        assert (x @ w).dtype == dtype  # lower precision
        assert torch.nn.functional.linear(x, w).dtype == dtype
        assert torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]).dtype == dtype
        assert torch.exp(x @ w).dtype == torch.float32  # float32
        assert torch.softmax(x @ w, -1).dtype == torch.float32
        assert torch.sum(x @ w, dtype=dtype).dtype == dtype  # an explicit type is kept
        assert torch.norm(x @ w).dtype == torch.float32  # another signature
        assert torch.atan2(x @ w, x).dtype == torch.float32  # the widest
        assert torch.relu(x @ w).dtype == dtype  # falls through
        assert x.t().dtype == torch.float32
        assert (x.double() @ w.double()).dtype == torch.float64
    assert (x @ w).dtype == torch.float32


def test_an_unsupported_type_warns_and_turns_autocast_off():
    with pytest.warns(UserWarning, match=r"float32|not supported"):
        context = torch.autocast("tpu", dtype=torch.float32)
    with context:
        assert not torch.is_autocast_enabled("tpu")


def test_binary_cross_entropy_is_refused():
    p, y = torch.full((3,), 0.5, device="tpu"), torch.ones(3, device="tpu")
    with torch.autocast("tpu"), pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
        torch.nn.functional.binary_cross_entropy(p, y)
    assert torch.nn.functional.binary_cross_entropy(p, y).item() == pytest.approx(0.6931, abs=1e-4)


def test_training_under_autocast():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1)).to("tpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(32, 8, device="tpu")
    y = x.sum(1, keepdim=True)
    losses = []
    for _ in range(20):
        with torch.autocast("tpu"):
            loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert model[0].weight.grad.dtype == torch.float32
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("scaler_class", [lambda: torch.amp.GradScaler("tpu"), torch.tpu.amp.GradScaler])
def test_grad_scaler(scaler_class):
    w = torch.nn.Parameter(torch.ones(4, device="tpu"))
    optimizer = torch.optim.SGD([w], lr=0.5)
    scaler = scaler_class()
    assert scaler.is_enabled()
    scale = scaler.get_scale()
    scaler.scale((w * 2).sum()).backward()
    assert w.grad.tolist() == [2 * scale] * 4
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [2.0] * 4
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0.0] * 4
    assert scaler.get_scale() == scale

    optimizer.zero_grad()
    scaler.scale((w * float("inf")).sum()).backward()  # overflow: the step is left out and the scale halved
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0.0] * 4
    assert scaler.get_scale() == scale / 2


def test_custom_functions():
    class Double(torch.autograd.Function):
        @staticmethod
        @torch.tpu.amp.custom_fwd(cast_inputs=torch.float32)
        def forward(ctx, x):
            assert not torch.is_autocast_enabled("tpu")
            return x * 2

        @staticmethod
        @torch.tpu.amp.custom_bwd
        def backward(ctx, g):
            return g * 2

    x = torch.ones(3, device="tpu", dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("tpu"):
        y = Double.apply(x)
    assert y.dtype == torch.float32
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3
