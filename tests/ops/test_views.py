"""Views, aliasing and in-place writes: random chains on the device do what they do on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

View = Callable[[torch.Tensor], torch.Tensor]


@st.composite
def views(draw: st.DrawFn, x: torch.Tensor) -> tuple[str, View]:
    """A view operator that fits x, with its text."""
    rank = x.dim()
    kinds = ["unsqueeze", "expand", "as_strided", "alias"]
    if rank:
        kinds += ["select", "slice", "transpose", "unfold", "flip dims", "movedim", "squeeze", "chunk", "narrow"]
    if rank >= 2:
        kinds += ["diagonal", "permute"]
    if x.is_contiguous() and x.numel():
        kinds += ["view"]
    kind = draw(st.sampled_from(kinds))
    dim = draw(st.integers(0, rank - 1)) if rank else 0
    size = x.size(dim) if rank else 1
    if kind == "select" and size:
        i = draw(st.integers(-size, size - 1))
        return f"select({dim}, {i})", lambda t: t.select(dim, i)
    if kind == "slice":
        start, stop, step = draw(st.integers(0, size)), draw(st.integers(0, size)), draw(st.integers(1, 3))
        return f"slice({dim}, {start}, {stop}, {step})", lambda t: torch.ops.aten.slice(t, dim, start, stop, step)
    if kind == "narrow":
        start = draw(st.integers(0, size))
        length = draw(st.integers(0, size - start))
        return f"narrow({dim}, {start}, {length})", lambda t: t.narrow(dim, start, length)
    if kind == "chunk" and size > 1:
        return f"chunk(2, {dim})[1]", lambda t: t.chunk(2, dim)[1]
    if kind == "transpose":
        other = draw(st.integers(0, rank - 1))
        return f"transpose({dim}, {other})", lambda t: t.transpose(dim, other)
    if kind == "movedim":
        return f"movedim({dim}, 0)", lambda t: t.movedim(dim, 0)
    if kind == "permute":
        order = draw(st.permutations(range(rank)))
        return f"permute({order})", lambda t: t.permute(order)
    if kind == "squeeze":
        return f"squeeze({dim})", lambda t: t.squeeze(dim)
    if kind == "unfold" and size:
        length, step = draw(st.integers(1, min(size, 3))), draw(st.integers(1, 2))
        return f"unfold({dim}, {length}, {step})", lambda t: t.unfold(dim, length, step)
    if kind == "diagonal":
        offset = draw(st.integers(-1, 1))
        return f"diagonal({offset})", lambda t: t.diagonal(offset)
    if kind == "expand":
        return "expand(2, ...)", lambda t: t.expand(2, *t.shape)
    if kind == "view":
        return "view(-1)", lambda t: t.view(-1)
    if kind == "as_strided" and x.numel():
        # A window in what the view can reach, with strides that overlap or not.
        reach = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
        rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        row, column = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        if (rows - 1) * row + (columns - 1) * column < reach:
            return (
                f"as_strided(({rows}, {columns}), ({row}, {column}))",
                lambda t: t.as_strided((rows, columns), (row, column), t.storage_offset()),
            )
    return "unsqueeze(0)", lambda t: t.unsqueeze(0)


def overlaps(x: torch.Tensor) -> bool:
    """Several elements of x are one place in memory."""
    places = torch.zeros(1, dtype=torch.int64)
    for size, stride in zip(x.shape, x.stride()):
        places = (places.unsqueeze(-1) + torch.arange(size) * stride).flatten()
    return places.unique().numel() < places.numel()


WRITES: dict[str, Callable[[torch.Tensor], Any]] = {
    "add_": lambda t: t.add_(1),
    "mul_": lambda t: t.mul_(t.sum()),
    "fill_": lambda t: t.fill_(-3),
    "copy_": lambda t: t.copy_(torch.arange(float(t.numel())).view(t.shape)),
    "zero_": lambda t: t.zero_(),
    "own transpose": lambda t: t.add_(t.flip(list(range(t.dim())))),
    "cumsum_": lambda t: t.cumsum_(0) if t.dim() else t,
}


@settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_chains_of_views_and_writes(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(4, 6), (2, 3, 4), (7,), (3, 1, 5), ()]))
    host = torch.arange(1.0, torch.Size(shape).numel() + 1).view(shape)
    device = host.to("tpu")
    kept = [(host, device)]
    done: list[str] = [f"{shape}"]
    for _ in range(data.draw(st.integers(1, 5))):
        a, b = kept[data.draw(st.integers(0, len(kept) - 1))]
        for _ in range(data.draw(st.integers(1, 3))):
            text, view = data.draw(views(a))
            a, b = view(a), view(b)
            done.append(text)
            assert (a.shape, a.stride(), a.storage_offset()) == (b.shape, b.stride(), b.storage_offset()), done
        kept.append((a, b))
        # A write to memory that overlaps itself is refused or undefined on the CPU too.
        if a.numel() and not overlaps(a):
            name = data.draw(st.sampled_from(sorted(WRITES)))
            done.append(name)
            WRITES[name](a), WRITES[name](b)
        for one, other in kept:
            torch.testing.assert_close(other.cpu(), one, msg=lambda m: f"{m}\n{' . '.join(done)}")


def both(program: Callable[[str], Any]) -> None:
    torch.testing.assert_close(program("tpu").cpu(), program("cpu"))


def test_writing_through_a_transposed_view_of_oneself() -> None:
    def program(device: str) -> torch.Tensor:
        x = torch.arange(9.0, device=device).view(3, 3)
        x.copy_(x.t().clone())
        x.t()[0].mul_(10)
        return x

    both(program)


def test_shifting_by_a_clone_of_an_overlapping_slice() -> None:
    def program(device: str) -> torch.Tensor:
        x = torch.arange(8, device=device)
        x[1:] = x[:-1].clone()
        return x

    both(program)


def test_sliding_windows_see_writes_to_their_base() -> None:
    def program(device: str) -> torch.Tensor:
        x = torch.zeros(6, device=device)
        windows = x.unfold(0, 3, 1)
        x[2] = 5
        return windows.sum(1)

    both(program)


def test_writing_to_an_expanded_tensor_is_refused() -> None:
    for device in ("cpu", "tpu"):
        x = torch.zeros(1, device=device).expand(4)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            x.add_(1)


def test_partly_overlapping_inputs_and_outputs_are_refused() -> None:
    for device in ("cpu", "tpu"):
        x = torch.arange(6.0, device=device)
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            torch.add(x[:-1], 1, out=x[1:])


def test_a_view_of_another_dtype_shares_memory() -> None:
    def program(device: str) -> torch.Tensor:
        x = torch.tensor([1.0, -2.0], device=device)
        bits = x.view(torch.int32)
        bits[0] = 0x40400000
        return torch.cat([x, bits.float()])

    both(program)


def test_real_and_imaginary_parts_share_memory() -> None:
    def program(device: str) -> torch.Tensor:
        z = torch.tensor([1 + 2j, 3 - 1j], device=device)
        z.real.mul_(2)
        z.imag[1] = 7
        torch.view_as_real(z)[0, 1] = -4
        return torch.cat([z, z.conj(), z.conj().imag + 0j])

    both(program)


def test_in_place_on_a_view_gives_the_gradient_of_its_base() -> None:
    def program(device: str) -> torch.Tensor:
        x = torch.arange(1.0, 7.0, device=device).view(2, 3).requires_grad_()
        y = x * 2
        y[:, 1].mul_(3)
        y.t()[2].exp_()
        y.sum().backward()
        return x.grad

    both(program)


def test_version_counters_catch_what_backward_needs() -> None:
    x = torch.ones(3, device="tpu", requires_grad=True)
    y = x.exp()
    y[0] = 0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_resize_and_set_share_or_grow_the_storage() -> None:
    def program(device: str) -> torch.Tensor:
        x = torch.arange(6.0, device=device)
        y = torch.empty(0, device=device)
        y.set_(x.untyped_storage(), 2, (2, 2), (1, 2))
        y.add_(10)
        x.resize_(2, 2)
        return torch.cat([x.flatten(), y.flatten()])

    both(program)
