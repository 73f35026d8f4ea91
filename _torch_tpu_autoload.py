"""What `import torch` runs (entry point group `torch.backends`): registers the device "tpu".

A module of its own beside the package, because loading an entry point inside torch_tpu would first run
torch_tpu/__init__.py, where an exception (say, an extension built for another torch) would break `import torch`.
"""

from __future__ import annotations

import sys
import warnings


def autoload() -> None:
    """Registers the backend by importing torch_tpu. Never raises: a failure becomes one warning."""
    try:
        problem = conflict()
        if problem is None:
            import torch_tpu  # noqa: F401
    except Exception as error:
        problem = (
            f"the device 'tpu' is not available, because torch_tpu failed to load: {type(error).__name__}: {error}. "
            "Most often its extension was built for another version of PyTorch: reinstall it with `pip install "
            "--force-reinstall --no-deps torchtpu`. TORCH_DEVICE_BACKEND_AUTOLOAD=0 turns this attempt off."
        )
    if problem is None:
        return
    try:
        warnings.warn(problem, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:  # under -W error a warning raises, and `import torch` must go on
        print(problem, file=sys.stderr)


def conflict() -> str | None:
    """What to tell the user when Google's torch-tpu is installed in this environment too; None otherwise."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("torch-tpu")
    except PackageNotFoundError:
        return None
    return (
        f"TorchTPU is inactive: Google's torch-tpu {found} is installed too, and both provide the package "
        "`torch_tpu`, so the one installed last has overwritten files of the other. Keep one: `pip uninstall -y "
        "torchtpu torch-tpu`, then `pip install torchtpu` (this project) or `pip install torch-tpu` (Google's)."
    )
