"""What docs/operator-exceptions.md says: which checks fail, and which operators run on the host."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from sweep.checks import Outcome

PAGE = Path(__file__).resolve().parents[3] / "docs" / "operator-exceptions.md"
CHECKS = ("forward", "strides", "gradient", "gradgrad", "in-place", "out", "layout", "errors")
ALL = "all"


class Line:
    """One line of a table: operators (or entries), what of them, dtypes, reason."""

    def __init__(self, cells: list[str]) -> None:
        self.entries, self.what = words(cells[0]), words(cells[1])
        self.dtypes, self.reason = words(cells[2]), cells[3]

    def covers(self, entry: str, dtype: str) -> bool:
        return entry in self.entries and (dtype in self.dtypes or ALL in self.dtypes)


def words(cell: str) -> list[str]:
    return re.findall(r"[\w.:-]+", cell.replace("`", ""))


@functools.cache
def tables() -> tuple[list[Line], list[Line]]:
    """The lines of the page's two tables: checks that fail, operators on the host."""
    found = []
    for part in PAGE.read_text().split("\n## ")[1:3]:
        rows = [line.strip().strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
        found.append([Line([cell.strip() for cell in row]) for row in rows[2:]])
    failing, on_host = found
    return failing, on_host


def expected_failures(entry: str, dtype: str) -> dict[str, str]:
    """Check -> reason."""
    return {check: line.reason for line in tables()[0] if line.covers(entry, dtype) for check in line.what}


def expected_on_host(entry: str, dtype: str) -> set[str]:
    return {op for line in tables()[1] if line.covers(entry, dtype) for op in line.what}


def judge(entry: str, dtype: torch.dtype | str, outcome: Outcome) -> None:
    """AssertionError for a problem or a host operator that the page does not list, and for a stale line."""
    name = str(dtype).removeprefix("torch.")
    known, on_host = expected_failures(entry, name), expected_on_host(entry, name)
    complaints = [
        f"{check}: {text}" for check, texts in outcome.problems.items() if check not in known for text in texts
    ]
    complaints += [
        f"{check} passes: a line in {PAGE.name} is stale ({reason})"
        for check, reason in known.items()
        if check not in outcome.problems
    ]
    found = {op.removeprefix("aten::") for op in outcome.fallbacks}
    complaints += [f"{op} runs on the host, which {PAGE.name} does not list" for op in sorted(found - on_host)]
    complaints += [f"{op} does not run on the host: a line in {PAGE.name} is stale" for op in sorted(on_host - found)]
    assert not complaints, f"{entry}, {name}\n" + "\n\n".join(complaints)


def record(entry: str, dtype: torch.dtype | str, outcome: Outcome) -> dict[str, Any]:
    """What page_lines wants to know of an outcome, as plain values."""
    return {
        "entry": entry,
        "dtype": str(dtype).removeprefix("torch."),
        "problems": {check: texts[0].splitlines()[0] for check, texts in outcome.problems.items()},
        "on host": sorted(op.removeprefix("aten::") for op in outcome.fallbacks),
    }


def page_lines(records: list[dict[str, Any]]) -> list[str]:
    """The lines of both tables for these records. A reason is kept where the page has one; else it is the problem."""
    failing = _lines(records, lambda r: r["problems"].items(), expected_failures)
    on_host = _lines(
        records, lambda r: [(op, "") for op in r["on host"]], lambda e, d: dict.fromkeys(expected_on_host(e, d), "")
    )
    return ["checks that fail:", *failing, "operators on the host:", *on_host]


def _lines(
    records: list[dict[str, Any]], facts: Callable[[Any], Any], known: Callable[[str, str], dict[str, str]]
) -> list[str]:
    """One line for the facts of an entry that hold for the same dtypes and have the same reason."""
    run: dict[str, set[str]] = {}
    dtypes: dict[tuple[str, str, str], set[str]] = {}
    for r in records:
        run.setdefault(r["entry"], set()).add(r["dtype"])
        for what, problem in facts(r):
            reason = known(r["entry"], r["dtype"]).get(what) or problem
            dtypes.setdefault((r["entry"], what, reason), set()).add(r["dtype"])
    lines: dict[tuple[str, str, str], list[str]] = {}
    for (entry, what, reason), found in sorted(dtypes.items()):
        text = ALL if found == run[entry] else ", ".join(sorted(found))
        lines.setdefault((entry, text, reason), []).append(what)
    return [f"| {entry} | {', '.join(what)} | {text} | {reason} |" for (entry, text, reason), what in lines.items()]
