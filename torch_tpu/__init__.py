"""TorchTPU: the PyTorch device "tpu".

Importing this package registers the device, which `import torch` does by itself through the entry point
`torch.backends`. Nothing is started before the first use of the device.
"""

from __future__ import annotations

from _torch_tpu_autoload import conflict as _conflict
from torch_tpu import _platform

__version__ = "0.1.0"
__all__ = ["active", "register"]

active: bool = False
"""True once the device "tpu" is registered in this process."""


def register() -> None:
    """Registers the device "tpu", also where a CUDA device would otherwise stay PyTorch's accelerator. Harmless twice.

    RuntimeError when Google's torch-tpu is installed beside this package, or another backend has taken the place.
    """
    global active
    if active:
        return
    if problem := _conflict():
        raise RuntimeError(problem)
    from torch_tpu import _register

    _register.register()
    active = True


# torch.accelerator is this device as soon as it is registered. Where CUDA is usable, there is no TPU and nobody asked
# for one, it stays CUDA; torch_tpu.register() or TORCH_TPU_PLATFORM=cpu overrides that.
if not _platform.yields_to_cuda():
    register()
