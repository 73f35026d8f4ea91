"""How the runtime learns which plugin to start, and how many devices there are before it has started."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from torch_tpu import _C, _platform

UNKNOWN = -1
# PCI device ids of TPU chips that show as two devices each (v2 and v3, v7x); every other chip is one.
TWO_DEVICE_CHIPS = ("0x0027", "0x0076")


def install() -> None:
    """Tells the runtime whom to ask. Starts nothing."""
    _C.set_chooser(choose)
    _C.set_probe(count_devices)


def choose() -> tuple[str, str, dict[str, int | str | bool], str]:
    """The plugin to start now: platform, path, options for its client, and one line for the user."""
    choice = _platform.choose()
    if not _platform.tpu_nodes():
        # libtpu would ask Google Cloud's metadata server for a TPU, for minutes where there is no such server.
        os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    notice = ""
    if choice.platform == "cpu" and not os.environ.get("TORCH_TPU_PLATFORM"):
        notice = f"{choice.reason}: device 'tpu' is XLA's CPU device (TORCH_TPU_PLATFORM=cpu hides this line)"
    return choice.platform, choice.plugin_path, choice.options, notice


def count_devices(env: Mapping[str, str] | None = None, root: Path = _platform.ROOT) -> int:
    """How many devices the client will have, judged without starting it; -1 when only the client can tell.

    A parent process may ask for this number and then fork or spawn one process a device: it must not take the TPU.
    Raises what `_platform.choose` raises.
    """
    env = os.environ if env is None else env
    if env.get("TORCH_TPU_PJRT_PLUGIN"):
        return UNKNOWN
    wanted = _platform.requested_platform(env)
    nodes = _platform.tpu_nodes(root) if wanted != "cpu" else []
    if nodes and _platform.libtpu_path(env):
        return _visible(len(nodes), env) * _devices_per_chip(root)
    choice = _platform.choose(env, root)
    return int(choice.options["cpu_device_count"])


def _visible(chips: int, env: Mapping[str, str]) -> int:
    visible = env.get("TPU_VISIBLE_CHIPS") or env.get("TPU_VISIBLE_DEVICES")
    return len({int(n) for n in re.findall(r"\d+", visible)} & set(range(chips))) if visible else chips


def _devices_per_chip(root: Path) -> int:
    for vendor in (root / "sys" / "bus" / "pci" / "devices").glob("*/vendor"):
        try:
            google = vendor.read_text().strip() == _platform.GOOGLE_PCI_VENDOR
            if google and vendor.with_name("device").read_text().strip() in TWO_DEVICE_CHIPS:
                return 2
        except OSError:
            continue
    return 1
