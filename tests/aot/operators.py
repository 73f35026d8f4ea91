"""The verdicts of the TPU compiler about the operator table: what torch_tpu/operators.json and docs/operators.md hold.

Run as a program (`make operators`) it compiles everything anew and writes both.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "ops"), str(ROOT / "tests" / "aot")]

import torch  # noqa: E402
from packing import compile_all  # noqa: E402
from samples import Sweep, name_of  # noqa: E402

from torch_tpu import aot, cli  # noqa: E402

DATA = ROOT / "torch_tpu" / "operators.json"
PAGE = ROOT / "docs" / "operators.md"

TOPOLOGIES = ("v5e:1x1x1", "v6e:1x1x1", "tpu7x:1x1x1")
# One of each kind. float64 is emulated, and takes the compiler seconds an operator.
DTYPES = (torch.int64, torch.float32, torch.complex64)
# They compute in float64 on the way, and take libtpu two minutes each.
SLOW = {"igamma", "igammac"}
NAMES = [name_of(d) for d in DTYPES]
PACK = 24
TIMEOUT = 900.0


def verdicts(sweep: Sweep, topologies: tuple[str, ...] = TOPOLOGIES) -> dict[str, Any]:
    """{entry: {"dtypes": accepted for every topology, "refused": {dtype: reason}}}."""
    wanted = {key: found for key, found in sweep.entries.items() if key[0] not in SLOW and key[1] in NAMES}
    chosen = {key: min(found.modules, key=len) for key, found in wanted.items() if found.modules}
    modules = list(dict.fromkeys(chosen.values()))
    refused: dict[str, str] = {}
    with aot.Pool(workers=2, timeout=TIMEOUT) as pool:
        waiting = {name: compile_all(pool, modules, name, PACK) for name in topologies}
        for name, wait in waiting.items():
            for module, verdict in zip(modules, wait(), strict=True):
                if not verdict.ok:
                    refused.setdefault(module, f"{name.partition(':')[0]}: {verdict.outcome}: {_first(verdict.text)}")
    out: dict[str, Any] = {entry: {"dtypes": [], "refused": {}} for entry in sorted(sweep.table)}
    for (entry, dtype), found in sorted(wanted.items()):
        if found.errors:
            out[entry]["refused"][dtype] = min(found.errors)
        elif chosen[entry, dtype] in refused:
            out[entry]["refused"][dtype] = refused[chosen[entry, dtype]]
        else:
            out[entry]["dtypes"] = sorted([*out[entry]["dtypes"], dtype], key=NAMES.index)
    return out


def _first(text: str) -> str:
    return text.partition("\n")[0].removeprefix("compile: ")[:160]


def as_json(operators: dict[str, Any]) -> str:
    """One line an entry, so that a change shows as one."""
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in operators.items())
    head = f'"libtpu": "0.0.52",\n  "topologies": {json.dumps([t.partition(":")[0] for t in TOPOLOGIES])}'
    return f'{{\n  {head},\n  "operators": {{\n{lines}\n  }}\n}}\n'


def main() -> None:
    start = time.monotonic()
    sweep = Sweep(DTYPES).run()
    print(f"recorded {len(sweep.entries)} calls in {time.monotonic() - start:.0f} s", flush=True)
    DATA.write_text(as_json(verdicts(sweep)))
    PAGE.write_text(cli.operators_page())
    print(f"wrote {DATA.name} and {PAGE.name} after {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
