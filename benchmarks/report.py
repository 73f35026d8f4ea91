"""The table of a benchmark run: bars, ratios, and the machine they were measured on."""

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

SCALES = {"us": 1e6, "ms": 1e3, "s": 1.0, "MB": 1e-6, "": 1.0}


@dataclass(frozen=True)
class Bar:
    """What one row must reach: a ratio to Google's number, an absolute limit, a limit above plain CPU torch's."""

    ratio: float | None = None
    limit: float | None = None
    above_cpu: float | None = None

    def text(self, unit: str) -> str:
        """The bar in words, its limits in the given unit."""
        scale = SCALES[unit]
        parts = []
        if self.ratio is not None:
            parts.append(f"≤ {self.ratio:g} of Google's")
        if self.limit is not None:
            parts.append(f"≤ {self.limit * scale:g} {unit}".rstrip())
        if self.above_cpu is not None:
            parts.append(f"≤ plain torch + {self.above_cpu * scale:g} {unit}")
        return ", ".join(parts)

    def met(self, ours: float | None, cpu: float | None, google: float | None) -> bool | None:
        """True or False, or None where a number that the bar needs was not measured."""
        limits = [
            (self.ratio, None if google is None else google * (self.ratio or 0)),
            (self.limit, self.limit),
            (self.above_cpu, None if cpu is None else cpu + (self.above_cpu or 0)),
        ]
        allowed = [most for asked, most in limits if asked is not None]
        if ours is None or None in allowed:
            return None
        return all(ours <= most for most in allowed if most is not None)


@dataclass
class Row:
    """One measure's samples by contender, in seconds or bytes, and what went wrong for whom.

    `summary` makes one number of the samples: the median, or for growth of memory the largest.
    """

    title: str
    unit: str
    bar: Bar
    summary: Callable[[list[float]], float] = median
    samples: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)

    def value(self, contender: str) -> float | None:
        """The contender's one number, or None where it was not measured or failed."""
        samples = self.samples.get(contender)
        return self.summary(samples) if samples and contender not in self.errors else None

    def cells(self) -> list[str]:
        """The row as text: title, ours, CPU, Google's, the two ratios, the bar, whether it is met."""
        ours, cpu, google = (self.value(name) for name in ("ours", "cpu", "google"))
        met = False if "ours" in self.errors else self.bar.met(ours, cpu, google)
        return [
            f"{self.title}, {self.unit}".rstrip(", "),
            *(self._number(name) for name in ("ours", "cpu", "google")),
            ratio(ours, google),
            ratio(ours, cpu),
            self.bar.text(self.unit),
            {True: "met", False: "**missed**", None: "not measured"}[met],
        ]

    def _number(self, contender: str) -> str:
        if contender in self.errors:
            return "error"
        value = self.value(contender)
        if value is None:
            return "-"
        scaled = value * SCALES[self.unit]
        return f"{scaled:,.0f}" if scaled >= 100 else f"{scaled:.3g}"


def ratio(a: float | None, b: float | None) -> str:
    """a / b to two digits, a dash where there is none."""
    return f"{a / b:.2f}" if a is not None and b else "-"


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table that also reads well on a terminal."""
    header = ["measure", "ours", "CPU torch", "Google's", "ours / Google's", "ours / CPU", "bar", ""]
    lines = [header] + [row.cells() for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in lines)


def errors(rows: list[Row]) -> str:
    """What went wrong and what is worth knowing, each text once with the rows it befell, or the empty string."""
    out: list[str] = []
    for title, texts in (
        ("Errors:", [(row.title, row.errors) for row in rows]),
        ("Remarks:", [(row.title, row.remarks) for row in rows]),
    ):
        rows_of: dict[str, list[str]] = {}
        for row_title, by_name in texts:
            for name, text in by_name.items():
                rows_of.setdefault(f"{name}: {text}", []).append(row_title)
        found = [f"- {text} (in: {'; '.join(titles)})" for text, titles in rows_of.items()]
        out += [title, "", *found, ""] if found else []
    return "\n".join(out)


def machine() -> str:
    """The processor, the number of usable cores, the memory and the system, as one line of text."""
    processor = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    system = f"{platform.system()} {platform.machine()}"
    return f"{names[0] if names else processor}, {cores} cores, {memory:.0f} GiB of memory, {system}"
