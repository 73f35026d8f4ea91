"""The choice of a plugin, on made-up machines: folders that stand for /dev, /sys, /proc and /tmp."""

import os
from pathlib import Path

import pytest
import torch

from torch_tpu import _platform


class Machine:
    """A root folder to which devices and processes can be added."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("dev", "sys/bus/pci/devices", "proc", "tmp"):
            (root / folder).mkdir(parents=True)

    def node(self, name: str) -> None:
        path = self.root / "dev" / name
        path.parent.mkdir(exist_ok=True)
        path.touch()

    def pci(self, address: str, vendor: str, pci_class: str) -> None:
        folder = self.root / "sys/bus/pci/devices" / address
        folder.mkdir()
        (folder / "vendor").write_text(vendor + "\n")
        (folder / "class").write_text(pci_class + "\n")

    def process(self, pid: int, name: str, opened: str) -> None:
        fd = self.root / "proc" / str(pid) / "fd"
        fd.mkdir(parents=True)
        (fd / "0").symlink_to("/dev/null")
        (fd / "7").symlink_to(opened)
        (self.root / "proc" / str(pid) / "comm").write_text(name + "\n")

    def lock(self, pid: int) -> None:
        file = self.root / "tmp/libtpu_lockfile"
        file.touch()
        status = file.stat()
        where = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        (self.root / "proc/locks").write_text(
            f"1: POSIX  ADVISORY  READ 11 00:01:1 0 EOF\n2: FLOCK  ADVISORY  WRITE {pid} {where} 0 EOF\n"
            f"2: -> FLOCK  ADVISORY  WRITE 12 {where} 0 EOF\n"
        )


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path / "root")


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """Paths of the two plugins, each in a package that would fail if it were imported."""
    paths = {}
    for package, library in (("libtpu", "libtpu.so"), ("fastatomstruct_xla_cpu", "libpjrt_cpu.so")):
        folder = tmp_path / "site" / package
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("raise AssertionError('must not be imported')\n")
        (folder / library).touch()
        paths[package] = str(folder / library)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return paths


@pytest.fixture
def no_plugins(monkeypatch):
    monkeypatch.setattr(_platform.importlib.util, "find_spec", lambda name: None)


def test_without_a_tpu_the_cpu_plugin_is_taken(machine, plugins):
    choice = _platform.choose({}, machine.root)
    assert (choice.platform, choice.plugin_path) == ("cpu", plugins["fastatomstruct_xla_cpu"])
    assert choice.reason == "no TPU found"
    assert choice.options == {"cpu_device_count": 1}


@pytest.mark.parametrize(
    ("nodes", "pci_class", "platform", "first"),
    [
        (["accel0", "accel1"], None, "tpu", "/dev/accel0"),
        (["vfio/1", "vfio/0", "vfio/vfio"], "0x120000", "tpu", "/dev/vfio/0"),
        (["vfio/0", "vfio/vfio"], "0x020000", "cpu", None),  # Google's network card only
        (["vfio/vfio"], "0x120000", "cpu", None),  # a TPU whose nodes are not mounted here
        (["vfio/0", "vfio/vfio"], None, "cpu", None),
    ],
)
def test_a_tpu_needs_nodes_and_a_google_accelerator(machine, plugins, nodes, pci_class, platform, first):
    machine.pci("0000:00:01.0", "0x8086", "0x060000")
    if pci_class:
        machine.pci("0000:00:05.0", "0x1ae0", pci_class)
    for node in nodes:
        machine.node(node)
    choice = _platform.choose({}, machine.root)
    assert choice.platform == platform
    if first:
        assert choice.plugin_path == plugins["libtpu"]
        assert first in choice.reason


def test_chips_are_in_numeric_order(machine):
    for n in (10, 2, 0):
        machine.node(f"accel{n}")
    assert _platform.tpu_nodes(machine.root) == ["/dev/accel0", "/dev/accel2", "/dev/accel10"]


def test_a_named_plugin_wins_over_everything(machine, plugins, tmp_path):
    machine.node("accel0")
    mine = tmp_path / "mine.so"
    mine.touch()
    env = {"TORCH_TPU_PJRT_PLUGIN": str(mine), "TORCH_TPU_PLATFORM": "tpu", "TORCH_TPU_CPU_DEVICES": "2"}
    choice = _platform.choose(env, machine.root)
    assert (choice.platform, choice.plugin_path) == ("custom", str(mine))
    assert choice.options == {"cpu_device_count": 2}


def test_a_named_plugin_that_is_missing_is_an_error(machine, plugins):
    with pytest.raises(RuntimeError, match=r"TORCH_TPU_PJRT_PLUGIN=/nowhere\.so: there is no such file"):
        _platform.choose({"TORCH_TPU_PJRT_PLUGIN": "/nowhere.so"}, machine.root)


def test_the_user_may_ask_for_the_cpu_beside_a_tpu(machine, plugins):
    machine.node("accel0")
    assert _platform.choose({"TORCH_TPU_PLATFORM": "cpu"}, machine.root).platform == "cpu"
    assert _platform.choose({"TORCH_TPU_PLATFORM": ""}, machine.root).platform == "tpu"


def test_an_unknown_platform_names_the_allowed_ones(machine):
    with pytest.raises(ValueError, match="TORCH_TPU_PLATFORM=gpu: allowed values are tpu and cpu"):
        _platform.choose({"TORCH_TPU_PLATFORM": "gpu"}, machine.root)


def test_a_tpu_that_is_asked_for_but_not_there_says_what_was_tried(machine, plugins):
    with pytest.raises(RuntimeError, match=r"no usable TPU.*dev/accel\*.*none.*libtpu\.so.*TORCH_TPU_PLATFORM=cpu"):
        _platform.choose({"TORCH_TPU_PLATFORM": "tpu"}, machine.root)


def test_a_tpu_without_libtpu(machine, no_plugins, monkeypatch):
    machine.node("accel0")
    with pytest.raises(RuntimeError, match=r"pip install 'torchtpu\[tpu\]'"):
        _platform.choose({"TORCH_TPU_PLATFORM": "tpu"}, machine.root)
    monkeypatch.setattr(_platform, "cpu_plugin_path", lambda: "/plugin.so")
    choice = _platform.choose({}, machine.root)
    assert choice.platform == "cpu"
    assert "libtpu is missing" in choice.reason


def test_no_plugin_at_all_says_what_to_install(machine, no_plugins):
    with pytest.raises(RuntimeError, match=r"no PJRT plugin.*Tried: .*pip install torchtpu .*torchtpu\[tpu\]"):
        _platform.choose({}, machine.root)


def test_tpu_library_path(machine, plugins, tmp_path):
    other = tmp_path / "other_libtpu.so"
    assert _platform.libtpu_path({"TPU_LIBRARY_PATH": str(other)}) is None
    other.touch()
    machine.node("accel0")
    assert _platform.choose({"TPU_LIBRARY_PATH": str(other)}, machine.root).plugin_path == str(other)


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_a_bad_device_count_is_named(machine, plugins, text):
    with pytest.raises(ValueError, match="TORCH_TPU_CPU_DEVICES="):
        _platform.choose({"TORCH_TPU_CPU_DEVICES": text}, machine.root)


def test_virtual_devices_become_a_create_option(machine, plugins):
    assert _platform.choose({"TORCH_TPU_CPU_DEVICES": "4"}, machine.root).options == {"cpu_device_count": 4}


def test_a_tpu_opened_by_another_process_is_refused_by_name(machine, plugins):
    machine.node("accel0")
    machine.process(os.getpid(), "pytest", "/dev/accel0")  # our own use does not count
    assert _platform.choose({}, machine.root).platform == "tpu"
    machine.process(4711, "trainer", "/dev/accel0")
    with pytest.raises(RuntimeError, match=r"in use by process 4711 \(trainer\).*TPU_VISIBLE_CHIPS"):
        _platform.choose({}, machine.root)


def test_processes_may_share_a_machine_by_chip(machine, plugins):
    for n in range(4):
        machine.node(f"accel{n}")
    machine.process(4711, "rank0", "/dev/accel0")
    machine.lock(4711)
    assert _platform.choose({"TPU_VISIBLE_CHIPS": "1,2"}, machine.root).platform == "tpu"
    with pytest.raises(RuntimeError, match="process 4711"):
        _platform.choose({"TPU_VISIBLE_CHIPS": "0"}, machine.root)


@pytest.mark.parametrize(("pid", "who"), [(4711, "process 4711"), (0, "a process in another container")])
def test_libtpu_locked_by_another_process_is_refused(machine, plugins, pid, who):
    machine.node("accel0")
    machine.lock(pid)
    with pytest.raises(RuntimeError, match=f"in use by {who}"):
        _platform.choose({}, machine.root)
    assert _platform.choose({"ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}, machine.root).platform == "tpu"


def test_a_lock_file_that_nobody_holds_is_ignored(machine, plugins):
    machine.node("accel0")
    (machine.root / "tmp/libtpu_lockfile").touch()
    assert _platform.choose({}, machine.root).platform == "tpu"


@pytest.mark.parametrize(
    ("cuda", "hip", "node", "env", "expected"),
    [
        ("12.8", None, "nvidia0", {}, True),
        ("12.8", None, "nvidia0", {"CUDA_VISIBLE_DEVICES": "0"}, True),
        ("12.8", None, "nvidia0", {"CUDA_VISIBLE_DEVICES": ""}, False),
        ("12.8", None, "nvidia0", {"CUDA_VISIBLE_DEVICES": "-1"}, False),
        ("12.8", None, "nvidiactl", {}, False),  # the driver without a device
        ("12.8", None, "dxg", {}, True),
        (None, None, "nvidia0", {}, False),  # a CPU build of torch cannot use it
        (None, "6.4", "kfd", {}, True),
        (None, "6.4", "kfd", {"HIP_VISIBLE_DEVICES": "-1"}, False),
    ],
)
def test_cuda_in_use(machine, monkeypatch, cuda, hip, node, env, expected):
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.version, "hip", hip)
    machine.node(node)
    assert _platform.cuda_in_use(env, machine.root) is expected


def test_cuda_keeps_the_accelerator_unless_there_is_a_tpu_or_the_user_asks(machine, plugins, monkeypatch):
    assert not _platform.yields_to_cuda({}, machine.root)
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    machine.node("nvidia0")
    assert _platform.yields_to_cuda({}, machine.root)
    assert not _platform.yields_to_cuda({"TORCH_TPU_PLATFORM": "cpu"}, machine.root)
    assert not _platform.yields_to_cuda({"TORCH_TPU_PJRT_PLUGIN": "/my.so"}, machine.root)
    machine.node("accel0")
    assert not _platform.yields_to_cuda({}, machine.root)


def test_the_installed_cpu_plugin_is_the_file_its_package_names():
    import fastatomstruct_xla_cpu

    assert _platform.cpu_plugin_path() == fastatomstruct_xla_cpu.library_path()
