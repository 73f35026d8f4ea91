"""Runs the benchmarks side by side and writes RESULTS.md.

    python benchmarks/run.py [--only ops,chain,train,scalars,startup,demo] [--repeats 7] [--peer DIR]

The contenders are this interpreter's torch_tpu ("ours", device "tpu"), plain CPU torch in the same interpreter
and Google's torch-tpu in its default, strict eager mode, given a virtual environment in which `import peer`
prepares it (--peer or TORCH_TPU_PEER). They are asked in turn, A B C A B C ..., and medians are compared.
"""

import argparse
import datetime
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import report
from contenders import Contender, Failure, contenders, last_line
from report import Bar, Row

HERE = Path(__file__).resolve().parent
DEMO = HERE.parent / "examples" / "demo" / "demo.py"
STATISTICS = "statistics: "
ONE_OP = ["add", "mul by a scalar", "mm", "sum", "transposed add", "in-place addcmul"]

# Group -> the measure and the empty row of each of its samples.
SAMPLED: dict[str, list[tuple[str, Callable[[], Row]]]] = {
    "ops": [(op, partial(Row, f"{op}, 8x8 f32", "us", Bar(ratio=0.5))) for op in ONE_OP],
    "chain": [("chain", partial(Row, "chain of 100 scalar mul/add, 1,024 floats", "us", Bar(ratio=0.4)))],
    "train": [
        ("gpt", partial(Row, "GPT training step", "ms", Bar(ratio=0.7))),
        ("resnet", partial(Row, "ResNet training step", "ms", Bar(ratio=0.7))),
    ],
    "scalars": [
        ("scalars", partial(Row, "memory growth, 20,000 distinct scalars", "MB", Bar(limit=8e6), max)),
    ],
}
GROUPS = [*SAMPLED, "startup", "demo"]


def sampled(field: list[Contender], measure: str, row: Row, repeats: int) -> None:
    """Fills a row by asking every contender in turn, `repeats` times; one that fails is asked no more."""
    checks: dict[str, float] = {}
    for _ in range(repeats):
        for contender in field:
            if contender.name not in row.errors:
                try:
                    value, checks[contender.name] = contender.sample(measure)
                    row.samples.setdefault(contender.name, []).append(value)
                except Failure as failure:
                    row.errors[contender.name] = str(failure)
    expected = checks.get("cpu")
    for name, check in checks.items():
        if expected is not None and not abs(check - expected) <= 1e-3 * max(1.0, abs(expected)):
            # Our numbers must be right to count. Another's time stands, with the remark that its result differs.
            wrong = row.errors if name == "ours" else row.remarks
            wrong[name] = f"computed {check:.7g}, CPU torch {expected:.7g}"


def startup(field: list[Contender], repeats: int) -> Row:
    """Whole processes from `import torch` to the first result of one op, each project's disk cache warm."""
    row = Row("import torch to the first result of one op", "s", Bar(ratio=0.7, above_cpu=1.0))
    for repeat in range(repeats + 1):
        for contender in field:
            if contender.name not in row.errors:
                try:
                    seconds = contender.first_result()
                    if repeat:  # the first run fills the disk cache
                        row.samples.setdefault(contender.name, []).append(seconds)
                except Failure as failure:
                    row.errors[contender.name] = str(failure)
    return row


def demo(ours: Contender) -> Row:
    """The number of compilations in a process that runs the whole demo after another process has done so."""
    row = Row("compilations in a second process, whole demo", "", Bar(limit=0))
    for attempt in ("cold", "warm"):
        with tempfile.TemporaryDirectory() as output:
            command = [ours.python, str(DEMO), "--output", output]
            done = subprocess.run(command, env=ours.environment, capture_output=True, text=True)
        marked = [line for line in done.stdout.splitlines() if line.startswith(STATISTICS)]
        if done.returncode or not marked:
            row.errors[ours.name] = f"{attempt} run, exit code {done.returncode}: {last_line(done.stderr)}"
            break
        compiles = json.loads(marked[-1].removeprefix(STATISTICS))["compiles"]
        if attempt == "cold" and not compiles:
            row.errors[ours.name] = f"the first process, without a cache, counted {compiles} compilations"
            break
        row.samples[ours.name] = [compiles]
    return row


def measure(field: list[Contender], groups: list[str], repeats: int) -> Iterator[Row]:
    """Yields the finished rows of the chosen groups, in the order of the table."""
    for group in groups:
        for name, empty in SAMPLED.get(group, []):
            row = empty()
            sampled(field, name, row, repeats)
            yield row
        for contender in field:  # idle processes must not disturb what comes next
            contender.close()
        if group == "startup":
            yield startup(field, repeats)
        if group == "demo":
            yield demo(field[0])


def results(rows: list[Row], field: list[Contender], groups: list[str], repeats: int) -> str:
    """The text of RESULTS.md, which names no folder of this machine."""
    command = f"python benchmarks/run.py --only {','.join(groups)} --repeats {repeats}"
    command += " --peer DIR" if len(field) > 2 else ""
    versions = "\n".join(f"- {c.name}: {c.versions()}" for c in field)
    return f"""# Benchmark results

Written by `{command}` on {datetime.date.today()}; medians of {repeats} interleaved repeats
(memory: the largest).

- machine: {report.machine()}, load {os.getloadavg()[0]:.1f} at the end
{versions}

{report.table(rows)}

{report.errors(rows)}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(GROUPS), help="groups to run, comma-separated (default: all)")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--peer", default=os.environ.get("TORCH_TPU_PEER"), metavar="DIR")
    parser.add_argument("--output", type=Path, default=HERE / "RESULTS.md")
    arguments = parser.parse_args()
    groups = arguments.only.split(",")
    if unknown := set(groups) - set(GROUPS):
        parser.error(f"no such group: {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")

    if arguments.peer and not (Path(arguments.peer) / "bin" / "python").exists():
        parser.error(f"--peer: {arguments.peer} is not a virtual environment")

    with tempfile.TemporaryDirectory() as cache:
        field = contenders(arguments.peer, Path(cache))
        rows = []
        try:
            for row in measure(field, groups, arguments.repeats):
                rows.append(row)
                print(" | ".join(row.cells()), flush=True)
        finally:
            for contender in field:
                contender.close()
        text = results(rows, field, groups, arguments.repeats)
    arguments.output.write_text(text)
    print(f"\n{report.table(rows)}\n\n{report.errors(rows)}\nwritten: {arguments.output}")


if __name__ == "__main__":
    main()
