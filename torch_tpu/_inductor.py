"""torch.compile without a backend: graphs with tpu tensors go from Inductor to ours.

Inductor has no code for this device (its own "tpu" belongs to another package). Imported right after
torch._inductor.compile_fx, which torch.compile looks up each time it compiles a graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch._inductor import compile_fx
from torch._inductor.codegen.common import register_backend_for_device
from torch._inductor.codegen.wrapper import PythonWrapperCodegen

from torch_tpu import _compile


def route(original: Callable[..., Any]) -> Callable[..., Any]:
    """`compile_fx` that leaves graphs without tpu tensors to `original`."""

    @functools.wraps(original)
    def compile_graph(model: Any, inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        if any(t.device.type == "tpu" for t in _tensors(model, inputs)):
            return _compile.backend(model, inputs)
        return original(model, inputs, *args, **kwargs)

    return compile_graph


def _tensors(model: Any, inputs: Sequence[Any]) -> Iterator[torch.Tensor]:
    values = list(inputs)
    if isinstance(model, fx.GraphModule):
        values += [node.meta.get("example_value") for node in model.graph.nodes]
        values += [*model.parameters(), *model.buffers()]
    return (v for v in values if isinstance(v, torch.Tensor))


class Scheduling:
    """Takes the place of a code generator, for the ways into Inductor that do not pass `compile_fx`."""

    def __init__(self, scheduler: Any) -> None:
        raise NotImplementedError(
            "Inductor generates no code for the tpu device: use torch.compile(model, backend='tpu')"
        )


def register() -> None:
    """Installs both."""
    compile_fx.compile_fx = route(compile_fx.compile_fx)
    register_backend_for_device("tpu", Scheduling, PythonWrapperCodegen)


register()
