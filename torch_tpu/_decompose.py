"""Operators without an entry of their own, expressed by PyTorch's decompositions and compiled as one program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torch_tpu import _C, _capture, _linalg


@functools.cache
def table() -> dict[Any, Callable[..., Any]]:
    """Decompositions of operators that the operator table does not lower itself: PyTorch's and ours."""
    from torch._decomp import decomposition_table

    return {
        op: f for op, f in {**decomposition_table, **_linalg.decompositions()}.items() if not _capture.has_entry(op)
    }


def decompose(name: str, overload: str, arguments: list[Any]) -> Any:
    """A finished Capture of `name.overload` for these arguments, or None when it has no decomposition into entries.

    Its inputs are the tensors among the arguments, in order; numbers are constants of the program.
    """
    op = getattr(getattr(torch.ops.aten, name.removeprefix("aten::")), overload or "default")
    if op not in table():
        return None
    try:
        return trace(op, arguments).capture
    except (_capture.Unsupported, NotImplementedError):
        return None


def trace(op: Any, arguments: list[Any]) -> _capture.Program:
    """Traces the operator on tensors that hold no data. Unsupported when an operator is left that has no entry."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    tensors: list[torch.Tensor] = []

    def hollow(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            return len(tensors) - 1, "tensor"
        if isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
            return [hollow(v) for v in value]
        return value

    def filled(value: Any, inputs: tuple[torch.Tensor, ...]) -> Any:
        if isinstance(value, tuple) and len(value) == 2 and value[1] == "tensor":
            return inputs[value[0]]
        return [filled(v, inputs) for v in value] if isinstance(value, list) else value

    template = [hollow(a) for a in arguments]
    schema = op._schema.arguments

    def call(*inputs: torch.Tensor) -> Any:
        positional = [filled(t, inputs) for t, a in zip(template, schema, strict=True) if not a.kwarg_only]
        keywords = {a.name: filled(t, inputs) for t, a in zip(template, schema, strict=True) if a.kwarg_only}
        out = table()[op](*positional, **keywords)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        fake = [mode.from_tensor(t.detach()) for t in tensors]
        graph = make_fx(call, decomposition_table=table(), tracing_mode="real")(*fake)
    graph.graph.eliminate_dead_code()
    return _capture.import_graph(graph, op._schema.name)


def install() -> None:
    """Lets the engine ask for decompositions."""
    _C.set_decomposer(decompose)
