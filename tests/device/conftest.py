"""Fixtures of the device's tests."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest
import torch

import torch_tpu  # noqa: F401  (registers the device where the entry point is not installed)


@pytest.fixture
def run() -> Callable[..., str]:
    """Runs a program in a fresh interpreter that has imported torch and torch_tpu; returns what it printed."""

    def start(program: str, timeout: float = 120, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", "import torch, torch_tpu\n" + textwrap.dedent(program)],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return start


@pytest.fixture(autouse=True)
def _same_state_after() -> None:
    """Every test starts from the first device and a known seed."""
    torch.tpu.set_device(0)
    torch.manual_seed(0)
