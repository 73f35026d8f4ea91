"""What is measured, as the worker process sees it: each measure prepares once and is then sampled many times.

A measure takes the device's name and returns (sample, check). `sample()` gives one number, in seconds or bytes;
`check` depends on the computed result, so that contenders can be seen to have done the same work.
"""

import gc
import itertools
import os
import runpy
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

Prepared = tuple[Callable[[], float], float]
Measure = Callable[[str], Prepared]

OP_CALLS = 2000
CHAIN_LENGTH = 100
SCALARS = 20_000
TRAIN_STEPS = 5
MINIATURES = Path(__file__).resolve().parent.parent / "tests" / "models" / "miniatures.py"


def synchronize(device: str) -> None:
    """Waits until the device has finished everything enqueued so far; plain CPU torch never lags behind."""
    if device != "cpu":
        torch.accelerator.synchronize()


def seconds_per_call(function: Callable[[], object], calls: int, device: str) -> float:
    """Time of one call in seconds over `calls` calls, with one synchronization at the end."""
    synchronize(device)
    start = time.perf_counter()
    for _ in range(calls):
        function()
    synchronize(device)
    return (time.perf_counter() - start) / calls


def random_tensors(count: int, *shape: int, device: str) -> list[Tensor]:
    """The same `count` uniform float32 tensors for every contender: drawn on the CPU, then moved."""
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(*shape, generator=generator).to(device) for _ in range(count)]


def one_op(build: Callable[[Tensor, Tensor, Tensor], Callable[[], Tensor]]) -> Measure:
    """A measure of the time of one call of the op that `build(x, y, z)` returns, on 8x8 float32 tensors."""

    def prepare(device: str) -> Prepared:
        op = build(*random_tensors(3, 8, 8, device=device))
        check = op().sum().item()
        seconds_per_call(op, 200, device)
        return lambda: seconds_per_call(op, OP_CALLS, device), check

    return prepare


def chain(device: str) -> Prepared:
    """The time of 100 dependent multiplications and additions by a scalar on 1,024 floats."""
    (x,) = random_tensors(1, 1024, device=device)

    def run() -> Tensor:
        value = x
        for _ in range(CHAIN_LENGTH // 2):
            value = value * 1.001
            value = value + 0.001
        return value

    check = run().sum().item()
    seconds_per_call(run, 3, device)
    return lambda: seconds_per_call(run, 10, device), check


def train(name: str) -> Measure:
    """A measure of the time of one eager training step (AdamW, gradient clipping) of a miniature model."""

    def prepare(device: str) -> Prepared:
        step = training_step(name, device)
        losses = [step().item() for _ in range(3)]
        return lambda: seconds_per_call(step, TRAIN_STEPS, device), losses[-1]

    return prepare


def training_step(
    name: str, device: str, shrink: Callable[[Tensor], Tensor] = lambda tensor: tensor
) -> Callable[[], Tensor]:
    """A function of no argument that trains the named miniature, at its benchmark size, by one step.

    Four batches are on the device beforehand, each tensor as `shrink` leaves it.
    """
    # By path, so that the repository's folder does not come before an installed torch_tpu.
    miniatures = runpy.run_path(str(MINIATURES))
    torch.manual_seed(0)
    miniature = miniatures["MINIATURES"][name]("bench")
    model = miniature.model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    batches = itertools.cycle([[shrink(t) for t in miniature.batch(i, device)] for i in range(4)])

    def step() -> Tensor:
        loss = miniature.loss(model, next(batches))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return step


def scalars(device: str) -> Prepared:
    """The growth of resident memory, in bytes, over multiplications by 20,000 scalars never seen before."""
    (x,) = random_tensors(1, 8, 8, device=device)
    seen = 0

    def run(count: int) -> Tensor:
        nonlocal seen
        result = x
        for i in range(seen, seen + count):
            result = x * (1.0 + i * 1e-6)
        seen += count
        synchronize(device)
        return result

    def sample() -> float:
        gc.collect()
        before = resident_bytes()
        run(SCALARS)
        gc.collect()
        return resident_bytes() - before

    check = run(500).sum().item()
    return sample, check


def resident_bytes() -> int:
    """Resident memory of this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


MEASURES: dict[str, Measure] = {
    "add": one_op(lambda x, y, z: lambda: x + y),
    "mul by a scalar": one_op(lambda x, y, z: lambda: x * 1.5),
    "mm": one_op(lambda x, y, z: lambda: x @ y),
    "sum": one_op(lambda x, y, z: lambda: x.sum()),
    "transposed add": one_op(lambda x, y, z: lambda: x.t() + y),
    "in-place addcmul": one_op(lambda x, y, z: lambda: z.addcmul_(x, y, value=1e-4)),
    "chain": chain,
    "gpt": train("gpt"),
    "resnet": train("resnet"),
    "scalars": scalars,
}
