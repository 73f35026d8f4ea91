"""Indices: out-of-range ones raise CPU torch's exception when a result is read; masks do what they do on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F


def on(*numbers: Any) -> torch.Tensor:
    return torch.tensor(numbers, device="tpu")


def table() -> torch.Tensor:
    return torch.arange(12.0, device="tpu").view(4, 3)


def put(index: int) -> torch.Tensor:
    x = table()
    x[on(index)] = 1.0
    return x


# name -> what it does with an index into a dimension of 4
WRONG: dict[str, Callable[[int], torch.Tensor]] = {
    "index": lambda i: table()[on(0, i)],
    "index_put": put,
    "index_put accumulate": lambda i: table().index_put((on(i),), on(1.0), accumulate=True),
    "index_select": lambda i: table().index_select(0, on(i)),
    "index_add": lambda i: table().index_add(0, on(i), on([1.0, 1, 1])),
    "index_copy": lambda i: table().index_copy(0, on(i), on([1.0, 1, 1])),
    "index_fill": lambda i: table().index_fill(0, on(i), 1.0),
    "gather": lambda i: table().gather(0, on([i, 0, 0])),
    "scatter": lambda i: table().scatter(0, on([i, 0, 0]), 1.0),
    "scatter_add": lambda i: table().scatter_add(0, on([i, 0, 0]), on([1.0, 1, 1])),
    "take": lambda i: table()[:, 0].contiguous().take(on(i)),
    "embedding": lambda i: F.embedding(on(i), table()),
    "embedding_bag": lambda i: F.embedding_bag(on([i, 0]), table()),
    "nll_loss": lambda i: F.nll_loss(table().t(), on(0, i, 1)),
    "cross_entropy": lambda i: F.cross_entropy(table().t(), on(0, i, 1)),
}


COUNT_FROM_THE_END = {"index", "index_put", "index_put accumulate", "index_fill", "take"}


def kind_of_error(name: str) -> type[Exception]:
    """As on the CPU."""
    runtime = name in {"index_add", "gather", "scatter", "scatter_add", "embedding_bag"}
    return RuntimeError if runtime else IndexError


@pytest.mark.parametrize("name", WRONG)
def test_an_index_out_of_range_raises_when_the_result_is_read(name: str) -> None:
    for index in (4, -5):
        x = WRONG[name](index)
        with pytest.raises(kind_of_error(name), match=str(index)) as raised:
            x.cpu()
        assert raised.type is kind_of_error(name)
        # Reported once; the device goes on.
        assert WRONG[name](3).cpu().isfinite().all()
        torch.tpu.synchronize()


@pytest.mark.parametrize("name", sorted(WRONG.keys() - COUNT_FROM_THE_END))
def test_these_count_from_the_end_for_nobody(name: str) -> None:
    x = WRONG[name](-1)
    with pytest.raises(kind_of_error(name), match="-1"):
        x.cpu()


def test_synchronize_reports_an_index_too() -> None:
    table()[on(17)]
    with pytest.raises(IndexError, match="17"):
        torch.tpu.synchronize()
    torch.tpu.synchronize()


def test_negative_indices_count_from_the_end() -> None:
    assert table()[on(-1, 0), on(-3, 1)].tolist() == [9.0, 1.0]
    assert table().index_select(0, on(2)).tolist() == [[6.0, 7.0, 8.0]]


def test_ignored_targets_are_no_indices() -> None:
    scores, target = torch.randn(3, 4), torch.tensor([1, -100, 2])
    torch.testing.assert_close(
        F.cross_entropy(scores.to("tpu"), target.to("tpu")).cpu(), F.cross_entropy(scores, target)
    )


# ---- masks
MASKS: dict[str, Callable[[torch.Tensor, torch.Tensor], Any]] = {
    "read": lambda x, m: x[m],
    "read rows": lambda x, m: x[m[:, 0]],
    "read columns": lambda x, m: x[:, m[0]],
    "read with an index": lambda x, m: x[m[:, 0], 1],
    "0-d": lambda x, m: x[m[0, 0]],
    "0-d and an index": lambda x, m: x[m[0, 1], 1:],
    "byte": lambda x, m: x[m.to(torch.uint8)] if x.device.type == "tpu" else x[m],
    "write a number": lambda x, m: x.__setitem__(m, -1),
    "write a tensor of one": lambda x, m: x.__setitem__(m, torch.full((1,), 7.0, device=x.device)),
    "write rows": lambda x, m: x.__setitem__(m[:, 0], torch.arange(3.0, device=x.device)),
    "write columns": lambda x, m: x.__setitem__((slice(None), m[0]), torch.arange(4.0, device=x.device).view(4, 1)),
    "write by 0-d": lambda x, m: x.__setitem__(m[0, 0], 5.0),
    "write values in order": lambda x, m: x.__setitem__(m, torch.arange(float(m.sum()), device=x.device)),
    "accumulate": lambda x, m: x.index_put_((m,), torch.ones((), device=x.device), accumulate=True),
    "add in place": lambda x, m: x.__setitem__(m, x[m] * 2),
    "too many values": lambda x, m: x.__setitem__(m, torch.ones(50, device=x.device)),
    "wrong shape": lambda x, m: x[m.t()],
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("density", ["some", "none", "all"])
@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
def test_masks(name: str, density: str) -> None:
    mask = {"some": table().cpu() % 2 == 0, "none": torch.zeros(4, 3).bool(), "all": torch.ones(4, 3).bool()}[density]
    results = []
    for device in ("cpu", "tpu"):
        x = torch.arange(12.0, device=device).view(4, 3)
        try:
            read = MASKS[name](x, mask.to(device))
            results.append((x.cpu(), read.cpu() if isinstance(read, torch.Tensor) else x.cpu()))
        except (IndexError, RuntimeError) as error:
            results.append(type(error))
    torch.testing.assert_close(results[1], results[0]) if isinstance(results[0], tuple) else None
    assert isinstance(results[1], tuple) == isinstance(results[0], tuple)


def test_writing_one_value_by_a_mask_reads_nothing_back() -> None:
    x, m = torch.arange(6.0, device="tpu"), torch.tensor([True, False] * 3, device="tpu")
    values = torch.tensor([1.0, 2.0], device="tpu")
    x.index_put_((m,), values[:1])
    x.index_put_((m,), values[1])
    before = torch.tpu.cache_stats()["memory_hits"]
    x.index_put_((m,), values[1])  # one program: nothing counts the mask
    assert torch.tpu.cache_stats()["memory_hits"] - before == 1
    assert x.tolist() == [2, 1, 2, 3, 2, 5]


def test_gradients_through_a_mask() -> None:
    grads = []
    for device in ("cpu", "tpu"):
        x = torch.arange(6.0, device=device, requires_grad=True)
        y = x * 3
        y[x > 2] = 0.0
        (y[x < 5] ** 2).sum().backward()
        grads.append(x.grad.cpu())
    torch.testing.assert_close(grads[1], grads[0])
