"""The command line: what this installation sees, which variables it reads, and which operators it has."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m torch_tpu", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("env", help="environment variables: value, default, meaning")
    info = commands.add_parser("info", help="versions, devices and the compilation cache; starts the device")
    info.add_argument("--json", action="store_true", help="for programs")
    ops = commands.add_parser("ops", help="operators: where they run, and what the TPU compiler says of them")
    ops.add_argument("name", nargs="?", default="", help="only those whose name contains this")
    form = ops.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="for programs")
    form.add_argument("--markdown", action="store_true", help="as tables")
    options = parser.parse_args(arguments)
    if options.command == "ops":
        rows = [row for row in operators() if options.name in row["operator"]]
        print(json.dumps(rows, indent=2) if options.json else _markdown(rows) if options.markdown else _columns(rows))
        return 0 if rows else 1
    if options.command == "env":
        print(environment())
        return 0
    facts = information()
    print(json.dumps(facts, indent=2) if options.json else _lines(facts))
    return 1 if "error" in facts else 0


def environment() -> str:
    """The table of environment variables."""
    import torch_tpu._C as _C

    lines = []
    for name, value, default, meaning in _C.environment():
        state = f"{value}" if value != default else f"{value or 'not set'} (default)"
        lines.append(f"{name} = {state}\n    {meaning}")
    return "\n".join(lines)


def information() -> dict[str, Any]:
    """Versions, the plugin and why it was chosen, devices, the cache; `error` when no device can be started."""
    import torch

    import torch_tpu
    import torch_tpu._C as _C
    from torch_tpu import _platform

    facts: dict[str, Any] = {"torch_tpu": torch_tpu.__version__, "torch": torch.__version__, "active": torch_tpu.active}
    try:
        torch_tpu.register()
        choice = _platform.choose()
        facts |= {"platform": choice.platform, "plugin": choice.plugin_path, "reason": choice.reason}
        _C.start()
        facts["plugin_version"] = _C.platform_version()
        facts["devices"] = [
            {"name": p.name, "memory": p.total_memory, "cores": p.multi_processor_count}
            for p in map(torch.tpu.get_device_properties, range(_C.device_count()))
        ]
    except (RuntimeError, ValueError) as error:
        facts["error"] = str(error)
    facts["cache"] = _C.disk_usage()
    return facts


def operators() -> list[dict[str, Any]]:
    """Every ATen operator that PyTorch does not take apart by itself, by name; in-place and out= forms are left out.

    `runs` is "device" (an entry of the operator table), "decomposed" (PyTorch's decomposition, as one program) or
    "host". Of an entry `dtypes` are those for which libtpu has compiled it for each of the stored topologies, and
    `refused` says why it did not, by dtype.
    """
    import torch

    import torch_tpu._C as _C
    from torch_tpu import _decompose

    stored = json.loads((Path(__file__).parent / "operators.json").read_text())["operators"]
    unknown: dict[str, Any] = {"dtypes": [], "refused": {}}
    rows = [{"operator": name, "runs": "device", **stored.get(name, unknown)} for name in _C.table()]
    have = {row["operator"] for row in rows}
    decomposed = {op.name().removeprefix("aten::") for op in _decompose.table()}
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    for full in torch._C._dispatch_get_all_op_names():
        name = full.removeprefix("aten::")
        base, _, overload = name.partition(".")
        written = (base.endswith("_") and not base.endswith("__")) or "out" in overload
        if name == full or name in have or written:
            continue
        if any(has_kernel(full, key) for key in ("PrivateUse1", "CompositeImplicitAutograd")):
            continue
        if name in decomposed:
            rows.append({"operator": name, "runs": "decomposed", **unknown})
        elif has_kernel(full, "CPU"):
            rows.append({"operator": name, "runs": "host", **unknown})
    return sorted(rows, key=lambda row: row["operator"])


def operators_page() -> str:
    """The text of docs/operators.md."""
    facts = json.loads((Path(__file__).parent / "operators.json").read_text())
    rows = operators()
    device = [row for row in rows if row["runs"] == "device"]
    refused = [(row["operator"], dtype, why) for row in device for dtype, why in sorted(row["refused"].items())]
    accepted = sum(bool(row["dtypes"]) for row in device)
    unknown = [row["operator"] for row in device if not row["dtypes"] and not row["refused"]]
    lines = [
        "# Operators",
        "",
        "Made by `make operators`; a test fails when it is stale. `python -m torch_tpu ops` prints the same.",
        "",
        f"Of {len(device)} entries of the operator table, libtpu {facts['libtpu']} has compiled {accepted}, without a "
        f"TPU, for each of {', '.join(facts['topologies'])}, with the dtypes in their row. In-place and `out=` forms "
        "follow from these.",
        "",
        "## Refused by the TPU compiler",
        "",
        "| operator | dtype | reason |",
        "|---|---|---|",
        *(f"| `{name}` | {dtype} | {_cell(why)} |" for name, dtype, why in refused),
        "",
        "## Not compiled by the tests",
        "",
        ", ".join(f"`{name}`" for name in unknown) + ".",
        "",
        "## All",
        "",
        _markdown(rows),
        "",
    ]
    return "\n".join(lines)


def _verdict(row: dict[str, Any]) -> str:
    if row["runs"] != "device":
        return ""
    parts = [", ".join(row["dtypes"])] if row["dtypes"] else []
    if row["refused"]:
        parts.append("refused: " + ", ".join(row["refused"]))
    return "; ".join(parts) or "not compiled"


def _markdown(rows: list[dict[str, Any]]) -> str:
    lines = ["| operator | runs | compiled for a TPU |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| `{r['operator']}` | {r['runs']} | {_verdict(r)} |" for r in rows)])


def _columns(rows: list[dict[str, Any]]) -> str:
    width = max((len(r["operator"]) for r in rows), default=0)
    return "\n".join(f"{r['operator']:{width}}  {r['runs']:10}  {_verdict(r)}".rstrip() for r in rows)


def _cell(text: str) -> str:
    """Text as one cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _lines(facts: dict[str, Any]) -> str:
    lines = [f"{k:15}{v}" for k, v in facts.items() if k not in ("devices", "cache")]
    for i, d in enumerate(facts.get("devices", [])):
        lines.append(f"{f'tpu:{i}':15}{d['name']}, {d['memory'] / 2**30:.1f} GiB, {d['cores']} cores")
    cache = facts["cache"]
    size = f"{cache['entries']} programs, {cache['bytes'] / 2**20:.1f} MiB"
    lines.append(f"{'cache':15}{cache['mode']}, {size}, {cache['directory']}")
    return "\n".join(lines)
