"""Processes that share a compilation cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PRELUDE = """
import json, sys, torch, torch_tpu

def report(**facts):
    print("report: " + json.dumps(torch.tpu.cache_stats() | facts))
"""

# A few programs, and the number they lead to.
WORK = """
x = torch.arange(6.0).to("tpu").view(2, 3)
y = (x @ x.t() + 1).relu().sum()
report(answer=y.item())
"""
ANSWER = 87.0


class Process:
    """A Python process with the device and a cache folder; `report` holds what it reported."""

    def __init__(self, program: str, folder: Path | str, **environment: str) -> None:
        env = os.environ | {"TORCH_TPU_CACHE_DIR": str(folder), "TORCH_TPU_CACHE": "on"} | environment
        self.popen = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + textwrap.dedent(program)],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self) -> Process:
        self.out, self.err = self.popen.communicate(timeout=300)
        assert self.popen.returncode == 0, self.err
        return self

    @property
    def report(self) -> dict[str, Any]:
        lines = [line for line in self.out.splitlines() if line.startswith("report: ")]
        facts: dict[str, Any] = json.loads(lines[-1].removeprefix("report: "))
        return facts

    @property
    def complaints(self) -> list[str]:
        return [line for line in self.err.splitlines() if "compilation cache" in line]


@pytest.fixture
def start() -> Any:
    """Starts a process; the ones a failed test leaves behind are killed."""
    started: list[Process] = []

    def begin(program: str, folder: Path | str, **environment: str) -> Process:
        started.append(Process(program, folder, **environment))
        return started[-1]

    yield begin
    for process in started:
        if process.popen.poll() is None:
            process.popen.kill()
            process.popen.communicate()


@pytest.fixture
def run(start: Callable[..., Process]) -> Callable[..., Process]:
    """Runs a process to its end, which must be a good one."""
    return lambda program, folder, **environment: start(program, folder, **environment).finish()


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs of WORK; copy it before changing it."""
    folder = tmp_path_factory.mktemp("warm") / "cache"
    assert Process(WORK, folder).finish().report["answer"] == ANSWER
    return folder
