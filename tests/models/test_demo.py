"""The demo as a newcomer runs it: a process of its own, twice, the second with the disk cache of the first."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo" / "demo.py"
CHARACTERS = 12

pytestmark = pytest.mark.slow


class Outcome:
    """One finished run of the demo: its exit code, output, the statistics it printed, and the plot's path."""

    def __init__(self, folder: Path, cache: Path, *options: str) -> None:
        command = [sys.executable, str(DEMO), "--check", "--output", str(folder / "plots")]
        command += ["--steps-gpt", "3", "--steps-resnet", "4", "--characters", str(CHARACTERS), *options]
        environment = {**os.environ, "TORCH_TPU_CACHE_DIR": str(cache), "TORCH_TPU_CACHE": "on"}
        # The working directory is a foreign one: the demo must not depend on where it is started.
        result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=540)
        self.code, self.out, self.err = result.returncode, result.stdout, result.stderr
        self.plot = folder / "plots" / "losses.png"

    @property
    def statistics(self) -> dict[str, Any]:
        """The machine-readable last lines."""
        lines = [line for line in self.out.splitlines() if line.startswith("statistics: ")]
        assert len(lines) == 1, self.out + self.err
        numbers: dict[str, Any] = json.loads(lines[0].removeprefix("statistics: "))
        return numbers


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty compile cache that the runs of this module share."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def cold(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The first run."""
    return Outcome(tmp_path_factory.mktemp("cold"), cache)


@pytest.fixture(scope="module")
def warm(cold: Outcome, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A second process that finds the cache of the first."""
    assert cold.code == 0, cold.out + cold.err
    return Outcome(tmp_path_factory.mktemp("warm"), cache)


def test_succeeds_and_agrees_with_cpu_torch(cold: Outcome) -> None:
    assert cold.code == 0, cold.out + cold.err
    assert set(cold.statistics["models"]) == {"GPT", "ResNet"}
    for model in cold.statistics["models"].values():
        assert abs(model["loss"] - model["cpu_loss"]) <= 1e-3 * model["cpu_loss"]
        assert model["early_relative_difference"] <= 1e-3


def test_says_what_it_did(cold: Outcome) -> None:
    for name in ("GPT", "ResNet"):
        assert re.search(rf"^{name}: final loss \d\.\d+ on tpu, \d\.\d+ on CPU torch, difference ", cold.out, re.M)
        assert re.search(rf"{name} on tpu: .*samples/s.*loss=\d", cold.err), cold.err
    assert f"Loss plot: {cold.plot}" in cold.out
    text = re.search(r"^Generated on tpu by the GPT, after the prompt .*:\n(.*)\n\nGPT: ", cold.out, re.M | re.S)
    assert text is not None and len(text[1]) == CHARACTERS, cold.out


def test_saves_a_plot(cold: Outcome) -> None:
    data = cold.plot.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and data[-8:-4] == b"IEND"
    assert len(data) > 10_000


def test_runs_every_operator_on_the_device(cold: Outcome) -> None:
    assert cold.statistics["fallbacks"] == 0, cold.err
    assert cold.statistics["compiles"] > 0


def test_second_process_compiles_nothing(warm: Outcome) -> None:
    assert warm.code == 0, warm.out + warm.err
    assert warm.statistics["compiles"] == 0
    assert warm.statistics["disk_hits"] > 0


def test_same_seed_gives_same_losses_and_text(cold: Outcome, warm: Outcome) -> None:
    for name, model in warm.statistics["models"].items():
        assert model["loss"] == cold.statistics["models"][name]["loss"]
    assert re.search(r"Generated.*?\n\n", warm.out, re.S)[0] == re.search(r"Generated.*?\n\n", cold.out, re.S)[0]  # type: ignore[index]


def test_unknown_device_is_refused(tmp_path: Path, cache: Path) -> None:
    outcome = Outcome(tmp_path, cache, "--device", "abacus")
    assert outcome.code == 1
    assert "demo: cannot use device 'abacus'" in outcome.err
    assert "Traceback" not in outcome.err
