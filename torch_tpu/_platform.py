"""Which PJRT plugin to load: a TPU if there is one, else XLA's CPU device, unless the user decides.

Pure Python and free of torch, so that the choice costs nothing at import and can be tested on made-up machines:
every function that looks at the machine takes the environment and the root folder to look under.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PLATFORMS = ("tpu", "cpu")
GOOGLE_PCI_VENDOR = "0x1ae0"
# Google's virtual network cards and disks carry the same vendor id as its TPUs; the PCI class tells them apart.
OTHER_PCI_CLASSES = ("0x01", "0x02", "0x03", "0x06")
ROOT = Path("/")


@dataclass(frozen=True)
class Choice:
    """The plugin to load: `platform` is "tpu", "cpu" or "custom"; `options` go to PJRT_Client_Create."""

    platform: str
    plugin_path: str
    reason: str
    options: dict[str, int | str | bool] = field(default_factory=dict)


def choose(env: Mapping[str, str] | None = None, root: Path = ROOT) -> Choice:
    """Decides which plugin this process loads.

    TORCH_TPU_PJRT_PLUGIN wins, then TORCH_TPU_PLATFORM, then a TPU, then XLA's CPU plugin.
    Raises ValueError for a variable that cannot be understood, RuntimeError when the plugin is missing or when
    another process holds the TPU.
    """
    env = os.environ if env is None else env
    if custom := env.get("TORCH_TPU_PJRT_PLUGIN"):
        if not Path(custom).is_file():
            raise RuntimeError(
                f"TORCH_TPU_PJRT_PLUGIN={custom}: there is no such file. Give the path of a PJRT plugin (.so), "
                "or unset the variable to let TorchTPU choose."
            )
        return Choice("custom", custom, "TORCH_TPU_PJRT_PLUGIN is set", _cpu_options(env))

    wanted = requested_platform(env)
    if wanted == "cpu":
        return _cpu(env, "TORCH_TPU_PLATFORM=cpu")
    nodes, library = tpu_nodes(root), libtpu_path(env)
    if nodes and library:
        refuse_busy_tpu(nodes, env, root)
        reason = "TORCH_TPU_PLATFORM=tpu" if wanted else f"found {nodes[0]} and libtpu"
        return Choice("tpu", library, reason)

    tried = [
        f"TPU device nodes ({root}dev/accel*, {root}dev/vfio/*): {', '.join(nodes) if nodes else 'none'}",
        f"libtpu (TPU_LIBRARY_PATH, then the package libtpu): {library or 'not found'}",
    ]
    if wanted == "tpu":
        cure = "pip install 'torchtpu[tpu]'" if not library else "run this on a TPU VM with its devices mounted"
        raise RuntimeError(
            "TORCH_TPU_PLATFORM=tpu, but this machine has no usable TPU. Tried: "
            + "; ".join(tried)
            + f". What to do: {cure}, or set TORCH_TPU_PLATFORM=cpu to run on XLA's CPU device."
        )
    if nodes:
        return _cpu(env, "a TPU is attached but libtpu is missing (pip install 'torchtpu[tpu]')", tried)
    return _cpu(env, "no TPU found", tried)


def requested_platform(env: Mapping[str, str]) -> str | None:
    """The value of TORCH_TPU_PLATFORM, None when unset; ValueError names the allowed values."""
    wanted = env.get("TORCH_TPU_PLATFORM", "")
    if wanted and wanted not in PLATFORMS:
        raise ValueError(f"TORCH_TPU_PLATFORM={wanted}: allowed values are {' and '.join(PLATFORMS)}")
    return wanted or None


def tpu_nodes(root: Path = ROOT) -> list[str]:
    """Device nodes of the TPU chips of this machine as absolute paths, in chip order; empty without a TPU."""
    accel = _numbered(root / "dev", "accel")
    if accel:
        return [f"/dev/accel{n}" for n in accel]
    if not _has_google_accelerator(root):
        return []
    return [f"/dev/vfio/{n}" for n in _numbered(root / "dev" / "vfio", "")]


def libtpu_path(env: Mapping[str, str] | None = None) -> str | None:
    """Path of libtpu.so, from TPU_LIBRARY_PATH or the installed package (not imported); None without one."""
    env = os.environ if env is None else env
    if named := env.get("TPU_LIBRARY_PATH"):
        return named if Path(named).is_file() else None
    return _file_of_package("libtpu", "libtpu.so")


def cpu_plugin_path() -> str | None:
    """Path of XLA's CPU plugin in the package fastatomstruct-xla-cpu (not imported); None without it."""
    return _file_of_package("fastatomstruct_xla_cpu", "libpjrt_cpu.so")


def refuse_busy_tpu(nodes: list[str], env: Mapping[str, str], root: Path = ROOT) -> None:
    """Raises RuntimeError naming the process when another one holds a chip that this process would open.

    libtpu would otherwise retry for minutes, or abort. Processes that share a machine by chip
    (TPU_VISIBLE_CHIPS) only look at their own chips, and libtpu then takes no machine-wide lock.
    """
    visible = env.get("TPU_VISIBLE_CHIPS") or env.get("TPU_VISIBLE_DEVICES")
    chips = [int(n) for n in re.findall(r"\d+", visible)] if visible else range(len(nodes))
    mine = {nodes[n] for n in chips if n < len(nodes)}
    shared = bool(visible) or env.get("ALLOW_MULTIPLE_LIBTPU_LOAD", "") in ("1", "true")
    holder = _process_with_open(mine, root)
    if holder is None and not shared:
        holder = _process_with_lock(root / "tmp" / "libtpu_lockfile", root)
    if holder is None:
        return
    name = _read(root / "proc" / str(holder) / "comm")
    who = f"process {holder}" + (f" ({name})" if name else "") if holder > 0 else "a process in another container"
    raise RuntimeError(
        f"the TPU is in use by {who}. Wait for it or stop it, give each process its own chips with "
        "TPU_VISIBLE_CHIPS, or set TORCH_TPU_PLATFORM=cpu to run on XLA's CPU device."
    )


def cuda_in_use(env: Mapping[str, str] | None = None, root: Path = ROOT) -> bool:
    """Whether this torch can use a CUDA (or ROCm) device here, judged without starting the driver.

    `torch.cuda.is_available()` costs up to a second and may spoil a later fork; the build of torch and the
    device nodes tell the same.
    """
    import torch

    env = os.environ if env is None else env
    dev = root / "dev"
    if torch.version.cuda:
        hidden = env.get("CUDA_VISIBLE_DEVICES")
        present = bool(_numbered(dev, "nvidia")) or (dev / "dxg").exists()
    elif torch.version.hip:
        hidden = env.get("HIP_VISIBLE_DEVICES", env.get("ROCR_VISIBLE_DEVICES", env.get("CUDA_VISIBLE_DEVICES")))
        present = (dev / "kfd").exists()
    else:
        return False
    return present and (hidden is None or hidden.strip() not in ("", "-1"))


def yields_to_cuda(env: Mapping[str, str] | None = None, root: Path = ROOT) -> bool:
    """Whether TorchTPU must not register itself: CUDA is usable, there is no TPU, and the user did not ask.

    torch.accelerator is the PrivateUse1 device as soon as that has a name, whatever else is there, so
    leaving the accelerator to CUDA means not naming ours at all.
    """
    env = os.environ if env is None else env
    asked = env.get("TORCH_TPU_PJRT_PLUGIN") or env.get("TORCH_TPU_PLATFORM")
    if asked or not cuda_in_use(env, root):
        return False
    return not (tpu_nodes(root) and libtpu_path(env))


def _cpu(env: Mapping[str, str], reason: str, tried: list[str] | None = None) -> Choice:
    # Left to itself the plugin makes as many devices as it likes.
    options = {"cpu_device_count": 1, **_cpu_options(env)}
    path = cpu_plugin_path()
    if path is None:
        looked = [*(tried or []), "XLA's CPU plugin (package fastatomstruct-xla-cpu): not found"]
        raise RuntimeError(
            f"no PJRT plugin to load. Tried: {'; '.join(looked)}. What to do: pip install torchtpu (brings XLA's "
            "CPU plugin), pip install 'torchtpu[tpu]' on a TPU VM, or set TORCH_TPU_PJRT_PLUGIN=/path/to/plugin.so."
        )
    return Choice("cpu", path, reason, options)


def _cpu_options(env: Mapping[str, str]) -> dict[str, int | str | bool]:
    text = env.get("TORCH_TPU_CPU_DEVICES")
    if not text:
        return {}
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"TORCH_TPU_CPU_DEVICES={text}: give the number of virtual devices, 1 or more")
    return {"cpu_device_count": int(text)}


def _file_of_package(package: str, name: str) -> str | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(folder) / name).is_file():
            return str(path)
    return None


def _numbered(folder: Path, prefix: str) -> list[int]:
    pattern = re.compile(re.escape(prefix) + r"(\d+)")
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(int(m[1]) for name in names if (m := pattern.fullmatch(name)))


def _has_google_accelerator(root: Path) -> bool:
    for vendor in (root / "sys" / "bus" / "pci" / "devices").glob("*/vendor"):
        if _read(vendor) == GOOGLE_PCI_VENDOR and not _read(vendor.with_name("class")).startswith(OTHER_PCI_CLASSES):
            return True
    return False


def _process_with_open(nodes: set[str], root: Path) -> int | None:
    proc = root / "proc"
    for pid in _numbered(proc, ""):
        if pid == os.getpid():
            continue
        folder = proc / str(pid) / "fd"
        try:
            links = os.listdir(folder)
        except OSError:  # gone, or another user's
            continue
        for link in links:
            try:
                if os.readlink(folder / link) in nodes:
                    return pid
            except OSError:
                continue
    return None


def _process_with_lock(lockfile: Path, root: Path) -> int | None:
    try:
        status = lockfile.stat()
    except OSError:
        return None
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in _read(root / "proc" / "locks").splitlines():
        words = line.split()  # "7: FLOCK ADVISORY WRITE 4711 08:01:1234 0 EOF"; a waiter has "->" second
        if len(words) >= 6 and words[5] == file and int(words[4]) != os.getpid():
            return int(words[4])
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
