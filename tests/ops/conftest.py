"""What the operator tests share: a known seed, and a count of compiles and host fallbacks for the end of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import torch_tpu  # noqa: F401  (registers the device where the entry point is not installed)

MEASURED, FOUND = "measured", "found"
SLOWEST = 10
# Seconds that no program of samples as small as these may take to compile.
COMPILE_LIMIT = 5.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--print-exceptions",
        action="store_true",
        help="print the lines of docs/operator-exceptions.md that fit what the sweep finds, instead of judging it",
    )


@pytest.fixture(autouse=True)
def _known_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`judge(entry, dtype, outcome)` compares what the sweep found with the page of exceptions."""
    from sweep import exceptions

    def record(*found: Any) -> None:
        request.node.user_properties.append((FOUND, exceptions.record(*found)))

    return record if request.config.getoption("--print-exceptions", False) else exceptions.judge


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Iterator[None]:
    """Adds a test's compiles and host fallbacks to the summary; a compile above COMPILE_LIMIT fails it."""
    before = torch.tpu.cache_stats()
    yield
    after = torch.tpu.cache_stats()
    slow = [c for c in after["slowest_compiles"] if c not in before["slowest_compiles"]]
    facts = {
        "compiles": after["compiles"] - before["compiles"],
        "seconds": after["compile_seconds"] - before["compile_seconds"],
        "from disk": after["disk_hits"] - before["disk_hits"],
        "slowest": slow,
        "fallbacks": dict(Counter(after["fallback_ops"]) - Counter(before["fallback_ops"])),
    }
    request.node.user_properties.append((MEASURED, facts))
    assert not slow or slow[0][0] < COMPILE_LIMIT, f"a compile took {slow[0][0]:.1f} s: {slow[0][1]}"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    totals: Counter[str] = Counter()
    fallbacks: Counter[str] = Counter()
    slowest: list[tuple[float, str]] = []
    found: list[Any] = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if getattr(report, "when", None) != "teardown":
                    continue
                if name == FOUND:
                    found.append(value)
                if name == MEASURED:
                    totals.update({k: value[k] for k in ("compiles", "seconds", "from disk")})
                    fallbacks.update(value["fallbacks"])
                    # A report that crossed to another process comes back as plain lists.
                    slowest = sorted([*slowest, *map(tuple, value["slowest"])], reverse=True)[:SLOWEST]
    if totals:
        terminalreporter.section("programs of the sweep")
        terminalreporter.write_line(
            f"{totals['compiles']} compiles took {totals['seconds']:.0f} s, {totals['from disk']} came from disk"
        )
        for seconds, what in slowest:
            terminalreporter.write_line(f"{seconds:6.2f} s  {what}")
        each = ", ".join(f"{name.removeprefix('aten::')} {n}" for name, n in fallbacks.most_common())
        terminalreporter.write_line(f"host fallbacks, {len(fallbacks)} operators: {each}")
    if found:
        from sweep import exceptions

        terminalreporter.section(exceptions.PAGE.name)
        for line in exceptions.page_lines(found):
            terminalreporter.write_line(line)
