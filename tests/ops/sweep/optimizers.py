"""Every optimizer of PyTorch, with its option sets and implementations: a few steps on the device and on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.optim import Optimizer
from torch.testing._internal.common_optimizers import OptimizerInfo, optim_db
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils._pytree import tree_map

from sweep.checks import Outcome, same_error
from sweep.comparison import close
from sweep.samples import quiet, to_device

OPTIMIZERS: dict[str, OptimizerInfo] = {f"optim_{info.name}": info for info in optim_db}
STEPS = 3


def cases() -> list[Any]:
    """The parameters (name, dtype) of the tests."""
    return [
        pytest.param(name, dtype, id=f"{name}-{str(dtype).removeprefix('torch.')}")
        for name, info in OPTIMIZERS.items()
        for dtype in (torch.float32,)
    ]


def run(info: OptimizerInfo, dtype: torch.dtype) -> Outcome:
    outcome = Outcome()
    with outcome.counting():
        for options in option_sets(info, dtype):
            with outcome.attempt("forward"):
                try:
                    one_optimizer(info, options, dtype)
                except Exception as error:
                    raise AssertionError(f"{type(error).__name__}: {error}; options {options}") from error
        if dtype == torch.float32 and not info.only_supports_sparse_grads:
            errors(outcome, info, dtype)
    return outcome


def errors(outcome: Outcome, info: OptimizerInfo, dtype: torch.dtype) -> None:
    """Optimizers that CPU torch refuses to make, and steps that it refuses."""
    for given in info.optim_error_inputs_func("cpu", dtype):

        def attempt(device: str, given: Any = given.optimizer_error_input) -> Any:
            moved: dict[int, Any] = {}

            def move(value: Any) -> Any:
                if device == "cpu" or not isinstance(value, torch.Tensor):
                    return value
                if id(value) not in moved:  # a parameter that is given twice is one there too
                    there = to_device(value)
                    moved[id(value)] = torch.nn.Parameter(there) if isinstance(value, torch.nn.Parameter) else there
                return moved[id(value)]

            parameters = given.params
            if parameters is None:
                parameters = [torch.nn.Parameter(torch.ones(2, 2, dtype=dtype))]
            parameters = tree_map(move, parameters)
            try:
                optimizer = info.optim_cls(parameters, **tree_map(move, given.kwargs))
                for p in optimizer.param_groups[0]["params"]:
                    p.grad = torch.zeros_like(p)
                quiet(optimizer.step, lambda: torch.zeros((), device=device))
            except Exception as error:
                return error

        expected = quiet(attempt, "cpu")
        if isinstance(expected, Exception):
            with outcome.attempt("errors"):
                same_error(SampleInput(None, kwargs=given.optimizer_error_input.kwargs), expected, attempt("tpu"))


def option_sets(info: OptimizerInfo, dtype: torch.dtype) -> Iterator[dict[str, Any]]:
    """PyTorch's option sets, those for accelerators among them, for each implementation."""
    implementations: list[dict[str, bool]] = [{}]
    if "foreach" in info.supported_impls:
        implementations = [{"foreach": False}, {"foreach": True}]
    if "fused" in info.supported_impls and "cpu" in info.supports_fused_on:
        implementations.append({"fused": True})
    for given in info.optim_inputs_func("cuda", dtype):
        for implementation in implementations:
            options = {**given.kwargs, **implementation}
            if not (options.get("fused") and options.get("capturable")):
                yield options


def one_optimizer(info: OptimizerInfo, options: dict[str, Any], dtype: torch.dtype) -> None:
    on_host = {k: v for k, v in options.items() if k != "capturable"}
    if options.get("foreach") and isinstance(options.get("lr"), torch.Tensor):
        on_host["foreach"] = False  # CPU torch wants capturable=True for this, and does not take it
    wanted, got = after_steps(info, on_host, dtype, "cpu"), after_steps(info, options, dtype, "tpu")
    sample = SampleInput(None, kwargs=options)
    entry = type("Entry", (), {"formatted_name": f"optim_{info.name}", "decorators": info.decorators})
    close(entry, sample, wanted, got, "parameter or state", factor=5)


def after_steps(info: OptimizerInfo, options: dict[str, Any], dtype: torch.dtype, device: str) -> list[torch.Tensor]:
    """Parameters and the optimizer's state."""
    shapes = [(3, 2), (2, 2)] if info.name == "Muon" else [(3, 2), (2,), ()]
    parameters = [started(shape, dtype, i).to(device).requires_grad_() for i, shape in enumerate(shapes)]
    options = tree_map(to_device if device == "tpu" else lambda v: v, options)
    optimizer = info.optim_cls(parameters, **options)

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        total = sum(((p - 0.25) * (p - 0.25).conj()).abs().sum() for p in parameters)
        total.backward()
        if info.only_supports_sparse_grads:
            for p in parameters:
                p.grad = p.grad.to_sparse()
        return total

    for _ in range(STEPS):
        if info.step_requires_closure:
            quiet(optimizer.step, loss)
        else:
            loss()
            quiet(optimizer.step)
    return [p.detach() for p in parameters] + states(optimizer, parameters)


def started(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def states(optimizer: Optimizer, parameters: list[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors in the state that have a parameter's shape: step counts live on either device."""
    return [
        value
        for p in parameters
        for value in optimizer.state[p].values()
        if isinstance(value, torch.Tensor) and value.shape == p.shape and value.dim() > 0
    ]
