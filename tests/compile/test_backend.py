"""torch.compile on the device: the backend "tpu", the default backend, and operators that only have a decomposition."""

from __future__ import annotations

import copy
import os
import subprocess
import sys

import pytest
import torch
from torch import nn

import torch_tpu  # noqa: F401  (registers the device where the entry point is not installed)
from torch_tpu import _C, _compile

ON_IMPORT = "ignore::DeprecationWarning"  # of packages that Dynamo imports
pytestmark = pytest.mark.filterwarnings(ON_IMPORT)


@pytest.fixture(autouse=True)
def _fresh_dynamo():
    torch._dynamo.reset()
    torch.manual_seed(0)
    before = torch.tpu.cache_stats()["fallbacks"]
    yield
    assert torch.tpu.cache_stats()["fallbacks"] == before
    torch._dynamo.reset()


@pytest.fixture
def graphs(monkeypatch):
    """The graphs that are compiled while the test runs, and whether each became one program."""
    made: list[bool] = []
    original = _compile._program

    def program(graph):
        result = original(graph)
        made.append(not hasattr(result, "__self__"))  # otherwise a bound method: node by node
        return result

    monkeypatch.setattr(_compile, "_program", program)
    return made


def close(a: torch.Tensor, b: torch.Tensor, **tolerance: float) -> None:
    torch.testing.assert_close(a.detach().cpu(), b.detach(), **tolerance)


class Block(nn.Module):
    """A bit of everything a layer has, a buffer that each call changes included."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 32), nn.Linear(32, 8)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x)))) * self.calls


@pytest.mark.parametrize("backend", ["tpu", "inductor"])
def test_forward_and_backward_are_one_program_each(backend, graphs):
    cpu = Block()
    tpu = copy.deepcopy(cpu).to("tpu")
    compiled = torch.compile(tpu, backend=backend)
    x = torch.randn(4, 8)
    for call in range(3):
        a = x.clone().requires_grad_()
        b = x.to("tpu").requires_grad_()
        y = cpu(a)
        z = compiled(b)
        y.square().sum().backward()
        z.square().sum().backward()
        close(z, y)
        close(b.grad, a.grad, rtol=1e-4, atol=1e-5)
        assert tpu.calls.item() == call + 1
    for p, q in zip(tpu.parameters(), cpu.parameters(), strict=True):
        close(p.grad, q.grad, rtol=1e-4, atol=1e-4)
    assert graphs == [True, True]


def test_a_second_call_makes_no_program(graphs):
    compiled = torch.compile(lambda x: (x * 2).relu().sum(-1), backend="tpu", fullgraph=True)
    x = torch.randn(3, 5)
    compiled(x.to("tpu"))
    before = torch.tpu.compiles()
    close(compiled(x.to("tpu")), (x * 2).relu().sum(-1))
    assert torch.tpu.compiles() == before
    assert graphs == [True]


@pytest.mark.parametrize("dynamic", [True, None])
def test_sizes_that_change(dynamic, graphs):
    compiled = torch.compile(lambda x, n: x.softmax(0) * x.shape[0] + n, backend="tpu", dynamic=dynamic)
    for n in (2, 3, 5, 3, 2):
        x = torch.randn(n, 4)
        close(compiled(x.to("tpu"), n), x.softmax(0) * n + n)
    assert all(graphs)


def test_a_graph_break_is_two_programs(graphs):
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        if y.sum() > 3:  # Dynamo has to look
            return y + 1
        return y - 1

    compiled = torch.compile(f, backend="tpu")
    for x in (torch.zeros(4), -torch.ones(4)):
        close(compiled(x.to("tpu")), f(x))
    assert graphs == [True, True, True]


def test_arguments_written_in_place(graphs):
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x[1:].add_(y[1:])
        y.t_()
        return x.view(-1)[2:]

    cpu = [torch.arange(6.0).view(3, 2), torch.ones(3, 2)]
    tpu = [t.to("tpu") for t in cpu]
    expected, got = f(*cpu), torch.compile(f, backend="tpu")(*tpu)
    for a, b in zip([got, *tpu], [expected, *cpu], strict=True):
        close(a, b, rtol=0, atol=0)


def test_dropout_draws_fresh_numbers_and_is_reproducible(graphs):
    compiled = torch.compile(lambda x: nn.functional.dropout(x, 0.5), backend="tpu")
    x = torch.ones(64, 64, device="tpu", requires_grad=True)
    torch.manual_seed(1)
    first, second = compiled(x), compiled(x)
    torch.manual_seed(1)
    again = compiled(x)
    assert set(first.detach().cpu().unique().tolist()) == {0.0, 2.0}
    assert 0.4 < (first.detach().cpu() == 0).float().mean() < 0.6
    assert not torch.equal(first.detach().cpu(), second.detach().cpu())
    assert torch.equal(first.detach().cpu(), again.detach().cpu())
    again.sum().backward()
    assert torch.equal(x.grad.cpu(), again.detach().cpu())  # the same mask on the way back
    assert all(graphs)


def test_autocast_inside_and_outside(graphs):
    layer = nn.Linear(16, 4)
    tpu = copy.deepcopy(layer).to("tpu")
    x = torch.randn(8, 16)

    def inside(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("tpu"):
            return tpu(x)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = layer(x)
    for f in (torch.compile(inside, backend="tpu"), torch.compile(tpu, backend="tpu")):
        with torch.autocast("tpu"):
            y = f(x.to("tpu"))
        assert y.dtype == torch.bfloat16
        close(y, expected, rtol=2e-2, atol=2e-2)
    assert all(graphs)


def test_a_training_loop_follows_eager_mode():
    models = [nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    losses = []
    for model, wrap in zip(models, (lambda m: m, lambda m: torch.compile(m, backend="tpu")), strict=True):
        model.to("tpu")
        step, optimizer = wrap(model), torch.optim.AdamW(model.parameters(), lr=1e-2)
        x = torch.arange(32.0).view(4, 8).to("tpu") / 32
        losses.append([])
        for _ in range(5):
            loss = step(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    assert losses[0][-1] < losses[0][0]


def test_the_default_backend_keeps_to_itself_what_is_on_the_cpu(graphs):
    from torch_tpu import _inductor

    taken = []
    compile_graph = _inductor.route(lambda model, inputs: taken.append(inputs))
    module = torch.fx.symbolic_trace(lambda x: x + 1)
    compile_graph(module, [torch.ones(2)])
    assert len(taken) == 1 and graphs == []


def test_a_graph_without_inputs_is_known_by_its_results(graphs):
    compiled = torch.compile(lambda n: torch.arange(4, device="tpu") * n)
    assert compiled(3).tolist() == [0, 3, 6, 9]
    assert all(graphs)


def test_inductor_reached_another_way_names_the_backend():
    from torch._inductor.codegen.common import get_scheduling_for_device

    from torch_tpu import _inductor  # noqa: F401

    with pytest.raises(NotImplementedError, match=r"torch.compile\(model, backend='tpu'\)"):
        get_scheduling_for_device("tpu")(None)


def test_options_are_refused():
    with pytest.raises(Exception, match="backend 'tpu' takes no options"):
        torch.compile(lambda x: x + 1, backend="tpu", options={"speed": 11})(torch.ones(1, device="tpu"))


def test_an_operator_with_only_a_decomposition_is_one_program():
    assert not _C.has_entry("_weight_norm_interface"), "choose another operator"

    def call(v: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch._weight_norm_interface(v, g)

    def change() -> tuple[int, int]:
        before = _C.counters()
        for got, expected in zip(call(v.to("tpu"), g.to("tpu")), call(v, g), strict=True):
            close(got, expected)
        after = _C.counters()
        return tuple(after.get(k, 0) - before.get(k, 0) for k in ("decomposed", "memory_misses"))

    v, g = torch.randn(5, 7), torch.rand(5, 1)
    assert change() == (1, 1)
    assert change() == (1, 0)
    v = torch.randn(3, 7)
    g = torch.rand(3, 1)
    assert change() == (1, 1)


def test_the_host_is_forbidden_on_request():
    program = """
import torch, torch_tpu
x = torch.eye(3).to("tpu")
assert (x + 1).sum().item() == 12
try:
    torch.linalg.eig(x)
except NotImplementedError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"TORCH_TPU_FALLBACK": "error"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert "aten::linalg_eig has no lowering for the tpu device" in done.stdout
    assert "TORCH_TPU_FALLBACK=error" in done.stdout
