"""What the operator table's entries are lowered to for a TPU: calls of each, recorded and not run."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import op_db
import torch
from explicit import EXPLICIT, Make, arguments_for
from torch.utils._pytree import tree_leaves, tree_map

from torch_tpu import _C, _capture

# In the order of promotion: a call counts as one of the last of its tensors' dtypes.
DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32,
    torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2, torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.complex64, torch.complex128,
)  # fmt: skip
# Of op_db, on the device. Composites reach many entries, so few samples do.
SAMPLES = 3


@dataclasses.dataclass
class Found:
    """What an operator was lowered to for tensors of a dtype."""

    modules: set[str] = dataclasses.field(default_factory=set)
    errors: set[str] = dataclasses.field(default_factory=set)


class Sweep:
    """Calls of every entry with tensors of these dtypes.

    `entries` has what each (entry, dtype name) was lowered to, `decomposed` the same for operators that PyTorch takes
    apart on the way.
    """

    def __init__(self, dtypes: Sequence[torch.dtype]) -> None:
        self.dtypes = dtypes
        self.entries: defaultdict[tuple[str, str], Found] = defaultdict(Found)
        self.decomposed: defaultdict[tuple[str, str], Found] = defaultdict(Found)
        self.table = frozenset(_C.table())

    def run(self) -> Sweep:
        torch.zeros(1, device="tpu")  # the client starts outside of any recording
        for op in op_db.OPS.values():
            for dtype in self.dtypes:
                if op_db.supported(op, dtype):
                    self.record(lambda op=op, dtype=dtype: _forward_and_backward(op, dtype))
        unreached = self.table - {entry for entry, _ in self.entries}
        for dtype in self.dtypes:
            for call in calls(unreached, dtype):
                self.record(call.on_device)
                if (_capture.entry_name(call.overload), name_of(dtype)) not in self.entries:
                    self.record(call.captured)
        return self

    def record(self, call: Callable[[], None]) -> None:
        with _C.Recording("tpu") as recording:
            call()
        for r in recording.modules:
            tensors = r.inputs or r.results
            if not tensors:
                continue
            dtype = name_of(max(tensors, key=DTYPES.index))
            called = r.why.partition("(")[0].removeprefix("aten::")
            if len(r.operators) == 1:
                found = self.entries[r.operators[0], dtype]
            else:
                found = self.decomposed[called, dtype]
            if r.error is None:
                found.modules.add(r.module)
            else:
                found.errors.add(r.error)


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _forward_and_backward(op: Any, dtype: torch.dtype) -> None:
    differentiable = (
        op.supports_autograd
        and (dtype.is_floating_point or dtype.is_complex)
        and dtype in op.supported_backward_dtypes("cpu")
    )
    for sample in op_db.samples(op, dtype, SAMPLES, requires_grad=differentiable):
        moved = op_db.moved(op, sample)
        result = op_db.call(op, moved)
        if differentiable and result is not NotImplemented:
            _attempt(lambda moved=moved, result=result: op_db.gradients(moved, result))


def _attempt(function: Callable[[], Any]) -> Any:
    """What a call gives, None when it raises: what the lowering raised is in the recording."""
    try:
        return op_db.quiet(function)
    except Exception:
        return None


@dataclasses.dataclass
class Call:
    """An overload with arguments on the CPU."""

    overload: torch._ops.OpOverload
    positional: Sequence[Any]
    keywords: dict[str, Any]

    def on_device(self) -> None:
        def move(value: Any) -> Any:
            return value.detach().to("tpu") if isinstance(value, torch.Tensor) else value

        _attempt(lambda: self.overload(*tree_map(move, tuple(self.positional)), **tree_map(move, self.keywords)))

    def captured(self) -> None:
        """As the only node of a captured graph: for entries that eager mode does not ask for."""
        result = _attempt(lambda: self.overload(*self.positional, **self.keywords))
        if result is None:
            return
        inputs = [t for t in tree_leaves((self.positional, self.keywords)) if isinstance(t, torch.Tensor)]
        capture = _C.Capture()
        numbers = {id(t): _C.Value(capture.input()) for t in inputs}

        def known(value: Any) -> Any:
            return numbers[id(value)] if isinstance(value, torch.Tensor) else value

        schema = self.overload._schema.arguments
        arguments = [
            tree_map(
                known, self.positional[i] if i < len(self.positional) else self.keywords.get(a.name, a.default_value)
            )
            for i, a in enumerate(schema)
        ]
        results = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
        values = capture.node(_capture.entry_name(self.overload), arguments, [(t.dtype, t.shape) for t in results])
        for value, t in zip(values, results, strict=True):
            capture.output(value, t.dtype, t.shape, t.contiguous().stride())
        capture.finish(str(self.overload))
        _attempt(lambda: capture([t.detach().to("tpu") for t in inputs]))


def calls(wanted: set[str], dtype: torch.dtype) -> Iterator[Call]:
    """One call or more, with tensors of the dtype, of each of these entries that has one."""
    make = Make(dtype)
    torch.manual_seed(0)
    for name in sorted(wanted):
        overload = _overload(name)
        if overload is None:
            continue
        if name in EXPLICIT:
            made = EXPLICIT[name](make)
            positional, keywords = made if isinstance(made[-1], dict) else (made, {})
            yield Call(overload, positional, keywords)
        elif (plain := arguments_for(overload._schema, make)) is not None:
            yield Call(overload, *plain)


def _overload(name: str) -> torch._ops.OpOverload | None:
    base, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, base, None)
    return getattr(packet, overload or "default", None) if packet is not None else None
