"""Programs in memory: counted, forgotten on request, and never more than asked for."""

from __future__ import annotations

import pytest

GROWTH = """
def resident():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024
"""


def test_statistics_and_clearing(run, tmp_path):
    run(
        """
        def counts():
            stats = torch.tpu.cache_stats()
            return [stats[k] for k in ("memory_misses", "memory_hits", "disk_hits", "compiles")]

        def change(action):
            before = counts()
            action()
            return [b - a for a, b in zip(before, counts())]

        x = torch.arange(5.0).to("tpu")
        use = lambda: x.exp()
        assert change(use) == [1, 0, 0, 1]
        assert change(use) == [0, 1, 0, 0]
        torch.tpu.cache_clear()
        assert change(use) == [1, 0, 1, 0], "from disk"
        torch.tpu.cache_clear(disk=True)
        assert change(use) == [1, 0, 0, 1], "from nowhere"
        stats = torch.tpu.cache_stats()
        assert stats["compile_seconds"] > 0
        assert stats["disk_stores"] == stats["compiles"] == torch.tpu.compiles()
        assert stats["fallbacks"] == 0 and stats["fallback_ops"] == {}
        """,
        tmp_path / "cache",
    )


@pytest.mark.parametrize(("entries", "misses"), [("4", 1), ("100", 0), ("0", 1)])
def test_the_number_of_programs_is_bounded(run, tmp_path, entries, misses):
    program = """
        xs = [torch.ones(n).to("tpu") for n in range(1, 13)]
        for x in xs: x.exp()
        before = torch.tpu.cache_stats()["memory_misses"]
        xs[0].exp()
        report(again=torch.tpu.cache_stats()["memory_misses"] - before)
        """
    assert run(program, tmp_path / "cache", TORCH_TPU_CACHE_ENTRIES=entries).report["again"] == misses


@pytest.mark.parametrize("entries", ["-1", "many"])
def test_a_bound_that_makes_no_sense_is_named(start, tmp_path, entries):
    process = start("torch.ones(2, device='tpu')", tmp_path / "cache", TORCH_TPU_CACHE_ENTRIES=entries)
    _, err = process.popen.communicate(timeout=120)
    assert process.popen.returncode == 1
    assert f"ValueError: TORCH_TPU_CACHE_ENTRIES={entries}" in err


def test_numbers_cost_no_program_and_no_memory(run, tmp_path):
    report = run(
        GROWTH
        + """
x = torch.ones(8, 8).to("tpu")
for i in range(2000): x * (i + 0.5)
torch.tpu.synchronize()
before, programs = resident(), torch.tpu.cache_stats()["memory_misses"]
for i in range(20000): y = x * (i + 0.25)
torch.tpu.synchronize()
report(growth=resident() - before, programs=torch.tpu.cache_stats()["memory_misses"] - programs, last=y[0, 0].item())
""",
        tmp_path / "cache",
    ).report
    assert report["last"] == 19999.25
    assert report["programs"] == 0
    assert report["growth"] < 8


def test_shapes_cost_no_memory_beyond_the_bound(run, tmp_path):
    report = run(
        GROWTH
        + """
def use(shapes):
    for n in shapes: torch.ones(n).to("tpu").exp()
    torch.tpu.synchronize()
    return resident()
before = use(range(1, 60))
report(growth=use(range(60, 360)) - before)
""",
        tmp_path / "cache",
        TORCH_TPU_CACHE_ENTRIES="16",
    ).report
    assert report["growth"] < 8
