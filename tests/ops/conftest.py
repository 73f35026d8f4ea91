"""What the operator tests share: a known seed, and a count of host fallbacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import torch_tpu  # noqa: F401  (registers the device where the entry point is not installed)

FALLBACKS = "host fallbacks"


@pytest.fixture(autouse=True)
def _known_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def count_fallbacks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Adds the host fallbacks of a test to the summary at the end of the run."""
    before = Counter(torch.tpu.cache_stats()["fallback_ops"])
    yield
    happened = Counter(torch.tpu.cache_stats()["fallback_ops"]) - before
    if happened:
        request.node.user_properties.append((FALLBACKS, dict(happened)))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    total: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                # A report that crossed to another process comes back as plain lists.
                if name == FALLBACKS and report.when == "teardown":
                    total.update(value)
    if total:
        each = ", ".join(f"{name.removeprefix('aten::')} {n}" for name, n in total.most_common())
        terminalreporter.write_line(f"host fallbacks, {len(total)} operators: {each}")
