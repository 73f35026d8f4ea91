"""When a result of the device equals the CPU's."""

from __future__ import annotations

from typing import Any

import torch
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_leaves

from sweep.samples import describe

# (rtol, atol) by the dtype of a result.
_FLOOR = {
    torch.float32: (2e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.bfloat16: (1.6e-2, 1e-3),
    torch.float16: (1e-3, 1e-4),
    torch.complex64: (4e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}

# (operator, what is compared) -> (rtol, atol, reason) where these, and PyTorch's own for the operator, are too narrow.
TOLERANCES: dict[tuple[str, str], tuple[float, float, str]] = {
    ("logcumsumexp", "gradient"): (1e-2, 1e-2, "it cancels: CPU torch is 2e-3 off the float64 result, the device 3e-3"),
}

# Results that differ from the CPU's by nature: only their number, shapes and dtypes are compared.
RANDOM: set[str] = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "normal", "normal_in_place", "normal_number_mean",
    "uniform", "rand_like", "randn", "randn_like", "randint", "randint_like", "multinomial", "binomial", "poisson",
    "nn_functional_dropout", "nn_functional_dropout2d", "nn_functional_dropout3d", "nn_functional_alpha_dropout",
    "nn_functional_feature_alpha_dropout_with_train", "nn_functional_fractional_max_pool2d",
    "nn_functional_fractional_max_pool3d", "nn_functional_rrelu", "svd_lowrank", "pca_lowrank",
    # no values are promised
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
}  # fmt: skip

# (values, positions), or positions, where any of several equal elements may be chosen.
POSITIONS: set[str] = {
    "topk", "kthvalue", "median", "nanmedian", "mode", "sort", "cummax", "cummin", "max_reduction_with_dim",
    "min_reduction_with_dim", "argsort", "msort",
}  # fmt: skip


def is_random(op: OpInfo, sample: SampleInput) -> bool:
    if op.formatted_name == "nn_functional_multi_head_attention_forward":
        return sample.args[9] > 0 and sample.kwargs["training"]
    return op.formatted_name in RANDOM or sample.kwargs.get("dropout_p", 0) > 0


def compare(op: OpInfo, sample: SampleInput, expected: Any, found: Any) -> None:
    """Numbers, dtypes and shapes of results. AssertionError where they differ."""
    if op.formatted_name in POSITIONS and (op.formatted_name == "argsort" or len(tree_leaves(found)) == 2):
        # Of equal elements any may be chosen: the chosen position must hold the value.
        *values, wanted = tree_leaves(expected)
        *others, positions = tree_leaves(found)
        close(op, sample, values, others, "values")
        form = (positions.dtype, positions.shape, positions.device.type)
        assert form == (wanted.dtype, wanted.shape, "tpu"), f"positions are {form}; {describe(sample)}"
        torch.testing.assert_close(
            _chosen(sample, positions.cpu()),
            _chosen(sample, wanted),
            rtol=0,
            atol=0,
            equal_nan=True,
            msg=lambda text: f"elements at the positions: {text}\n{describe(sample)}",
        )
    else:
        close(op, sample, expected, found, "result")


def _chosen(sample: SampleInput, positions: torch.Tensor) -> torch.Tensor:
    """The sample's elements at the positions that an operator has chosen along its dimension."""
    x = sample.input.detach()
    numbers = [*sample.args, *sample.kwargs.values()]
    candidates = [d for d in numbers if isinstance(d, int) and not isinstance(d, bool) and -x.dim() <= d < x.dim()]
    dim = sample.kwargs.get("dim", candidates[-1] if candidates else -1)
    if x.dim() == 0 or x.numel() == 0:
        return positions
    keep = positions.dim() == x.dim()
    return x.gather(dim, positions if keep else positions.unsqueeze(dim))


def tolerance(op: Any, dtype: torch.dtype, what: str, factor: float = 1) -> dict[str, float]:
    """The largest of _FLOOR (times factor), what PyTorch's own tests give the operator, and TOLERANCES."""
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
            assert type(a) is type(b) and (a == b or (a != a and b != b)), f"{b} instead of {a}; {describe(sample)}"
            continue
        assert isinstance(b, torch.Tensor), f"{type(b)} instead of a tensor; {describe(sample)}"
        assert b.device.type == "tpu" or a.numel() == 0, f"{what} is on {b.device}; {describe(sample)}"
        b = b.detach().cpu()
        assert (a.shape, a.dtype) == (b.shape, b.dtype), (
            f"{what} is {b.dtype} {tuple(b.shape)} instead of {a.dtype} {tuple(a.shape)}; {describe(sample)}"
        )
        if not is_random(op, sample):
            torch.testing.assert_close(
                b,
                a.detach(),
                equal_nan=True,
                check_stride=False,
                msg=lambda text: f"{what}: {text}\n{describe(sample)}",
                **tolerance(op, a.dtype, what, factor),
            )


def same_strides(sample: SampleInput, expected: Any, found: Any) -> None:
    """Strides of results, where a dimension has more than one element to step over."""
    for a, b in zip(tree_leaves(expected), tree_leaves(found), strict=True):
        if not isinstance(a, torch.Tensor) or a.numel() < 2 or a.layout != torch.strided:
            continue
        steps = [(s, t) for n, s, t in zip(a.shape, a.stride(), b.stride()) if n > 1]
        assert all(s == t for s, t in steps), (
            f"strides {b.stride()} instead of {a.stride()} of shape {tuple(a.shape)}; {describe(sample)}"
        )
