"""What all Python tests share: settings that are not those of whoever runs them, and a cache of their own."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

# Where the tests run may be chosen from outside; every other setting is the default, or a test's own.
CHOSEN_OUTSIDE = {"TORCH_TPU_PLATFORM", "TORCH_TPU_PJRT_PLUGIN"}

# At import, because torch reads some of this when it is loaded.
if "PYTEST_XDIST_WORKER" in os.environ:
    # The reference is CPU torch, and its threads would fight with those of the other workers.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
else:
    for name in [n for n in os.environ if n.startswith("TORCH_TPU_") and n not in CHOSEN_OUTSIDE]:
        del os.environ[name]
    # Workers and programs under test inherit the folder, so that a session compiles each program once.
    os.environ["TORCH_TPU_CACHE_DIR"] = tempfile.mkdtemp(prefix="torch-tpu-tests-")
    atexit.register(shutil.rmtree, os.environ["TORCH_TPU_CACHE_DIR"], ignore_errors=True)
