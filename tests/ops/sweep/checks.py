"""What is checked of an operator, for one dtype."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.testing._internal.common_utils import noncontiguous_like
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_leaves, tree_map

from sweep.comparison import POSITIONS, close, compare, same_strides
from sweep.samples import (
    WIDER,
    changed,
    channels_last,
    describe,
    differentiable,
    first_dtype,
    is_image,
    leaves,
    moved,
    quiet,
    samples,
    to_device,
    widened,
)

# How many samples: results, gradients, in-place and out= forms. What takes time is compiling a program for each.
COUNTS, FEW = (8, 4, 2), (2, 1, 1)


class Outcome:
    """Problems by check: "forward", "strides", "gradient", "gradgrad", "in-place", "out", "layout", "errors"; and the
    operators that ran on the host."""

    def __init__(self) -> None:
        self.problems: dict[str, list[str]] = defaultdict(list)
        self.ran: Counter[str] = Counter()
        self.fallbacks: Counter[str] = Counter()

    @contextmanager
    def attempt(self, check: str) -> Iterator[None]:
        self.ran[check] += 1
        try:
            yield
        except Exception as error:
            self.problems[check].append(f"{type(error).__name__}: {error}")

    @contextmanager
    def counting(self) -> Iterator[None]:
        before = Counter(torch.tpu.cache_stats()["fallback_ops"])
        yield
        self.fallbacks += Counter(torch.tpu.cache_stats()["fallback_ops"]) - before


def run(op: OpInfo, dtype: torch.dtype) -> Outcome:
    """Every check of the operator for this dtype; the most for its first one, which is float32 nearly always."""
    outcome = Outcome()
    full = dtype == first_dtype(op)
    with outcome.counting():
        with_gradient = differentiable(op, dtype)
        forward, first, _ = COUNTS if full else FEW
        for i, sample in enumerate(samples(op, dtype, forward, requires_grad=with_gradient)):
            one_sample(outcome, op, sample, dtype, "forward")
            if with_gradient and i < first:
                gradient(outcome, op, sample, dtype, second=full and i < 2 and op.supports_gradgrad)
        for i, sample in enumerate(samples(op, dtype, (COUNTS if full else FEW)[2])):
            if op.inplace_variant is not None:
                in_place(outcome, op, sample, dtype)
            if op.supports_out:
                out(outcome, op, sample, dtype, thorough=full and i == 0)
        if full:
            layouts(outcome, op, dtype)
            errors(outcome, op)
    return outcome


# ---- one call
def call(op: OpInfo, sample: SampleInput, **more: Any) -> Any:
    return quiet(op, sample.input, *sample.args, **sample.kwargs, **more)


def attempt_call(op: OpInfo, sample: SampleInput, **more: Any) -> Any:
    """The operator's result, or the exception that it raises."""
    try:
        return call(op, sample, **more)
    except Exception as error:
        return error


def one_sample(outcome: Outcome, op: OpInfo, sample: SampleInput, dtype: torch.dtype, check: str) -> None:
    """Results and strides of one call."""
    on_device = moved(op, sample)
    expected = attempt_call(op, sample)
    if isinstance(expected, Exception):
        return
    with outcome.attempt(check):
        found = call(op, on_device)
        with outcome.attempt("layout" if check == "layout" else "strides"):
            same_strides(sample, expected, found)
        same_results(op, sample, dtype, expected, found)


def same_results(op: OpInfo, sample: SampleInput, dtype: torch.dtype, expected: Any, found: Any) -> None:
    """AssertionError unless `found` is the CPU's result, or the exact one: CPU torch rounds in the middle of some
    operators."""
    try:
        compare(op, sample, expected, found)
    except AssertionError:
        exact = attempt_call(op, widened(sample, dtype)) if dtype in WIDER else RuntimeError()
        if isinstance(exact, Exception):
            raise
        compare(op, sample, rounded(exact, expected), found)


def rounded(exact: Any, like: Any) -> Any:
    pairs = zip(tree_leaves(exact), tree_leaves(like), strict=True)
    return [e.to(t.dtype) if isinstance(e, torch.Tensor) else e for e, t in pairs]


# ---- gradients
def gradient(outcome: Outcome, op: OpInfo, sample: SampleInput, dtype: torch.dtype, second: bool) -> None:
    """First gradients, and second ones."""
    on_device = moved(op, sample)
    expected = attempt_call(op, sample)
    if isinstance(expected, Exception):
        return
    found = attempt_call(op, on_device)
    if isinstance(found, Exception):
        return  # which the forward check reports
    by_value = op.formatted_name in POSITIONS  # the order of equal elements is free
    for check, order in (("gradient", 1), *((("gradgrad", 2),) if second else ())):
        try:
            wanted = gradients(sample, expected, order, by_value=by_value)
        except Exception:
            continue  # CPU torch has no such gradient
        with outcome.attempt(check):
            got = gradients(on_device, found, order, by_value=by_value)
            try:
                close(op, sample, wanted, got, "gradient", factor=5 * order)
            except AssertionError:
                if dtype not in WIDER:
                    raise
                wide = widened(sample, dtype)
                exact = attempt_call(op, wide)
                if isinstance(exact, Exception):
                    raise
                exact = gradients(wide, exact, order, dtype, by_value)
                close(op, sample, rounded(exact, wanted), got, "gradient", factor=5 * order)


def gradients(
    sample: SampleInput, result: Any, order: int, narrow: torch.dtype | None = None, by_value: bool = False
) -> list[torch.Tensor | None]:
    """Of the differentiable results, each weighted with numbers that differ, for every leaf of the sample; for order 2
    the gradients of these gradients. Weights are rounded to `narrow`; `by_value` gives equal results equal ones."""
    variables = [t for t in leaves(sample) if isinstance(t, torch.Tensor) and t.requires_grad]
    results = tree_leaves(sample.output_process_fn_grad(result))
    for level in range(order):
        results = [t for t in results if isinstance(t, torch.Tensor) and t.requires_grad]
        if not results or not variables:
            return []
        weights = [weight(t, narrow, by_value) for t in results]
        again = level + 1 < order
        if again:
            variables_now = variables
            weights = [w.requires_grad_() for w in weights]
            variables = [*variables, *weights]
        else:
            variables_now = variables
        results = list(
            quiet(
                torch.autograd.grad,
                results,
                variables_now,
                weights,
                allow_unused=True,
                create_graph=again,
                retain_graph=True,
            )
        )
    return results


def weight(t: torch.Tensor, narrow: torch.dtype | None, by_value: bool) -> torch.Tensor:
    w = torch.cos(t.detach().cpu().float() if by_value else torch.arange(float(t.numel())).view(t.shape))
    if narrow is not None and t.dtype == WIDER[narrow]:
        w = w.to(narrow)
    return w.to(t.device, t.dtype)


# ---- variants
def in_place(outcome: Outcome, op: OpInfo, sample: SampleInput, dtype: torch.dtype) -> None:
    if not all(isinstance(t, torch.Tensor) for t in tree_leaves(sample.input)):
        return
    on_device = moved(op, sample)
    expected = attempt_in_place(op, sample)
    with outcome.attempt("in-place"):
        found = attempt_in_place(op, on_device)
        if isinstance(expected, Exception) or isinstance(found, Exception):
            same_error(sample, expected, found)
        else:
            same_results(op, sample, dtype, expected, found)


def attempt_in_place(op: OpInfo, sample: SampleInput) -> Any:
    """What the in-place form leaves in its input, or the exception that it raises."""
    target = tree_map(torch.clone, sample.input)
    try:
        returned = quiet(op.inplace_variant, target, *sample.args, **sample.kwargs)
        torch.tpu.synchronize()
    except Exception as error:
        return error
    assert returned is target or returned is None or isinstance(target, list), "another tensor was returned"
    return target


def out(outcome: Outcome, op: OpInfo, sample: SampleInput, dtype: torch.dtype, thorough: bool) -> None:
    result = attempt_call(op, sample)
    result = tuple(result) if isinstance(result, (tuple, list)) else result  # no named one
    tensors = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(t, torch.Tensor) for t in tensors):
        return
    thorough = thorough and all(t.layout == torch.strided for t in tensors)
    on_device = moved(op, sample)
    for name, target in targets(result) if thorough else [("the result's form", filled(result))]:
        with outcome.attempt("out"):
            try:
                one_out(op, sample, dtype, on_device, target, result)
            except Exception as error:
                raise AssertionError(f"out= of {name}: {type(error).__name__}: {error}; {describe(sample)}") from error


def filled(result: Any) -> Any:
    """Filled with ones, so that a result that is not written shows."""
    return tree_map(functools.partial(torch.full_like, fill_value=1), result)


def targets(result: Any) -> Iterator[tuple[str, Any]]:
    """Tensors to give as out=: of the result's form, with other strides, of other shapes and dtypes."""

    def wider(t: torch.Tensor) -> torch.Tensor:
        return filled(t).to(torch.complex128 if t.is_complex() else torch.float64)

    yield "the result's form", filled(result)
    yield "other strides", tree_map(noncontiguous_like, filled(result))
    yield "no elements", tree_map(lambda t: t.new_empty(0), result)
    yield "a larger shape", tree_map(lambda t: t.new_ones((2, *t.shape)), result)
    yield "a wider dtype", tree_map(wider, result)
    yield "a narrower dtype", tree_map(lambda t: filled(t).to(torch.uint8), result)


def one_out(
    op: OpInfo, sample: SampleInput, dtype: torch.dtype, on_device: SampleInput, target: Any, result: Any
) -> None:
    found_in = tree_map(to_device, target)
    widened_target = any(
        t.dtype != r.dtype and torch.can_cast(r.dtype, t.dtype)
        for t, r in zip(tree_leaves(target), tree_leaves(result))
    )
    expected = attempt_call(op, sample, out=target)
    found = attempt_call(op, on_device, out=found_in)
    if isinstance(expected, Exception) and widened_target and not isinstance(found, Exception):
        return  # many of CPU torch's kernels want the exact dtype, where a safe conversion does no harm
    if isinstance(expected, Exception) or isinstance(found, Exception):
        same_error(sample, expected, found)
        return
    # Some out= forms of list operators return nothing.
    for a, b in zip(tree_leaves(found_in if found is None else found), tree_leaves(found_in), strict=True):
        assert a is b, "out= is not what was returned"
    for a, b in zip(tree_leaves(target), tree_leaves(found_in), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{b.dtype} {tuple(b.shape)} instead of {tuple(a.shape)}"
    exact = all(torch.can_cast(r.dtype, a.dtype) for a, r in zip(tree_leaves(target), tree_leaves(result)))
    if exact and all(a.shape == r.shape for a, r in zip(tree_leaves(target), tree_leaves(result))):
        # A result is as exact as its own type, whatever holds it. Some of CPU torch's kernels ignore an out tensor's
        # strides, so its own result is what counts.
        same_results(op, sample, dtype, result, rounded(found_in, result))
    same_strides(sample, target, found_in)


def same_error(sample: SampleInput, expected: Any, found: Any) -> None:
    """Both raise, the same type of exception. Where CPU torch has no kernel for a dtype, the device may have one."""
    if not isinstance(expected, Exception):
        raise found
    if isinstance(expected, NotImplementedError):
        return
    assert isinstance(found, Exception), f"no exception; CPU torch: {type(expected).__name__}: {expected}"
    assert type(found) is type(expected), (
        f"{type(found).__name__}: {found}\ninstead of {type(expected).__name__}: {expected}\n{describe(sample)}"
    )


def layouts(outcome: Outcome, op: OpInfo, dtype: torch.dtype) -> None:
    """One sample with strides that have gaps, and one that is channels last."""
    wanted = {"gaps", "channels last"}
    for sample in samples(op, dtype, 12):
        tensors = [t for t in leaves(sample) if isinstance(t, torch.Tensor)]
        if "gaps" in wanted and any(t.numel() > 1 for t in tensors):
            wanted.remove("gaps")
            one_sample(outcome, op, changed(sample, with_gaps), dtype, "layout")
        if "channels last" in wanted and any(is_image(t) for t in tensors[:1]):
            wanted.remove("channels last")
            one_sample(outcome, op, changed(sample, channels_last), dtype, "layout")


def with_gaps(value: Any) -> Any:
    return noncontiguous_like(value) if isinstance(value, torch.Tensor) and value.layout == torch.strided else value


# ---- errors
def errors(outcome: Outcome, op: OpInfo) -> None:
    """Calls that CPU torch refuses raise the same type of exception."""
    if op.error_inputs_func is None:
        return
    torch.manual_seed(0)
    for error_input in quiet(op.error_inputs, "cpu"):
        sample = error_input.sample_input
        expected = attempt_call(op, sample)
        if not isinstance(expected, Exception) or not all(is_on_cpu(t) for t in leaves(sample)):
            continue
        with outcome.attempt("errors"):
            on_device = moved(op, sample)
            found = attempt_call(op, on_device)
            if not isinstance(found, Exception):
                try:
                    torch.tpu.synchronize()
                except Exception as error:
                    found = error
            same_error(sample, expected, found)


def is_on_cpu(value: Any) -> bool:
    return not isinstance(value, torch.Tensor) or value.device.type == "cpu"
