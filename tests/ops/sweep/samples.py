"""The entries of PyTorch's data bases, and small samples of each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch.testing._internal import common_methods_invocations as invocations
from torch.testing._internal.opinfo.core import (
    BinaryUfuncInfo,
    ForeachFuncInfo,
    OpInfo,
    ReductionOpInfo,
    SampleInput,
    UnaryUfuncInfo,
)
from torch.utils._pytree import tree_leaves, tree_map

FOREACH: list[OpInfo] = [
    *invocations.foreach_unary_op_db,
    *invocations.foreach_binary_op_db,
    *invocations.foreach_pointwise_op_db,
    *invocations.foreach_reduce_op_db,
    *invocations.foreach_other_op_db,
]
OPS: dict[str, OpInfo] = {op.formatted_name: op for op in (*invocations.op_db, *FOREACH)}

# How the names of linear algebra and Fourier transforms begin.
ALGEBRA = (
    *(
        "cholesky",
        "det",
        "fft",
        "geqrf",
        "istft",
        "linalg",
        "logdet",
        "lu",
        "matrix",
        "ormqr",
        "pca",
        "pinv",
        "qr",
        "slogdet",
    ),
    *("slogdet", "stft", "svd", "triangular"),
)

# Elements of a sample above which it is passed over: time goes into operators, not into elements.
LARGE = 1 << 15

# Operators whose tensor arguments beside the input stay on the CPU, on every device.
HOST_ARGUMENTS = {"tensor_split"}


INTEGERS = (torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool)
FLOATS = (torch.float64, torch.bfloat16, torch.float16, torch.complex64)
DTYPES = (torch.float32, *FLOATS, *INTEGERS)


def family(name: str) -> str:
    """Which file of tests an entry is in: "foreach", "nn", "algebra", "elementwise" or "other"."""
    if name.startswith("_foreach"):
        return "foreach"
    if name.startswith("nn_functional"):
        return "nn"
    if name.startswith(ALGEBRA) or isinstance(OPS[name], ReductionOpInfo):
        return "algebra"
    return "elementwise" if isinstance(OPS[name], (UnaryUfuncInfo, BinaryUfuncInfo)) else "other"


def cases(wanted: str, dtypes: Sequence[torch.dtype] = DTYPES) -> list[Any]:
    """The parameters (name, dtype) of the tests of a family."""
    return [
        pytest.param(name, dtype, id=f"{name}-{str(dtype).removeprefix('torch.')}")
        for name, op in OPS.items()
        if family(name) == wanted
        for dtype in dtypes
        if supported(op, dtype)
    ]


def supported(op: OpInfo, dtype: torch.dtype) -> bool:
    return dtype in op.supported_dtypes("cpu")


def first_dtype(op: OpInfo) -> torch.dtype:
    """float32 where there is a choice, and for the operators that support none of DTYPES, which have no test."""
    return next((dtype for dtype in DTYPES if supported(op, dtype)), torch.float32)


def differentiable(op: OpInfo, dtype: torch.dtype) -> bool:
    return bool(op.supports_autograd) and dtype in op.supported_backward_dtypes("cpu")


def samples(op: OpInfo, dtype: torch.dtype, count: int, requires_grad: bool = False) -> Iterator[SampleInput]:
    """The first `count` samples on the CPU that are not large and differ in more than the elements of their tensors."""
    torch.manual_seed(0)
    more = {"num_input_tensors": [4]} if isinstance(op, ForeachFuncInfo) else {}
    seen = set()
    for sample in quiet(op.sample_inputs, "cpu", dtype, requires_grad=requires_grad, **more):
        key = signature(sample)
        if key in seen or elements_of(sample) > LARGE:
            continue
        seen.add(key)
        yield sample
        if len(seen) == count:
            return


def leaves(sample: SampleInput) -> list[Any]:
    return tree_leaves((sample.input, sample.args, sample.kwargs))


def elements_of(sample: SampleInput) -> int:
    return sum(t.numel() for t in leaves(sample) if isinstance(t, torch.Tensor))


def signature(sample: SampleInput) -> str:
    """Everything but the elements of its tensors."""

    def short(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            strides = value.stride() if value.layout == torch.strided else value.layout
            return (value.dtype, value.shape, strides, value.requires_grad, value.is_conj(), value.is_neg())
        return value

    return repr(tree_map(short, (sample.input, sample.args, sample.kwargs)))


def changed(sample: SampleInput, change: Callable[[Any], Any]) -> SampleInput:
    """The sample with every tensor, number and device in it replaced."""
    return SampleInput(
        tree_map(change, sample.input),
        args=tree_map(change, tuple(sample.args)),
        kwargs=tree_map(change, dict(sample.kwargs)),
        output_process_fn_grad=sample.output_process_fn_grad,
        broadcasts_input=sample.broadcasts_input,
    )


def to_device(value: Any) -> Any:
    """A tensor, device or generator, on the device. A tensor keeps its strides, offset and the rest of its storage, and
    is a leaf that requires gradients where the original does."""
    if isinstance(value, torch.Tensor):
        there = value.detach().to("tpu")
        if value.layout == torch.strided and not (value.is_conj() or value.is_neg()):
            storage = value.untyped_storage()
            if there.stride() != value.stride() or storage.nbytes() != value.numel() * value.itemsize:
                flat = torch.empty(0, dtype=value.dtype).set_(storage).to("tpu")
                there = flat.as_strided(value.shape, value.stride(), value.storage_offset())
        return there.requires_grad_(value.requires_grad)
    if isinstance(value, torch.device) or (isinstance(value, str) and value == "cpu"):
        return torch.device("tpu")
    if isinstance(value, torch.Generator):
        return torch.Generator(device="tpu").manual_seed(value.initial_seed())
    return value


def is_image(t: torch.Tensor) -> bool:
    return (
        t.dim() in (4, 5) and t.size(1) > 1 and t.shape[2:].numel() > 1 and t.numel() > 0 and t.layout == torch.strided
    )


def channels_last(value: Any) -> Any:
    """A batch of images with several channels, in that memory format; everything else as it is."""
    if not isinstance(value, torch.Tensor) or not is_image(value):
        return value
    form = torch.channels_last if value.dim() == 4 else torch.channels_last_3d
    return value.detach().contiguous(memory_format=form).requires_grad_(value.requires_grad)


def moved(op: OpInfo, sample: SampleInput) -> SampleInput:
    """The sample on the device. Tensors that share memory share it there too."""
    storages: dict[int, Any] = {}
    tensors = [t for t in leaves(sample) if isinstance(t, torch.Tensor) and t.layout == torch.strided]
    places = [t.untyped_storage().data_ptr() for t in tensors if t.numel()]
    if len(set(places)) < len(places):

        def share(value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or value.layout != torch.strided or not value.numel():
                return to_device(value)
            storage = value.untyped_storage()
            if storage.data_ptr() not in storages:
                flat = torch.empty(0, dtype=value.dtype).set_(storage)
                storages[storage.data_ptr()] = (value.dtype, flat.to("tpu"))
            dtype, flat = storages[storage.data_ptr()]
            if dtype != value.dtype or value.is_conj() or value.is_neg():
                return to_device(value)
            part = flat.as_strided(value.shape, value.stride(), value.storage_offset())
            return part.requires_grad_(value.requires_grad)

        return changed(sample, share)
    if op.formatted_name in HOST_ARGUMENTS:
        return SampleInput(to_device(sample.input), args=tuple(sample.args), kwargs=dict(sample.kwargs))
    return changed(sample, to_device)


WIDER = {
    torch.bfloat16: torch.float32,
    torch.float16: torch.float32,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


def widened(sample: SampleInput, dtype: torch.dtype) -> SampleInput:
    """The sample with the next wider type in place of `dtype`."""

    def widen(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype == dtype:
            return value.detach().to(WIDER[dtype]).requires_grad_(value.requires_grad)
        return WIDER[dtype] if value is dtype else value

    return changed(sample, widen)


def quiet(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Operators warn of deprecations and of host fallbacks, which are counted instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def describe(sample: SampleInput) -> str:
    def short(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            name = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
            if value.layout != torch.strided:
                return f"{name} {value.layout}"
            return name if value.is_contiguous() else f"{name} strides {list(value.stride())}"
        return value

    return f"sample {tree_map(short, (sample.input, *sample.args))} {tree_map(short, sample.kwargs)}"
