"""The command line: what this installation sees and which variables it reads."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m torch_tpu", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("env", help="environment variables: value, default, meaning")
    info = commands.add_parser("info", help="versions, devices and the compilation cache; starts the device")
    info.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args(arguments)
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


def _lines(facts: dict[str, Any]) -> str:
    lines = [f"{k:15}{v}" for k, v in facts.items() if k not in ("devices", "cache")]
    for i, d in enumerate(facts.get("devices", [])):
        lines.append(f"{f'tpu:{i}':15}{d['name']}, {d['memory'] / 2**30:.1f} GiB, {d['cores']} cores")
    cache = facts["cache"]
    size = f"{cache['entries']} programs, {cache['bytes'] / 2**20:.1f} MiB"
    lines.append(f"{'cache':15}{cache['mode']}, {size}, {cache['directory']}")
    return "\n".join(lines)
