"""Printing looks as on the CPU, with the device named, and compiles nothing."""

import pytest
import torch


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: torch.arange(6).reshape(2, 3), id="integers"),
        pytest.param(lambda: torch.linspace(-1, 1, 7), id="floats"),
        pytest.param(lambda: torch.randn(40, 60), id="summarised"),
        pytest.param(lambda: torch.tensor([1e-9, 1.0, 1e9, float("nan"), float("inf")]), id="scientific"),
        pytest.param(lambda: torch.tensor(True), id="bool"),
        pytest.param(lambda: torch.zeros(0, 3), id="empty"),
        pytest.param(lambda: torch.tensor([1 + 2j, 3 - 1j]), id="complex"),
        pytest.param(lambda: torch.randn(5).to(torch.bfloat16), id="bfloat16"),
        pytest.param(lambda: torch.tensor(3.5, dtype=torch.float64), id="float64"),
    ],
)
def test_as_on_the_cpu(make):
    x = make()
    expected = str(x)
    text = "".join(str(x.tpu()).split())
    assert text.replace(",device='tpu:0'", "") == "".join(expected.split())
    assert "device='tpu:0'" in repr(x.tpu())


def test_views_and_gradients():
    x = torch.arange(6.0, device="tpu", requires_grad=True)
    assert str(x.reshape(2, 3).t()).startswith("tensor([[0., 3.],")
    assert "grad_fn=<" in str(x * 2)
    assert "requires_grad=True" in str(x)
    assert str(torch.tensor([1 + 2j], device="tpu").conj()).startswith("tensor([1.-2.j]")
    assert f"{torch.tensor(2.5, device='tpu'):.2f}" == "2.50"


def test_nothing_is_compiled():
    x = torch.randn(37, 41).tpu()  # a shape nothing else uses
    y = torch.ones(3, 53, device="tpu")
    torch.tpu.synchronize()
    before = torch.tpu.cache_stats()
    str(x), repr(y), str(torch.nn.Parameter(x)), f"{y}"
    after = torch.tpu.cache_stats()
    for name in ("compiles", "disk_hits", "memory_misses", "fallbacks"):
        assert after[name] == before[name]
