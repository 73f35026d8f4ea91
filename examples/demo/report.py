"""What the demo says about its runs: the comparison with CPU torch, the plot, the compile statistics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import torch

matplotlib.use("Agg")
from matplotlib import pyplot

from examples.demo.training import Run

CHECKED_STEPS = 20
TOLERANCE = 1e-3


def early_difference(losses: Sequence[float], reference: Sequence[float]) -> float:
    """The largest relative difference of two loss curves over their first 20 steps.

    Later steps are no measure of correctness: training amplifies rounding, so that two correct devices
    drift apart. A loss that is not finite counts as an infinite difference.
    """
    pairs = list(zip(losses[:CHECKED_STEPS], reference[:CHECKED_STEPS], strict=True))
    differences = [abs(loss - other) / max(abs(other), 1e-12) for loss, other in pairs]
    return max(difference if difference < float("inf") else float("inf") for difference in differences)


def comparison(name: str, device: torch.device, run: Run, reference: Run) -> dict[str, float]:
    """Prints one model's final losses on `device` and on CPU torch, and returns the numbers."""
    numbers = {
        "loss": run.losses[-1],
        "cpu_loss": reference.losses[-1],
        "difference": run.losses[-1] - reference.losses[-1],
        "early_relative_difference": early_difference(run.losses, reference.losses),
        "samples_per_second": run.samples_per_second,
        "cpu_samples_per_second": reference.samples_per_second,
    }
    steps = min(CHECKED_STEPS, len(run.losses))
    print(
        f"{name}: final loss {numbers['loss']:.6f} on {device}, {numbers['cpu_loss']:.6f} on CPU torch, "
        f"difference {numbers['difference']:+.2e}\n"
        f"  largest relative difference over the first {steps} steps: {numbers['early_relative_difference']:.2e}\n"
        f"  {numbers['samples_per_second']:.0f} samples/s on {device}, compilation included; "
        f"{numbers['cpu_samples_per_second']:.0f} on CPU torch"
    )
    return numbers


def plot(runs: dict[str, tuple[Run, Run]], device: torch.device, path: Path) -> None:
    """Saves a PNG with one panel a model, each with the loss on `device` and on CPU torch."""
    figure, panels = pyplot.subplots(1, len(runs), figsize=(6 * len(runs), 4), squeeze=False)
    for panel, (name, (run, reference)) in zip(panels[0], runs.items(), strict=True):
        panel.plot(run.losses, linewidth=2.5, alpha=0.6, label=f'device="{device}"')
        panel.plot(reference.losses, "k--", linewidth=0.8, label="CPU torch")
        panel.set(title=name, xlabel="step", ylabel="cross-entropy loss")
        panel.legend()
        panel.grid(alpha=0.3)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def compile_statistics(device: torch.device) -> dict[str, Any]:
    """The compile counters of the tpu backend since the process began; null on devices that count nothing."""
    counters = torch.tpu.cache_stats() if device.type == "tpu" else {}
    return {key: counters.get(key) for key in ("compiles", "memory_hits", "disk_hits", "fallbacks")}
