"""The Dynamo backend "tpu": AOTAutograd's graphs as programs of the core."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from torch_tpu import _capture, _decompose

log = logging.getLogger("torch_tpu.compile")


def backend(graph: fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """What `torch.compile(backend="tpu")` calls with each graph. TypeError for options: there are none."""
    if options:
        raise TypeError(f"backend 'tpu' takes no options, got {sorted(options)}")
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    compiled: Callable[..., Any] = aot_autograd(
        fw_compiler=compile_graph,
        decompositions=_decompose.table(),
        partition_fn=min_cut_rematerialization_partition,
    )(graph, example_inputs)
    return compiled


def compile_graph(graph: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """One program for a graph of fixed sizes, one a combination of sizes for a symbolic one.

    A graph with an operator that the table cannot say runs node by node, in eager mode, and the log says why.
    """
    from torch._functorch.aot_autograd import make_boxed_func

    def symbolic(value: Any) -> bool:
        sizes = value.shape if isinstance(value, torch.Tensor) else [value]
        return any(isinstance(s, (torch.SymInt, torch.SymFloat, torch.SymBool)) for s in sizes)

    if any(symbolic(v) for v in example_inputs):
        return make_boxed_func(_BySize(graph))
    return make_boxed_func(_program(graph))


def _program(graph: fx.GraphModule) -> Callable[..., Any]:
    try:
        return _capture.import_graph(graph, "compiled graph")
    except (_capture.Unsupported, NotImplementedError) as why:
        log.warning("a compiled graph runs node by node: %s", why)
        return graph.forward


class _BySize:
    """A symbolic graph: traced again for each new combination of concrete sizes."""

    def __init__(self, graph: fx.GraphModule) -> None:
        self.graph = graph
        self.programs: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any) -> Any:
        key = tuple((tuple(a.shape), a.stride()) if isinstance(a, torch.Tensor) else a for a in args)
        program = self.programs.get(key)
        if program is None:
            program = self.programs[key] = _program(_specialised(self.graph, args))
        return program(*[a for a in args if isinstance(a, torch.Tensor)])


def _specialised(graph: fx.GraphModule, args: Sequence[Any]) -> fx.GraphModule:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    def call(*tensors: torch.Tensor) -> Any:
        rest = iter(tensors)
        return graph(*[next(rest) if isinstance(a, torch.Tensor) else a for a in args])

    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad():
        fake = [mode.from_tensor(a.detach(), static_shapes=True) for a in args if isinstance(a, torch.Tensor)]
        return make_fx(call, tracing_mode="real")(*fake)


def register() -> None:
    """Adds the backend to Dynamo's registry."""
    from torch._dynamo.backends.registry import register_backend

    register_backend(backend, name="tpu")
