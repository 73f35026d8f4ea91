"""What goes wrong around the operators, as a user meets it: an exception with advice, in seconds, and no abort."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest


def last_words(program: str, **environment: str) -> tuple[str, float]:
    """Runs a program that must end with a Python exception; its last lines, and how many seconds that took."""
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", "import torch, torch_tpu\n" + textwrap.dedent(program)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 1, f"{done.returncode}: {done.stderr}"  # negative after an abort
    assert "Traceback (most recent call last)" in done.stderr
    return done.stderr.split("Traceback (most recent call last)")[-1], time.monotonic() - start


USE = "torch.ones(2, device='tpu')"


def test_a_plugin_that_is_not_there():
    said, _ = last_words(USE, TORCH_TPU_PJRT_PLUGIN="/nowhere/plugin.so")
    assert "RuntimeError: TORCH_TPU_PJRT_PLUGIN=/nowhere/plugin.so: there is no such file" in said


def test_a_text_file_as_plugin(tmp_path):
    text = tmp_path / "plugin.so"
    text.write_text("a poem\n")
    said, _ = last_words(USE, TORCH_TPU_PJRT_PLUGIN=str(text))
    assert f"RuntimeError: cannot load the PJRT plugin '{text}': it is not a loadable shared object" in said
    assert "Set TORCH_TPU_PJRT_PLUGIN to a PJRT plugin" in said


def test_a_library_that_is_no_plugin():
    import torch

    library = Path(torch.__file__).parent / "lib" / "libc10.so"
    said, _ = last_words(USE, TORCH_TPU_PJRT_PLUGIN=str(library))
    assert "it has no function GetPjrtApi" in said


@pytest.mark.skipif(any(Path("/dev").glob("accel*")), reason="needs a machine without a TPU")
def test_a_tpu_that_is_not_there():
    said, seconds = last_words(USE, TORCH_TPU_PLATFORM="tpu")
    assert "RuntimeError: TORCH_TPU_PLATFORM=tpu, but this machine has no usable TPU. Tried: " in said
    assert "TORCH_TPU_PLATFORM=cpu" in said
    assert seconds < 60


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs the package libtpu")
@pytest.mark.skipif(any(Path("/dev").glob("accel*")), reason="needs a machine without a TPU")
def test_libtpu_without_a_tpu_gives_up_at_once():
    library = Path(importlib.util.find_spec("libtpu").submodule_search_locations[0]) / "libtpu.so"
    said, seconds = last_words(USE, TORCH_TPU_PJRT_PLUGIN=str(library))
    assert "found no usable device" in said
    assert seconds < 60


@pytest.mark.parametrize("count", ["abc", "0", "-2", "1.5"])
def test_a_device_count_that_is_none(count):
    said, _ = last_words(USE, TORCH_TPU_CPU_DEVICES=count, TORCH_TPU_PLATFORM="cpu")
    assert f"ValueError: TORCH_TPU_CPU_DEVICES={count}: give the number of virtual devices, 1 or more" in said


@pytest.mark.parametrize("use", ["torch.ones(2, device='tpu:7')", "torch.tpu.set_device(7)"])
def test_a_device_that_does_not_exist(use):
    said, _ = last_words(use, TORCH_TPU_PLATFORM="cpu", TORCH_TPU_CPU_DEVICES="2")
    assert "RuntimeError: " in said
    assert "tpu:7 does not exist" in said
    assert "there are 2 tpu devices, numbered from 0" in said


@pytest.mark.parametrize(
    "use",
    [
        "torch.ones(1 << 46, device='tpu')",
        "torch.empty(1 << 46, device='tpu').add_(1)",
        "torch.ones(1 << 23, 1, device='tpu') + torch.ones(1, 1 << 23, device='tpu')",
        "torch.ones(1, device='tpu').expand(1 << 46).clone()",
    ],
    ids=["ones", "empty", "broadcast", "clone"],
)
def test_more_memory_than_there_is(use):
    said, _ = last_words(use, TORCH_TPU_PLATFORM="cpu")
    assert (
        "torch.OutOfMemoryError: out of memory on tpu:0: tried to allocate 262144.00 GiB (281474976710656 bytes)"
        in said
    )
    assert "are free" in said


def test_the_device_goes_on_after_it_ran_out_of_memory():
    program = """
    x = torch.ones(3, device="tpu")
    for _ in range(3):
        try:
            torch.ones(1 << 46, device="tpu")
            raise SystemExit("found 256 TiB")
        except torch.OutOfMemoryError:
            pass
    assert (x + 1).tolist() == [2, 2, 2]
    empty = torch.empty(1 << 46, device="tpu")  # takes nothing until it is written
    assert torch.tpu.memory_allocated() < 1 << 20
    raise RuntimeError("as expected")
    """
    said, _ = last_words(program, TORCH_TPU_PLATFORM="cpu")
    assert "RuntimeError: as expected" in said


def test_a_storage_whose_size_overflows():
    said, _ = last_words("torch.empty(1 << 62, device='tpu')", TORCH_TPU_PLATFORM="cpu")
    assert "RuntimeError: Storage size calculation overflowed with sizes=[4611686018427387904]" in said
