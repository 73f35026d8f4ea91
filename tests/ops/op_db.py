"""PyTorch's own operator samples, run on the device and on the CPU, and compared."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from known import HOST_ARGUMENTS, KNOWN, POSITIONS, RANDOM, TOLERANCES
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_leaves, tree_map

OPS: dict[str, OpInfo] = {op.formatted_name: op for op in op_db}

# How many samples of each kind. The first ones of an operator are its plain uses.
SAMPLES = 4
VARIANT_SAMPLES = 2

# (rtol, atol) by the dtype of a result.
_FLOOR = {
    torch.float32: (2e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.bfloat16: (1.6e-2, 1e-3),
    torch.complex64: (4e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}


def supported(op: OpInfo, dtype: torch.dtype) -> bool:
    return dtype in op.supported_dtypes("cpu")


def check(op: OpInfo, dtype: torch.dtype) -> None:
    """Runs every check of the operator for this dtype. AssertionError for one that fails without being in known.KNOWN,
    and for one that passes although it is there."""
    checks: dict[str, Callable[[OpInfo, torch.dtype], None]] = {"forward": forward}
    if dtype == torch.float32:
        if op.supports_autograd and dtype in op.supported_backward_dtypes("cpu"):
            checks["gradient"] = gradient
        if op.inplace_variant is not None:
            checks["in-place"] = in_place
        if op.supports_out:
            checks["out"] = out
    expected = KNOWN.get(op.formatted_name, {})
    problems = []
    for name, run in checks.items():
        key = f"{name} {str(dtype).removeprefix('torch.')}"
        reason = expected.get(key) or expected.get(name) or expected.get("all")
        torch.manual_seed(0)
        try:
            run(op, dtype)
        except Exception as error:
            if reason is None:
                problems.append(f"{key}: {error}")
        else:
            if reason is not None:
                problems.append(f"{key} passes: its line in known.py is stale ({reason})")
    assert not problems, "\n\n".join(problems)


def forward(op: OpInfo, dtype: torch.dtype) -> None:
    for sample in samples(op, dtype, SAMPLES):
        on_device = moved(op, sample)
        expected = call(op, sample)
        if expected is NotImplemented:
            continue
        found = call_or_raise(op, on_device)
        try:
            compare(op, sample, expected, found)
        except AssertionError:
            # CPU torch rounds to a half float in the middle of some operators: then the exact result decides.
            exact = call(op, widened(sample)) if dtype == torch.bfloat16 else NotImplemented
            if exact is NotImplemented:
                raise
            rounded = tree_map(lambda e, t: e.to(t.dtype) if isinstance(e, torch.Tensor) else e, exact, expected)
            compare(op, sample, rounded, found)


def gradient(op: OpInfo, dtype: torch.dtype) -> None:
    for sample in samples(op, dtype, SAMPLES, requires_grad=True):
        on_device = moved(op, sample)
        expected = call(op, sample)
        if expected is NotImplemented:
            continue
        wanted = gradients(sample, expected)
        found = gradients(on_device, call_or_raise(op, on_device))
        close(op, sample, wanted, found, "gradient", factor=5)


def in_place(op: OpInfo, dtype: torch.dtype) -> None:
    function = op.inplace_variant
    for sample in samples(op, dtype, VARIANT_SAMPLES):
        if sample.broadcasts_input or not isinstance(sample.input, torch.Tensor):
            continue
        on_device = moved(op, sample)
        try:
            expected = quiet(function, sample.input.clone(), *sample.args, **sample.kwargs)
        except (RuntimeError, ValueError, NotImplementedError):
            continue
        target = on_device.input.clone()
        found = quiet(function, target, *on_device.args, **on_device.kwargs)
        assert found is target, f"the in-place form returned another tensor; {describe(sample)}"
        compare(op, sample, expected, found)


def out(op: OpInfo, dtype: torch.dtype) -> None:
    for sample in samples(op, dtype, VARIANT_SAMPLES):
        on_device = moved(op, sample)
        result = call(op, sample)
        result = tuple(result) if isinstance(result, (tuple, list)) else result  # no named one
        tensors = result if isinstance(result, (tuple, list)) else (result,)
        if not all(isinstance(t, torch.Tensor) for t in tensors):
            continue

        # Filled, so that a result that is not written shows.
        expected, target = (
            tree_map(functools.partial(torch.full_like, fill_value=1, device=device), result)
            for device in ("cpu", "tpu")
        )
        if call(op, sample, out=expected) is NotImplemented:
            continue
        returned = call_or_raise(op, on_device, out=target)
        # Some out= forms of list operators return nothing.
        for a, b in zip(tree_leaves(target if returned is None else returned), tree_leaves(target), strict=True):
            assert a is b, f"out= is not what was returned; {describe(sample)}"
        compare(op, sample, expected, target)


# ---- samples
def samples(op: OpInfo, dtype: torch.dtype, count: int, requires_grad: bool = False) -> Iterator[SampleInput]:
    """The first `count` samples, on the CPU. Small ones only: time goes into operators, not into elements."""
    torch.manual_seed(0)
    return itertools.islice(quiet(op.sample_inputs, "cpu", dtype, requires_grad=requires_grad), count)


def changed(sample: SampleInput, change: Callable[[Any], Any]) -> SampleInput:
    """The sample with every tensor, number and device in it replaced."""
    return SampleInput(
        tree_map(change, sample.input),
        args=tree_map(change, tuple(sample.args)),
        kwargs=tree_map(change, dict(sample.kwargs)),
        output_process_fn_grad=sample.output_process_fn_grad,
    )


def moved(op: OpInfo, sample: SampleInput) -> SampleInput:
    """The sample on the device: leaves of their own that require gradients where the sample's do."""

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().to("tpu").requires_grad_(value.requires_grad)
        if isinstance(value, torch.device) or (isinstance(value, str) and value == "cpu"):
            return torch.device("tpu")
        if isinstance(value, torch.Generator):
            return torch.Generator(device="tpu").manual_seed(value.initial_seed())
        return value

    if op.formatted_name in HOST_ARGUMENTS:
        return SampleInput(move(sample.input), args=tuple(sample.args), kwargs=dict(sample.kwargs))
    return changed(sample, move)


def widened(sample: SampleInput) -> SampleInput:
    """The sample in float32 where it is in bfloat16."""

    def widen(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16:
            return value.float()
        return torch.float32 if value is torch.bfloat16 else value

    return changed(sample, widen)


def quiet(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Operators warn of deprecations and of host fallbacks, which are counted instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def call(op: OpInfo, sample: SampleInput, **more: Any) -> Any:
    """The operator's result, or NotImplemented when CPU torch raises."""
    try:
        return call_or_raise(op, sample, **more)
    except Exception:
        return NotImplemented


def call_or_raise(op: OpInfo, sample: SampleInput, **more: Any) -> Any:
    return quiet(op, sample.input, *sample.args, **sample.kwargs, **more)


def gradients(sample: SampleInput, result: Any) -> list[torch.Tensor | None]:
    """Of the differentiable results, each weighted with numbers that differ, for every leaf of the sample."""
    result = sample.output_process_fn_grad(result)
    results = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
    leaves = [
        t
        for t in tree_leaves((sample.input, sample.args, sample.kwargs))
        if isinstance(t, torch.Tensor) and t.requires_grad
    ]
    if not results or not leaves:
        return []
    weights = [torch.cos(torch.arange(float(t.numel()))).view(t.shape).to(t.device, t.dtype) for t in results]
    return list(quiet(torch.autograd.grad, results, leaves, weights, allow_unused=True))


# ---- comparison
def compare(op: OpInfo, sample: SampleInput, expected: Any, found: Any) -> None:
    if op.formatted_name in POSITIONS and (op.formatted_name == "argsort" or len(tree_leaves(found)) == 2):
        # Of equal elements any may be chosen: the chosen position must hold the value.
        *values, wanted = tree_leaves(expected)
        *others, positions = tree_leaves(found)
        close(op, sample, values, others, "values")
        assert positions.dtype == wanted.dtype, f"positions are {positions.dtype}; {describe(sample)}"
        close(op, sample, elements(sample, wanted), elements(sample, positions.cpu()), "elements at the positions")
    else:
        close(op, sample, expected, found, "result")


def random(op: OpInfo, sample: SampleInput) -> bool:
    if op.formatted_name == "nn_functional_multi_head_attention_forward":
        return sample.args[9] > 0 and sample.kwargs["training"]
    return op.formatted_name in RANDOM or sample.kwargs.get("dropout_p", 0) > 0


def elements(sample: SampleInput, positions: torch.Tensor) -> torch.Tensor:
    """The sample's elements at the positions that an operator has chosen along its dimension."""
    x = sample.input.detach()
    numbers = [*sample.args, *sample.kwargs.values()]
    candidates = [d for d in numbers if isinstance(d, int) and not isinstance(d, bool) and -x.dim() <= d < x.dim()]
    dim = sample.kwargs.get("dim", candidates[-1] if candidates else -1)
    if x.dim() == 0 or x.numel() == 0:
        return positions
    keep = positions.dim() == x.dim()
    return x.gather(dim, positions if keep else positions.unsqueeze(dim))


def tolerance(op: OpInfo, dtype: torch.dtype, what: str, factor: float) -> dict[str, float]:
    """The largest of _FLOOR (times factor), what PyTorch's own tests give the operator, and known.TOLERANCES."""
    pairs = [tuple(factor * t for t in _FLOOR.get(dtype, (0.0, 0.0)))]
    for decorator in op.decorators:
        for inner in getattr(decorator, "decorators", [decorator]):
            if isinstance(inner, toleranceOverride) and dtype in inner.d:
                pairs += [(inner.d[dtype].rtol, inner.d[dtype].atol)]
    if (op.formatted_name, what) in TOLERANCES:
        pairs.append(TOLERANCES[op.formatted_name, what][:2])
    return {"rtol": max(p[0] for p in pairs), "atol": max(p[1] for p in pairs)}


def close(op: OpInfo, sample: SampleInput, expected: Any, found: Any, what: str, factor: float = 1) -> None:
    wanted, got = tree_leaves(expected), tree_leaves(found)
    assert len(wanted) == len(got), f"{len(got)} {what}s instead of {len(wanted)}; {describe(sample)}"
    for a, b in zip(wanted, got, strict=True):
        if not isinstance(a, torch.Tensor):
            assert a == b or (a != a and b != b), f"{b} instead of {a}; {describe(sample)}"
            continue
        assert isinstance(b, torch.Tensor), f"{type(b)} instead of a tensor; {describe(sample)}"
        b = b.detach().cpu()
        assert (a.shape, a.dtype) == (b.shape, b.dtype), (
            f"{what} is {b.dtype} {tuple(b.shape)} instead of {a.dtype} {tuple(a.shape)}; {describe(sample)}"
        )
        if not random(op, sample):
            torch.testing.assert_close(
                b,
                a.detach(),
                equal_nan=True,
                check_stride=False,
                msg=lambda text: f"{what}: {text}\n{describe(sample)}",
                **tolerance(op, a.dtype, what, factor),
            )


def describe(sample: SampleInput) -> str:
    def short(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        return value

    return f"sample {tree_map(short, (sample.input, *sample.args))} {tree_map(short, sample.kwargs)}"
