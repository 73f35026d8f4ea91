"""Trains a small GPT on prose and a small ResNet on images, on device "tpu" and on CPU torch, and compares.

Run it from anywhere: `python examples/demo/demo.py --help`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from pathlib import Path

# Threads of CPU torch that wait for each other would otherwise burn the time of whoever shares the machine.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.demo.report import TOLERANCE, comparison, compile_statistics, plot
from examples.demo.training import Language, Vision


def positive(text: str) -> int:
    """An argument that counts something: an integer above zero."""
    if (value := int(text)) < 1:
        raise ValueError
    return value


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="tpu", help="the device to train on (default: tpu)")
    parser.add_argument("--steps-gpt", type=positive, default=400, help="training steps of the GPT (default: 400)")
    parser.add_argument("--steps-resnet", type=positive, default=150, help="those of the ResNet (default: 150)")
    parser.add_argument("--characters", type=positive, default=400, help="characters to generate (default: 400)")
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder of the loss plot")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights, data order and sampling")
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"fail when the early losses differ from CPU torch's by > {TOLERANCE}",
    )
    return parser.parse_args()


def ready(name: str) -> torch.device:
    """The device called `name`, after a first use of it; exits with its own message when that fails."""
    try:
        # Installed, the package registers itself with `import torch`; in a bare checkout, or with
        # TORCH_DEVICE_BACKEND_AUTOLOAD=0, somebody has to import it.
        if name.split(":")[0] == "tpu" and not hasattr(torch, "tpu"):
            importlib.import_module("torch_tpu")
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, NotImplementedError, ImportError, AssertionError) as error:
        sys.exit(f"demo: cannot use device {name!r}: {error}")
    return device


def main() -> int:
    """Runs the demo; returns the exit code."""
    options = arguments()
    start = time.perf_counter()
    device, cpu = ready(options.device), torch.device("cpu")
    try:
        language, vision = Language(), Vision()
    except RuntimeError as error:
        sys.exit(f"demo: {error}")

    gpt = language.run(device, options.steps_gpt, options.seed)
    resnet = vision.run(device, options.steps_resnet, options.seed)
    torch.manual_seed(options.seed)
    prompt, text = language.generate(gpt.model, device, options.characters)
    accuracy = vision.accuracy(resnet.model, device)
    runs = {
        "GPT": (gpt, language.run(cpu, options.steps_gpt, options.seed)),
        "ResNet": (resnet, vision.run(cpu, options.steps_resnet, options.seed)),
    }

    print(f"\nGenerated on {device} by the GPT, after the prompt {prompt!r}:\n{text}\n")
    numbers = {name: comparison(name, device, *pair) for name, pair in runs.items()}
    print(
        f"  accuracy on held-out images: {accuracy:.1%} on {device}, "
        f"{vision.accuracy(runs['ResNet'][1].model, cpu):.1%} on CPU torch"
    )
    picture = options.output / "losses.png"
    plot(runs, device, picture)
    print(f"\nLoss plot: {picture}")

    counters = compile_statistics(device)
    if device.type == "tpu":
        print(
            f"Programs: {counters['compiles']} compiled, {counters['disk_hits']} read from the disk cache, "
            f"{counters['memory_hits']} found in memory; {counters['fallbacks']} operators ran on the host"
        )
    seconds = time.perf_counter() - start
    print(f"Whole run: {seconds:.0f} s")
    print("statistics: " + json.dumps({**counters, "seconds": round(seconds, 2), "models": numbers}))

    worst = max(model["early_relative_difference"] for model in numbers.values())
    if options.check and not worst <= TOLERANCE:
        print(f"demo: losses differ from CPU torch's by {worst:.2e}, more than {TOLERANCE}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
