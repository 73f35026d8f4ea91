"""The cache on disk across processes, and everything that can be wrong with it."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import struct
import time
from pathlib import Path

import pytest

from tests.cache.conftest import ANSWER, WORK


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.tpuc"))


@pytest.fixture
def folder(warm, tmp_path):
    """A warm folder of this test's own."""
    return Path(shutil.copytree(warm, tmp_path / "cache"))


def test_a_second_process_compiles_nothing(run, warm):
    second = run(WORK, warm).report
    assert second["answer"] == ANSWER
    assert second["compiles"] == 0
    assert second["disk_hits"] == len(entries(warm)) > 0
    assert second["disk_stores"] == 0


def test_the_folder_is_private(warm):
    assert warm.stat().st_mode & 0o777 == 0o700
    assert all(entry.stat().st_mode & 0o077 == 0 for entry in entries(warm))


def test_off_neither_reads_nor_writes(run, folder):
    before = {e: e.stat().st_mtime_ns for e in entries(folder)}
    report = run(WORK, folder, TORCH_TPU_CACHE="off").report
    assert report["answer"] == ANSWER
    assert report["compiles"] == len(before)
    assert report["disk_hits"] == report["disk_stores"] == 0
    assert {e: e.stat().st_mtime_ns for e in entries(folder)} == before


def test_readonly_reads_and_does_not_write(run, folder):
    spare, *kept = entries(folder)
    spare.unlink()
    before = {e: e.stat().st_mtime_ns for e in kept}
    report = run(WORK, folder, TORCH_TPU_CACHE="readonly").report
    assert report["answer"] == ANSWER
    assert (report["compiles"], report["disk_hits"], report["disk_stores"]) == (1, len(kept), 0)
    assert {e: e.stat().st_mtime_ns for e in entries(folder)} == before


def test_an_unknown_mode_is_named(start, tmp_path):
    process = start(WORK, tmp_path / "cache", TORCH_TPU_CACHE="maybe")
    _, err = process.popen.communicate(timeout=120)
    assert process.popen.returncode == 1
    assert "ValueError: TORCH_TPU_CACHE=maybe: expected on, readonly or off" in err


def test_many_processes_at_once_on_an_empty_folder(start, run, tmp_path):
    folder = tmp_path / "cache"
    crowd = [start(WORK, folder) for _ in range(4)]
    for process in crowd:
        process.finish()
        assert process.report["answer"] == ANSWER
        assert process.complaints == []
    assert run(WORK, folder).report["compiles"] == 0


DAMAGE = {
    "empty": lambda b: b"",
    "half a header": lambda b: b[:20],
    "truncated": lambda b: b[:-1],
    "longer": lambda b: b + b"\0",
    "a flipped bit": lambda b: b[:-5] + bytes([b[-5] ^ 1]) + b[-4:],
    "another format": lambda b: b"\x7fELF" + b[4:],
    "foreign": lambda b: b"a shopping list",
}


def test_damaged_entries_are_compiled_again_and_replaced(run, tmp_path):
    folder = tmp_path / "cache"
    program = f"report(answer=[torch.ones(n).to('tpu').exp().shape[0] for n in range({len(DAMAGE)})])"
    answer = run(program, folder).report["answer"]
    assert len(entries(folder)) == len(DAMAGE)
    for entry, damage in zip(entries(folder), DAMAGE.values(), strict=True):
        entry.write_bytes(damage(entry.read_bytes()))
    second = run(program, folder)
    assert second.report["answer"] == answer
    assert (second.report["compiles"], second.report["disk_hits"]) == (len(DAMAGE), 0)
    assert second.complaints == []
    third = run(program, folder, TORCH_TPU_CACHE="readonly").report
    assert (third["compiles"], third["disk_hits"]) == (0, len(DAMAGE))


def test_bytes_that_the_plugin_refuses_are_compiled_again_and_replaced(run, folder):
    payload = b"whole, and no program"
    for entry in entries(folder):
        header = entry.read_bytes()[:8] + struct.pack("<Q", len(payload)) + hashlib.sha256(payload).digest()
        entry.write_bytes(header + payload)
    report = run(WORK, folder).report
    assert report["answer"] == ANSWER
    assert report["compiles"] == len(entries(folder))
    assert run(WORK, folder).report["compiles"] == 0


@pytest.mark.parametrize("place", ["in a file", "where nothing can be made"])
def test_an_unusable_folder_costs_one_line(run, tmp_path, place):
    (tmp_path / "file").touch()
    process = run(WORK, tmp_path / "file" / "cache" if place == "in a file" else "/proc/cache")
    assert process.report["answer"] == ANSWER
    assert process.report["disk_stores"] == 0
    assert len(process.complaints) == 1


def test_a_folder_that_others_may_write_to_is_not_used(run, folder):
    folder.chmod(0o777)
    process = run(WORK, folder)
    assert process.report["answer"] == ANSWER
    assert process.report["disk_hits"] == 0
    assert len(process.complaints) == 1 and "chmod go-w" in process.complaints[0]


def test_a_full_disk_costs_one_line(run, tmp_path):
    folder = tmp_path / "cache"
    # Files of this process end after 1,000 bytes, as if the disk were full.
    process = run("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))" + WORK, folder)
    assert process.report["answer"] == ANSWER
    assert len(process.complaints) == 1
    assert list(folder.iterdir()) == []


def test_a_process_killed_in_its_first_run_leaves_a_good_folder(start, run, tmp_path):
    folder = tmp_path / "cache"
    victim = start("for n in range(1, 1000): torch.ones(n).to('tpu').exp()", folder)
    deadline = time.monotonic() + 120
    while not (folder.is_dir() and len(entries(folder)) >= 2):
        assert time.monotonic() < deadline and victim.popen.poll() is None
        time.sleep(0.001)
    victim.popen.send_signal(signal.SIGKILL)
    victim.popen.communicate()
    again = run("report(answer=[torch.ones(n).to('tpu').exp().sum().item() for n in (1, 2, 40)])", folder).report
    assert again["answer"] == pytest.approx([2.718282, 5.436564, 108.7313], rel=1e-6)
    assert again["disk_hits"] >= 2


def test_the_oldest_entries_make_room(run, folder):
    mine = entries(folder)
    for age in range(4):
        old = folder / f"old{age}.tpuc"
        old.write_bytes(bytes(400_000))
        os.utime(old, (1e9 - age, 1e9 - age))
    mine[0].unlink()  # a reason to write
    report = run(WORK, folder, TORCH_TPU_CACHE_MB="1").report
    assert report["disk_stores"] == 1
    assert [e.name for e in entries(folder) if e.name.startswith("old")] == ["old0.tpuc", "old1.tpuc"]
    assert sum(e.stat().st_size for e in entries(folder)) <= 1 << 20
    assert run(WORK, folder, TORCH_TPU_CACHE_MB="1").report["compiles"] == 0


def test_a_cap_of_nothing_keeps_nothing(run, tmp_path):
    process = run(WORK, tmp_path / "cache", TORCH_TPU_CACHE_MB="0")
    assert process.report["answer"] == ANSWER
    assert process.complaints == []
    assert entries(tmp_path / "cache") == []
