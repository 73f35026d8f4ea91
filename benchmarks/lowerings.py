"""Operators whose obvious lowering would be slow, on large tensors: the device against CPU torch in one process.

    python benchmarks/lowerings.py [--only WORD,WORD] [--repeats 7] [--write]

Both run on the same cores and are sampled in turn, A B A B ...; medians are compared. A ratio above LIMIT is marked.
--write puts the table, with what is said of its rows in REASONS, into LOWERINGS.md.
"""

import argparse
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves, tree_map

HERE = Path(__file__).resolve().parent
N = 1 << 20
LIMIT = 3.0
WARM_UPS = 2

# What a row above the limit is due to, by its title.
REASONS: dict[str, str] = {}


@dataclass(frozen=True)
class Case:
    """`run(*inputs())` is timed. `exact` is False where the result is random or the order of equals is free."""

    title: str
    inputs: Callable[[], tuple[Any, ...]]
    run: Callable[..., Any]
    exact: bool = True


def floats(*shape: int) -> Tensor:
    return torch.randn(*shape)


def below(limit: int, *shape: int) -> Tensor:
    return torch.randint(limit, shape)


def backward(function: Callable[..., Tensor]) -> Callable[..., Any]:
    """The gradient of the first input under a gradient of ones; the forward pass is part of the time."""

    def run(x: Tensor, *rest: Any) -> Any:
        x = x.detach().requires_grad_()
        out = function(x, *rest)
        return torch.autograd.grad(out, x, torch.ones_like(out))

    return run


def image() -> tuple[Tensor]:
    return (floats(8, 16, 128, 128),)


def one(*shape: int) -> Callable[[], tuple[Tensor]]:
    return lambda: (floats(*shape),)


def resized(mode: str, **options: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: F.interpolate(x, scale_factor=2, mode=mode, **options)


CASES = [
    Case("sort, 1M f32", one(N), lambda x: x.sort()),
    Case("sort, 1M s64", lambda: (below(1 << 60, N),), lambda x: x.sort(stable=True)),
    Case("sort, 1024x1024, last dim", one(1024, 1024), lambda x: x.sort()),
    Case("sort, 1024x1024, first dim", one(1024, 1024), lambda x: x.sort(0)),
    Case("argsort, 1M f32", one(N), lambda x: x.argsort(), False),
    Case("topk 10 of 1M", one(N), lambda x: x.topk(10)),
    Case("topk 1000 of 1M", one(N), lambda x: x.topk(1000)),
    Case("topk 50 of each of 64x32768", one(64, 32768), lambda x: x.topk(50)),
    Case("kthvalue, 1M", one(N), lambda x: x.kthvalue(N // 3)),
    Case("median, 1M", one(N), lambda x: x.median()),
    Case("median, 1024x1024, last dim", one(1024, 1024), lambda x: x.median(-1)),
    Case("mode, 1024x1024", lambda: (below(100, 1024, 1024),), lambda x: x.mode(-1)[0]),
    Case("quantile, 1M", one(N), lambda x: x.quantile(0.3)),
    Case("searchsorted, 1M in 1M", lambda: (floats(N).sort()[0], floats(N)), torch.searchsorted),
    Case("bucketize, 1M into 100", lambda: (floats(N), floats(100).sort()[0]), torch.bucketize),
    Case("unique, 1M s64 of 1000", lambda: (below(1000, N),), lambda x: x.unique()),
    Case("unique, 1M s64 of 1M, inverse and counts", lambda: (below(N, N),), lambda x: x.unique(True, True, True)),
    Case("bincount, 1M of 1000", lambda: (below(1000, N),), lambda x: x.bincount()),
    Case("histc, 1M, 100 bins", one(N), lambda x: x.histc(100)),
    Case("nonzero, 1M, half of them", one(N), lambda x: (x > 0).nonzero()),
    Case("masked_select, 1M", one(N), lambda x: x.masked_select(x > 0)),
    Case("masked_scatter, 1M", lambda: (floats(N), floats(N)), lambda x, y: x.masked_scatter(x > 0, y)),
    Case("isin, 1M in 1000", lambda: (below(10000, N), below(10000, 1000)), torch.isin),
    Case("cumsum, 1M", one(N), lambda x: x.cumsum(0)),
    Case("cumsum, 1024x1024, last dim", one(1024, 1024), lambda x: x.cumsum(1)),
    Case("cumsum, 1024x1024, first dim", one(1024, 1024), lambda x: x.cumsum(0)),
    Case("cumprod, 1M", one(N), lambda x: x.cumprod(0)),
    Case("cummax, 1M", one(N), lambda x: x.cummax(0)),
    Case("cummax, 1024x1024", one(1024, 1024), lambda x: x.cummax(1)),
    Case("logcumsumexp, 1024x1024", one(1024, 1024), lambda x: x.logcumsumexp(1)),
    Case(
        "gather, 1024x1024, last dim",
        lambda: (floats(1024, 1024), below(1024, 1024, 1024)),
        lambda x, i: x.gather(1, i),
    ),
    Case(
        "gather, 1024x1024, first dim",
        lambda: (floats(1024, 1024), below(1024, 1024, 1024)),
        lambda x, i: x.gather(0, i),
    ),
    Case("take, 1M of 1M", lambda: (floats(N), below(N, N)), lambda x, i: x[i]),
    Case("index_select, 64K rows of 64", lambda: (floats(N // 16, 64), below(N // 16, N // 16)), lambda x, i: x[i]),
    Case(
        "index, two indices, 1M", lambda: (floats(1024, 1024), below(1024, N), below(1024, N)), lambda x, i, j: x[i, j]
    ),
    Case(
        "index_put, 1M into 1M", lambda: (floats(N), torch.randperm(N), floats(N)), lambda x, i, v: x.index_put((i,), v)
    ),
    Case(
        "index_put, 1M summed into 1M",
        lambda: (floats(N), below(N, N), floats(N)),
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
    ),
    Case(
        "index_put, 1M summed into 1000",
        lambda: (floats(1000), below(1000, N), floats(N)),
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
    ),
    Case(
        "index_add, 64K rows of 64",
        lambda: (floats(N // 16, 64), below(N // 16, N // 16), floats(N // 16, 64)),
        lambda x, i, v: x.index_add(0, i, v),
    ),
    Case(
        "index_copy, 64K rows of 64",
        lambda: (floats(N // 16, 64), torch.randperm(N // 16), floats(N // 16, 64)),
        lambda x, i, v: x.index_copy(0, i, v),
    ),
    Case(
        "scatter, 1024x1024",
        lambda: (floats(1024, 1024), floats(1024, 1024).argsort(1), floats(1024, 1024)),
        lambda x, i, v: x.scatter(1, i, v),
    ),
    Case(
        "scatter_add, 1M into 1M", lambda: (floats(N), below(N, N), floats(N)), lambda x, i, v: x.scatter_add(0, i, v)
    ),
    Case(
        "scatter_add, 1M into 1000",
        lambda: (floats(1000), below(1000, N), floats(N)),
        lambda x, i, v: x.scatter_add(0, i, v),
    ),
    Case(
        "scatter_add, 1024x1024, last dim",
        lambda: (floats(1024, 1024), below(1024, 1024, 1024), floats(1024, 1024)),
        lambda x, i, v: x.scatter_add(1, i, v),
    ),
    Case(
        "scatter_reduce amax, 1M",
        lambda: (floats(N), below(N, N), floats(N)),
        lambda x, i, v: x.scatter_reduce(0, i, v, "amax"),
    ),
    Case(
        "segment_reduce sum, 1M in 1024",
        lambda: (floats(N), torch.full((1024,), 1024)),
        lambda x, n: torch.segment_reduce(x, "sum", lengths=n),
    ),
    Case(
        "repeat_interleave, 256K by counts", lambda: (floats(N // 4), torch.full((N // 4,), 4)), torch.repeat_interleave
    ),
    Case(
        "embedding backward, 16K of 50,000x64",
        lambda: (floats(50_000, 64), below(50_000, 16384)),
        backward(lambda w, i: F.embedding(i, w)),
    ),
    Case(
        "embedding_bag, 16K bags of 16 of 64",
        lambda: (floats(50_000, 64), below(50_000, 16384, 16)),
        lambda w, i: F.embedding_bag(i, w, mode="sum"),
    ),
    Case(
        "embedding_bag backward, 4K bags of 16",
        lambda: (floats(50_000, 64), below(50_000, 4096, 16)),
        backward(lambda w, i: F.embedding_bag(i, w, mode="mean")),
    ),
    Case("interpolate nearest x2", image, resized("nearest")),
    Case("interpolate bilinear x2", image, resized("bilinear")),
    Case("interpolate bilinear x2, backward", image, backward(resized("bilinear"))),
    Case("interpolate bicubic x2", image, resized("bicubic")),
    Case("interpolate bicubic x2, backward", image, backward(resized("bicubic"))),
    Case(
        "interpolate bilinear to a third, antialias",
        image,
        lambda x: F.interpolate(x, scale_factor=1 / 3, mode="bilinear", antialias=True),
    ),
    Case(
        "grid_sample bilinear",
        lambda: (*image(), torch.rand(8, 128, 128, 2) * 2 - 1),
        lambda x, g: F.grid_sample(x, g, align_corners=False),
    ),
    Case(
        "grid_sample bilinear, backward",
        lambda: (*image(), torch.rand(8, 128, 128, 2) * 2 - 1),
        backward(lambda x, g: F.grid_sample(x, g, align_corners=False)),
    ),
    Case("unfold 3x3", image, lambda x: F.unfold(x, 3, padding=1)),
    Case("fold 3x3", one(8, 16 * 9, 128 * 128), lambda x: F.fold(x, (128, 128), 3, padding=1)),
    Case("max_pool2d 2x2 with indices", image, lambda x: F.max_pool2d(x, 2, return_indices=True)),
    Case("max_pool2d 3x3, stride 2, backward", image, backward(lambda x: F.max_pool2d(x, 3, 2, 1))),
    Case(
        "max_unpool2d 2x2", lambda: F.max_pool2d(*image(), 2, return_indices=True), lambda x, i: F.max_unpool2d(x, i, 2)
    ),
    Case("avg_pool2d 3x3, stride 2, backward", image, backward(lambda x: F.avg_pool2d(x, 3, 2, 1))),
    Case("adaptive_avg_pool2d to 7x7", image, lambda x: F.adaptive_avg_pool2d(x, 7)),
    Case("adaptive_max_pool2d to 7x7, backward", image, backward(lambda x: F.adaptive_max_pool2d(x, 7))),
    Case("reflection_pad2d", image, lambda x: F.pad(x, (3, 3, 3, 3), mode="reflect")),
    Case("roll, 1024x1024", one(1024, 1024), lambda x: x.roll((100, 37), (0, 1))),
    Case("flip, 1024x1024", one(1024, 1024), lambda x: x.flip(0, 1)),
    Case(
        "multinomial, 64x16384, 1024 draws",
        lambda: (torch.rand(64, 16384),),
        lambda p: p.multinomial(1024, True),
        False,
    ),
    Case(
        "multinomial, 64x16384, 1024 without replacement",
        lambda: (torch.rand(64, 16384),),
        lambda p: p.multinomial(1024),
        False,
    ),
    Case("randperm, 1M", lambda: (torch.empty(0),), lambda x: torch.randperm(N, device=x.device), False),
    Case("randn, 1M", lambda: (torch.empty(0),), lambda x: torch.randn(N, device=x.device), False),
    Case("dropout, 1M", one(N), lambda x: F.dropout(x, 0.1), False),
    Case("sum where positive, 1M", one(N), lambda x: torch.where(x > 0, x, 0).sum()),
    Case("sum of those selected by a mask, 1M", one(N), lambda x: x[x > 0].sum()),
    Case("count_nonzero, 1M", one(N), lambda x: (x > 0).count_nonzero()),
    Case("argmax, 1M", one(N), lambda x: x.argmax()),
    Case("max, 1024x1024, last dim", one(1024, 1024), lambda x: x.max(1)),
    Case("max, 1024x1024, first dim", one(1024, 1024), lambda x: x.max(0)),
    Case("var, 1024x1024, first dim", one(1024, 1024), lambda x: x.var(0)),
    Case("logsumexp, 1024x1024", one(1024, 1024), lambda x: x.logsumexp(1)),
    Case("prod, 1024x1024", one(1024, 1024), lambda x: x.prod(1)),
    Case("cdist, 1024x64", lambda: (floats(1024, 64), floats(1024, 64)), torch.cdist),
    Case("rfft, 1M", one(N), torch.fft.rfft),
    Case("fft2, 1024x1024", one(1024, 1024), torch.fft.fft2),
]


@dataclass
class Row:
    """Seconds of one case by device, and whether the results differ."""

    title: str
    samples: dict[str, list[float]] = field(default_factory=lambda: {"cpu": [], "tpu": []})
    error: str = ""

    def ratio(self) -> float | None:
        """Device over CPU torch."""
        if self.error or not self.samples["tpu"]:
            return None
        return median(self.samples["tpu"]) / median(self.samples["cpu"])


def wait(device: str) -> None:
    if device != "cpu":
        torch.accelerator.synchronize()


def seconds(case: Case, inputs: tuple[Any, ...], device: str, calls: int) -> float:
    """Time of one call over `calls` calls, with one wait at the end."""
    wait(device)
    start = time.perf_counter()
    for _ in range(calls):
        result = case.run(*inputs)
    wait(device)
    del result
    return (time.perf_counter() - start) / calls


def moved(value: Any, device: str) -> Any:
    return tree_map(lambda v: v.to(device) if isinstance(v, Tensor) else v, value)


def difference(case: Case, inputs: tuple[Any, ...], on_device: tuple[Any, ...]) -> str:
    """What is wrong with the device's result; values only where it has several tensors (positions may differ)."""
    wanted, found = (tree_leaves(case.run(*i)) for i in (inputs, on_device))
    if not case.exact:
        return ""
    try:
        torch.testing.assert_close(found[0].cpu(), wanted[0], rtol=1e-3, atol=1e-3)
    except AssertionError as error:
        return str(error).splitlines()[0]
    return ""


def measure(cases: list[Case], repeats: int) -> Iterator[Row]:
    """The rows, one by one. A sample takes about 20 ms of calls."""
    for case in cases:
        row = Row(case.title)
        torch.manual_seed(0)
        inputs = {"cpu": case.inputs()}
        inputs["tpu"] = moved(inputs["cpu"], "tpu")
        calls = {}
        try:
            row.error = difference(case, inputs["cpu"], inputs["tpu"])
            for device in row.samples:
                once = min(seconds(case, inputs[device], device, 1) for _ in range(WARM_UPS))
                calls[device] = max(1, int(0.02 / once))
            for _ in range(repeats):
                for device, samples in row.samples.items():
                    samples.append(seconds(case, inputs[device], device, calls[device]))
        except RuntimeError as error:
            row.error = f"{type(error).__name__}: {error}".splitlines()[0]
        yield row


def line(row: Row) -> str:
    """One line of the table."""
    if row.error:
        return f"| {row.title} | | | | {row.error} |"
    ratio = row.ratio()
    assert ratio is not None
    ours, cpu = (median(row.samples[d]) * 1e3 for d in ("tpu", "cpu"))
    remark = REASONS.get(row.title, "above the limit") if ratio > LIMIT else ""
    return f"| {row.title} | {ours:.3g} | {cpu:.3g} | {ratio:.2f} | {remark} |"


HEAD = "| operator | device, ms | CPU torch, ms | device / CPU | |\n| --- | --- | --- | --- | --- |"


def main() -> None:
    """Measures and prints; see the module's text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="words, with commas between: rows whose title holds one of them")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="write LOWERINGS.md")
    options = parser.parse_args()
    words = options.only.split(",")
    cases = [c for c in CASES if any(w in c.title for w in words)]
    print(HEAD, flush=True)
    rows = []
    for row in measure(cases, options.repeats):
        print(line(row), flush=True)
        rows.append(row)
    ratios = [r for row in rows if (r := row.ratio()) is not None]
    summary = (
        f"{len(rows)} operators, median ratio {median(ratios):.2f}, {sum(r > LIMIT for r in ratios)} above {LIMIT:g}."
    )
    print(summary)
    if options.write:
        machine = f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}"
        table = "\n".join([HEAD, *map(line, rows)])
        (HERE / "LOWERINGS.md").write_text(
            f"# Large operators\n\nWritten by `python benchmarks/lowerings.py --write` on {machine}; medians of "
            f"{options.repeats} interleaved repeats.\n\n{table}\n\n{summary}\n"
        )


if __name__ == "__main__":
    main()
