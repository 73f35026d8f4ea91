"""FX graphs of ATen operators as programs of the core."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from torch_tpu import _C


class Unsupported(RuntimeError):
    """The graph has a node that the operator table cannot say. The text names it."""


def entry_name(op: torch._ops.OpOverload) -> str:
    """The operator table's name of an overload, e.g. "add.Tensor" or "gelu"."""
    name = op._schema.name.removeprefix("aten::")
    return name if op._overloadname == "default" else f"{name}.{op._overloadname}"


def has_entry(op: Any) -> bool:
    """True when the operator table lowers this overload."""
    return isinstance(op, torch._ops.OpOverload) and op.namespace == "aten" and _C.has_entry(entry_name(op))


def import_graph(module: fx.GraphModule, name: str) -> Program:
    """Builds a program from a graph whose nodes carry `meta["val"]`. Unsupported names the first node it cannot say.

    Placeholders are the program's inputs, in order; tensors held by the module become inputs after them.
    """
    return _Importer(module, name).run()


class Program:
    """A captured graph that runs on tpu tensors.

    Calling it with the graph's inputs (tensors, and numbers that the graph does not use) gives its outputs, None where
    the graph returns None.
    """

    def __init__(self, capture: Any, inputs: list[int], constants: list[torch.Tensor], outputs: list[Any]) -> None:
        self.capture = capture
        self._inputs, self._constants, self._outputs = inputs, constants, outputs

    def __call__(self, *args: Any) -> list[Any]:
        results = self.capture([args[i] for i in self._inputs] + self._constants)
        # An output is the position of a result, an input that is returned as it is, or None.
        return [results[o] if isinstance(o, int) else args[o[0]] if isinstance(o, tuple) else o for o in self._outputs]


class _Importer:
    def __init__(self, module: fx.GraphModule, name: str) -> None:
        self.module, self.name = module, name
        self.capture = _C.Capture()
        self.values: dict[fx.Node, Any] = {}
        self.inputs: list[int] = []
        self.constants: list[torch.Tensor] = []

    def run(self) -> Program:
        nodes = list(self.module.graph.nodes)
        placeholders = [n for n in nodes if n.op == "placeholder"]
        for i, node in enumerate(placeholders):
            if isinstance(node.meta.get("val"), torch.Tensor):
                self.values[node] = _C.Value(self.capture.input())
                self.inputs.append(i)
        for node in nodes:  # inputs come before nodes
            if node.op == "get_attr":
                self.constant(node)
        for node in nodes:
            if node.op == "call_function":
                self.call(node)
            elif node.op == "call_method" or node.op == "call_module":
                raise Unsupported(f"{node.op} {node.target}")
        outputs = self.outputs(nodes[-1], placeholders)
        self.capture.finish(self.name)
        return Program(self.capture, self.inputs, self.constants, outputs)

    def constant(self, node: fx.Node) -> None:
        value: Any = self.module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            raise Unsupported(f"a {type(value).__name__} held by the graph ({node.target})")
        self.values[node] = _C.Value(self.capture.input())
        self.constants.append(value.detach().to("tpu"))

    def call(self, node: fx.Node) -> None:
        if node.target is operator.getitem:
            self.values[node] = self.values[node.args[0]][node.args[1]]
            return
        if not has_entry(node.target):
            raise Unsupported(f"operator {node.target}")
        schema = node.target._schema
        arguments = []
        for i, argument in enumerate(schema.arguments):
            value = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name, argument.default_value)
            arguments.append(self.argument(value))
        results = node.meta["val"]
        many = isinstance(results, (list, tuple))
        types = [self.type_of(r) for r in (results if many else [results])]
        made = [_C.Value(v) for v in self.capture.node(entry_name(node.target), arguments, types)]
        self.values[node] = made if many else made[0]

    def argument(self, value: Any) -> Any:
        if isinstance(value, fx.Node):
            if value not in self.values:
                raise Unsupported(f"{value}, which is no tensor, as an argument")
            return self.values[value]
        if isinstance(value, (list, tuple)):
            return [self.argument(v) for v in value]
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise Unsupported("a symbolic size")
        return value

    @staticmethod
    def type_of(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, torch.Tensor):
            raise Unsupported(f"a result of type {type(value).__name__}")
        return value.dtype, [int(s) for s in value.shape]

    def outputs(self, node: fx.Node, placeholders: Sequence[fx.Node]) -> list[Any]:
        returned = node.args[0]
        out: list[Any] = []
        count = 0
        for value in returned if isinstance(returned, (list, tuple)) else [returned]:
            if not isinstance(value, fx.Node):
                out.append(value)
            elif value.op == "placeholder":
                out.append((placeholders.index(value),))
            else:
                val = value.meta["val"]
                number = self.values[value].number
                self.capture.output(number, val.dtype, [int(s) for s in val.shape], [int(s) for s in val.stride()])
                out.append(count)
                count += 1
        return out
