"""Modules of PyTorch's data base: results, gradients and buffers, in training and evaluation, against the CPU's."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing._internal.common_modules import ModuleInfo, ModuleInput, module_db
from torch.testing._internal.opinfo.core import SampleInput
from torch.utils._pytree import tree_leaves, tree_map

from sweep.checks import Outcome, gradients, rounded, same_error
from sweep.comparison import close, same_strides
from sweep.samples import WIDER, changed, channels_last, quiet, to_device, widened

MODULES: dict[str, ModuleInfo] = {info.formatted_name: info for info in module_db}

# Beside the modules named Dropout.
RANDOM = {"nn_RReLU", "nn_FractionalMaxPool2d", "nn_FractionalMaxPool3d"}


def cases() -> list[Any]:
    """The parameters (name, dtype) of the tests."""
    return [
        pytest.param(name, dtype, id=f"{name}-{str(dtype).removeprefix('torch.')}")
        for name, info in MODULES.items()
        for dtype in (torch.float32,)
        if dtype in info.dtypes
    ]


def run(info: ModuleInfo, dtype: torch.dtype) -> Outcome:
    """Every check of the module for this dtype."""
    outcome = Outcome()
    full = dtype == torch.float32
    with outcome.counting():
        for training in (True, False):
            torch.manual_seed(0)
            inputs = quiet(
                info.module_inputs_func, info, device="cpu", dtype=dtype, requires_grad=True, training=training
            )
            for i, module_input in enumerate(itertools.islice(inputs, 8 if full else 2)):
                one_module(outcome, info, module_input, dtype, training, first=full and i == 0)
        if full and info.module_error_inputs_func is not None:
            errors(outcome, info, dtype)
    return outcome


def one_module(
    outcome: Outcome, info: ModuleInfo, module_input: ModuleInput, dtype: torch.dtype, training: bool, first: bool
) -> None:
    arguments = module_input.constructor_input
    module = quiet(info.module_cls, *arguments.args, **arguments.kwargs).to(dtype).train(training)
    sample = SampleInput(None, args=tuple(module_input.forward_input.args), kwargs=module_input.forward_input.kwargs)
    if info.is_lazy:
        quiet(module, *sample.args, **sample.kwargs)
    images = changed(sample, channels_last) if first else sample
    one_call(outcome, info, module, sample, dtype, "forward")
    if images is not sample:
        rank = max((t.dim() for t in tree_leaves(sample.args) if isinstance(t, torch.Tensor)), default=0)
        form = {4: torch.channels_last, 5: torch.channels_last_3d}.get(rank, torch.preserve_format)
        one_call(outcome, info, copy.deepcopy(module).to(memory_format=form), images, dtype, "layout")


def one_call(
    outcome: Outcome, info: ModuleInfo, module: nn.Module, sample: SampleInput, dtype: torch.dtype, check: str
) -> None:
    on_device, there = changed(sample, to_device), copy.deepcopy(module).to("tpu")
    wide = copy.deepcopy(module).to(WIDER[dtype])
    expected = result_of(module, sample)
    with outcome.attempt(check):
        found = result_of(there, on_device)
        if isinstance(expected, Exception) or isinstance(found, Exception):
            same_error(sample, expected, found)
            return
        with outcome.attempt("strides"):
            same_strides(sample, expected, found)
        wanted, got = values(info, module, sample, expected), values(info, there, on_device, found)
        try:
            close(info, sample, wanted, got, "result", factor=5)
        except AssertionError:
            exact_sample = widened(sample, dtype)
            exact = result_of(wide, exact_sample)
            if isinstance(exact, Exception):
                raise
            exact = values(info, wide, exact_sample, exact, dtype)
            close(info, sample, rounded(exact, wanted), got, "result", factor=5)


def errors(outcome: Outcome, info: ModuleInfo, dtype: torch.dtype) -> None:
    """Modules, and calls of modules, that CPU torch refuses."""
    torch.manual_seed(0)
    for given in info.module_error_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=True):
        arguments, call = given.module_error_input.constructor_input, given.module_error_input.forward_input

        def attempt(device: str, arguments: Any = arguments, call: Any = call) -> Any:
            def move(value: Any) -> Any:
                return to_device(value) if device == "tpu" else value

            try:
                module = quiet(info.module_cls, *arguments.args, **{**arguments.kwargs, "device": device})
                if call is not None:
                    quiet(module, *tree_map(move, call.args), **tree_map(move, call.kwargs))
            except Exception as error:
                return error

        with outcome.attempt("errors"):
            expected = attempt("cpu")
            assert isinstance(expected, Exception), "CPU torch takes it"
            same_error(SampleInput(None, args=call.args if call else ()), expected, attempt("tpu"))


def result_of(module: nn.Module, sample: SampleInput) -> Any:
    try:
        return quiet(module, *sample.args, **sample.kwargs)
    except Exception as error:
        return error


def values(
    info: ModuleInfo, module: nn.Module, sample: SampleInput, result: Any, narrow: torch.dtype | None = None
) -> list[Any]:
    """Results, buffers, and gradients of inputs and parameters."""
    parameters = tuple(module.parameters())
    everything = SampleInput(None, args=(*sample.args, *parameters), kwargs=sample.kwargs)
    results = tree_leaves(result)
    return [*results, *module.buffers(), *gradients(everything, results, 1, narrow)]
