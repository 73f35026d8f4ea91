"""Shows where the time of an eager training step goes.

    python benchmarks/profile_step.py gpt|resnet [--contender ours|cpu|google] [--top 15]

It prints the operators dispatched in a step, the time until the last call returned and the wait for the device
after it, the same for a batch shrunk to almost nothing (the same operators on the smallest of data: what is left
is nearly all host time), and the operators by their own time on the host. A CPU device may run small programs on
the calling thread; their time is then in the calls, not in the wait. Run it with the interpreter that has the
contender installed.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable
from statistics import median
from typing import Any

import worker

REPEATS = 20
# What is left of a tensor of a batch: two sequences of two tokens, two images of four by four pixels.
SHRINK = {
    "gpt": lambda t: t[:2, :2].contiguous(),
    "resnet": lambda t: t[:2, :, :4, :4].contiguous() if t.dim() == 4 else t[:2].contiguous(),
}


def timed(step: Callable[[], object], device: str) -> tuple[float, float]:
    """Medians, in ms, of the time until a step's last call returned and of the wait for the device."""
    from measures import synchronize

    calls, waits = [], []
    for _ in range(REPEATS):
        synchronize(device)
        start = time.perf_counter()
        step()
        returned = time.perf_counter()
        synchronize(device)
        calls.append(1e3 * (returned - start))
        waits.append(1e3 * (time.perf_counter() - returned))
    return median(calls), median(waits)


def dispatched(step: Callable[[], object]) -> Counter[str]:
    """How often each operator reaches the backend in one step."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
            counts[str(function)] += 1
            return function(*arguments, **(keywords or {}))

    counts: Counter[str] = Counter()
    with Counting():
        step()
    return counts


def own_times(step: Callable[[], object], device: str) -> list[tuple[str, int, float]]:
    """(operator, calls, own ms) of one step, by torch.profiler on the calling threads, longest first."""
    from measures import synchronize
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
        synchronize(device)
    events = profiler.key_averages()
    rows = [(event.key, event.count, event.self_cpu_time_total / 1e3) for event in events]
    return sorted(rows, key=lambda row: -row[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=SHRINK, help="a miniature of tests/models")
    parser.add_argument("--contender", default="ours", choices=["ours", "cpu", "google"])
    parser.add_argument("--top", type=int, default=15, help="operators to list (default: 15)")
    arguments = parser.parse_args()

    device = worker.start(arguments.contender)
    from measures import training_step

    full = training_step(arguments.model, device)
    small = training_step(arguments.model, device, shrink=SHRINK[arguments.model])
    for step in (full, small):
        for _ in range(3):
            step()
    counts = dispatched(full)
    total = sum(counts.values())
    print(f"{arguments.model} on {arguments.contender}: {total} operators a step, {len(counts)} distinct")
    for title, step in (("full batch", full), ("batch of almost nothing", small)):
        calls, wait = timed(step, device)
        each = 1e3 * calls / total
        print(f"  {title}: {calls:.2f} ms in calls ({each:.1f} us an operator), then {wait:.2f} ms of waiting")
    print(f"\n  {'operator':52} {'calls':>6} {'own ms':>8}")
    for name, count, own in own_times(full, device)[: arguments.top]:
        print(f"  {name[:52]:52} {count:6} {own:8.3f}")


if __name__ == "__main__":
    main()
