"""Random index expressions, read and written, give what they give on the CPU."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SHAPES = ((5,), (3, 4), (2, 3, 4), (2, 1, 3, 2))
RULES = settings(
    max_examples=80, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@st.composite
def expressions(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """What may stand in the brackets after a tensor of this shape; tensors in it are on the CPU."""
    items: list[Any] = []
    # Index tensors broadcast with each other: one length, or one element.
    length = draw(st.integers(0, 3))
    dim = 0
    while dim < len(shape):
        kind = draw(st.sampled_from(["int", "slice", "tensor", "list", "mask", "rows of a mask", "None", "..."]))
        size = shape[dim]
        if kind == "...":
            if Ellipsis in [i for i in items if not isinstance(i, torch.Tensor)]:
                continue
            items.append(Ellipsis)
            dim += draw(st.integers(0, len(shape) - dim))
            # What is left after an ellipsis counts from the end.
            continue
        if kind == "None":
            items.append(None)
            if draw(st.booleans()):
                break
            continue
        index = st.integers(-size, size - 1)
        if kind == "int":
            items.append(draw(index))
        elif kind == "slice":
            bound = st.none() | st.integers(-size - 1, size + 1)
            items.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3))))
        elif kind == "tensor":
            shaped = draw(st.sampled_from([(length,), (1,), (), (2, length)]))
            count = torch.Size(shaped).numel()
            numbers = draw(st.lists(index, min_size=count, max_size=count))
            items.append(torch.tensor(numbers, dtype=torch.int64).view(shaped))
        elif kind == "list":
            items.append(draw(st.lists(index, min_size=1, max_size=1)))
        elif kind == "mask":
            items.append(torch.tensor(draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=torch.bool))
        elif dim + 1 < len(shape):
            count = size * shape[dim + 1]
            mask = torch.tensor(draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=torch.bool)
            items.append(mask.view(size, shape[dim + 1]))
            dim += 1
        else:
            continue
        dim += 1
    return tuple(items)


def moved(expression: tuple[Any, ...], device: str) -> tuple[Any, ...]:
    return tuple(i.to(device) if isinstance(i, torch.Tensor) else i for i in expression)


def tried(program: Any) -> Any:
    """What the program gives, on the CPU, or the kind of exception."""
    try:
        return program().cpu()
    except (IndexError, RuntimeError) as error:
        return type(error)


def agree(expected: Any, found: Any) -> None:
    if isinstance(expected, type):
        assert found is expected
    else:
        assert not isinstance(found, type), found
        torch.testing.assert_close(found, expected)


@RULES
@given(data=st.data())
def test_reading(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    expression = data.draw(expressions(shape))
    x = torch.arange(float(torch.Size(shape).numel())).view(shape)
    agree(tried(lambda: x[expression]), tried(lambda: x.to("tpu")[moved(expression, "tpu")]))


@RULES
@given(data=st.data())
def test_writing(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    expression = data.draw(expressions(shape))
    how = data.draw(st.sampled_from(["number", "one", "all", "accumulate"]))
    host = torch.arange(float(torch.Size(shape).numel())).view(shape)
    try:
        selected = host[expression]
    except (IndexError, RuntimeError):
        selected = torch.zeros(())

    def program(device: str) -> torch.Tensor:
        x, index = host.to(device, copy=True), moved(expression, device)
        if how == "number":
            x[index] = -7
        elif how == "one":
            x[index] = torch.tensor(-7.5, device=device)
        elif how == "all":
            # Of several values for one place any may stay, so they are the same.
            x[index] = torch.full(selected.shape, -2.0, device=device)
        else:
            x[index] += 1
        return x

    agree(tried(lambda: program("cpu")), tried(lambda: program("tpu")))


@RULES
@given(data=st.data())
def test_gradients(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    expression = data.draw(expressions(shape))

    def program(device: str) -> torch.Tensor:
        x = torch.arange(float(torch.Size(shape).numel()), device=device).view(shape).requires_grad_()
        y = (x * 2)[moved(expression, device)]
        (y * y).sum().backward()
        return x.grad

    agree(tried(lambda: program("cpu")), tried(lambda: program("tpu")))
