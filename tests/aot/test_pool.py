"""torch_tpu.aot.Pool: verdicts about modules, whatever becomes of the compiler."""

from __future__ import annotations

import os
import signal
import time

import pytest

from torch_tpu import _platform, aot

pytestmark = pytest.mark.skipif(_platform.libtpu_path() is None, reason="libtpu is not installed")

V = "tensor<1024xf32>"


def module(body: str, result: str = V) -> str:
    """A program of one vector, whose result the body calls %0."""
    end = f'"func.return"(%0) : ({result}) -> ()'
    return f"module @m {{ func.func public @main(%arg0: {V}) -> {result} {{ {body} {end} }} }}"


DOUBLE = module(f'%0 = "stablehlo.add"(%arg0, %arg0) : ({V}, {V}) -> {V}')
UNKNOWN_TARGET = module(f'%0 = "stablehlo.custom_call"(%arg0) {{call_target_name = "no_such_target"}} : ({V}) -> {V}')
FOUR_TERABYTES = "tensor<1024x1024x1048576xf32>"
TOO_LARGE = module(
    f'%0 = "stablehlo.broadcast_in_dim"(%arg0) {{broadcast_dimensions = array<i64: 0>}} : ({V}) -> {FOUR_TERABYTES}',
    FOUR_TERABYTES,
)


def slow(count: int = 400) -> str:
    """Keeps the compiler busy for seconds: exponentials of as many shapes, none of which it can join."""
    types = [f"tensor<{n + 1}x7xf32>" for n in range(count)]
    arguments = ", ".join(f"%arg{i}: {t}" for i, t in enumerate(types))
    body = " ".join(f'%{i} = "stablehlo.exponential"(%arg{i}) : ({t}) -> {t}' for i, t in enumerate(types))
    names, results = ", ".join(f"%{i}" for i in range(count)), ", ".join(types)
    end = f'"func.return"({names}) : ({results}) -> ()'
    return f"module @m {{ func.func public @main({arguments}) -> ({results}) {{ {body} {end} }} }}"


@pytest.fixture(scope="module")
def pool():
    with aot.Pool(workers=1) as pool:
        yield pool


def test_a_program_and_what_it_costs(pool):
    verdict = pool.submit(DOUBLE, "v6e:1x1x1").result()
    assert verdict.ok
    assert verdict.text == ""
    assert verdict.stats["arguments"] == verdict.stats["outputs"] == 4096
    assert verdict.stats["code"] > 0
    assert verdict.cost["flops"] == 1024
    assert verdict.cost["bytes accessed"] == 3 * 4096
    assert verdict.executable_bytes > 0
    assert 0 < verdict.seconds < 60


@pytest.mark.parametrize("generation", aot.GENERATIONS)
def test_every_generation(pool, generation):
    assert pool.submit(DOUBLE, aot.GENERATIONS[generation]).result().ok


def test_the_compiler_refuses(pool):
    verdict = pool.submit(UNKNOWN_TARGET, "v6e:1x1x1").result()
    assert verdict.outcome == "refused"
    assert "no_such_target" in verdict.text
    assert pool.submit("no module", "v6e:1x1x1").result().outcome == "refused"
    assert pool.submit(DOUBLE, "v6e:1x1x1").result().ok


def test_a_program_that_does_not_fit_the_device(pool):
    verdict = pool.submit(TOO_LARGE, "v5e:1x1x1").result()
    assert verdict.outcome == "too large"
    assert "memory" in verdict.text


@pytest.mark.parametrize(("number", "outcome"), [(signal.SIGSEGV, "crashed"), (signal.SIGKILL, "out of memory")])
def test_the_compilers_process_dies(pool, number, outcome):
    assert pool.submit(DOUBLE, "v6e:1x1x1").result().ok  # so that there is a child
    (pid,) = pool.pids()
    verdict = pool.submit(slow(), "v6e:1x1x1")
    time.sleep(0.3)
    os.kill(pid, number)
    assert verdict.result().outcome == outcome
    assert number.name in verdict.result().text
    assert pool.submit(DOUBLE, "v6e:1x1x1").result().ok
    assert pool.pids() != [pid]


def test_what_the_dying_process_said_is_in_the_verdict():
    with aot.Pool(workers=1, memory=1 << 20) as pool:  # less than it has already
        verdict = pool.submit(slow(), "v6e:1x1x1").result()
    assert verdict.outcome == "out of memory", verdict.text
    assert "it said nothing" not in verdict.text


def test_a_compiler_that_takes_too_long():
    with aot.Pool(workers=1, timeout=0.2) as pool:
        verdict = pool.submit(slow(), "v6e:1x1x1").result()
        assert verdict.outcome == "timed out"
        assert "0.2 s" in verdict.text
        assert pool.pids() == []


def test_two_at_once_without_a_lock(tmp_path):
    with aot.Pool(workers=2) as pool:
        verdicts = [pool.submit(slow(50), name) for name in ("v5e:1x1x1", "v6e:1x1x1", "tpu7x:1x1x1", "v5p:1x1x1")]
        assert all(v.result().ok for v in verdicts)
        assert len(pool.pids()) == 2


def test_closing_ends_the_children():
    with aot.Pool(workers=1) as pool:
        pool.submit(DOUBLE, "v6e:1x1x1").result()
        (pid,) = pool.pids()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_slice_that_does_not_exist(pool):
    with pytest.raises(ValueError, match="unknown topology 'v99:1x1x1'"):
        pool.submit(DOUBLE, "v99:1x1x1")
    with pytest.raises(ValueError, match=r"unknown topology 'v6e:3x5x1' \(.*not divisible.*v6e:2x2"):
        pool.submit(DOUBLE, "v6e:3x5x1").result()
    assert pool.submit(DOUBLE, "v6e:1x1x1").result().ok


def test_a_libtpu_that_does_not_load(monkeypatch, tmp_path):
    broken = tmp_path / "libtpu.so"
    broken.write_text("not a library")
    monkeypatch.setattr(_platform, "libtpu_path", lambda: str(broken))
    with aot.Pool(workers=1) as pool:
        verdict = pool.submit(DOUBLE, "v6e:1x1x1").result()
    assert verdict.outcome == "crashed"
    assert "cannot load the PJRT plugin" in verdict.text
