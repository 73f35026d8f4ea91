"""What makes "tpu" a device of PyTorch. The order matters: name, kernels, module, methods."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

import torch
from torch.utils import backend_registration


def register() -> None:
    """Registers everything, once a process."""
    name = torch._C._get_privateuse1_backend_name()
    if name not in ("privateuseone", "tpu"):
        raise RuntimeError(
            f"the device 'tpu' cannot be registered: another extension has registered {name!r}, and PyTorch has room "
            "for one. Uninstall one of the two, or set TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import the one you want."
        )
    backend_registration.rename_privateuse1_backend("tpu")

    from torch_tpu import _autocast, _client, _decompose, _exit, _memory_access, _printing, tpu

    _client.install()
    torch._register_device_module("tpu", tpu)
    backend_registration.generate_methods_for_privateuse1_backend(for_storage=True)
    _printing.install()
    _decompose.install()
    _memory_access.install()
    _autocast.install()
    _exit.install()
    when_imported("torch._dynamo.device_interface", "torch_tpu._dynamo_interface")
    when_imported("torch._dynamo.backends.registry", "torch_tpu._dynamo_backend")
    when_imported("torch._inductor.compile_fx", "torch_tpu._inductor")


def when_imported(trigger: str, then: str) -> None:
    """Imports `then` as soon as `trigger` has been imported, which may be now or never."""
    if trigger in sys.modules:
        importlib.import_module(then)
    else:
        sys.meta_path.insert(0, _ImportHook(trigger, then))


class _ImportHook(importlib.abc.MetaPathFinder):
    """Lets Dynamo stay unimported (it costs a second) until a program needs it."""

    def __init__(self, trigger: str, then: str) -> None:
        self.trigger, self.then = trigger, then

    def find_spec(
        self, name: str, path: Any = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.trigger:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _ThenLoader(spec.loader, self.then)
        return spec


class _ThenLoader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader, then: str) -> None:
        self.loader, self.then = loader, then

    def __getattr__(self, name: str) -> Any:  # get_source and the like, which tracebacks use
        return getattr(self.loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        importlib.import_module(self.then)
