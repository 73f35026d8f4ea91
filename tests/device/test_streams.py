"""Streams and events: bookkeeping that other libraries rely on, and times that mean something."""

import pytest
import torch


def test_streams_have_ids_of_their_own():
    default = torch.tpu.default_stream()
    a, b = torch.tpu.Stream(), torch.tpu.Stream(device="tpu:0", priority=-1)
    assert default == torch.tpu.current_stream()
    assert len({default.stream_id, a.stream_id, b.stream_id}) == 3
    assert a.device == torch.device("tpu:0")
    assert isinstance(a, torch.Stream)


def test_the_current_stream_can_be_changed():
    s, default = torch.tpu.Stream(), torch.tpu.default_stream()
    with torch.tpu.stream(s):
        assert torch.tpu.current_stream() == s
        assert torch.accelerator.current_stream() == s
        with torch.tpu.stream(None):
            assert torch.tpu.current_stream() == s
    assert torch.tpu.current_stream() == default
    with s:
        assert torch.tpu.current_stream() == s
    torch.tpu.set_stream(s)
    assert torch.accelerator.current_stream() == s
    torch.tpu.set_stream(default)
    assert torch.tpu.current_stream() == default


def test_work_on_one_stream_is_seen_on_another():
    side = torch.tpu.Stream()
    x = torch.ones(256, 256, device="tpu")
    with torch.tpu.stream(side):
        y = x @ x
    done = side.record_event()
    torch.tpu.current_stream().wait_event(done)
    torch.tpu.current_stream().wait_stream(side)
    y.record_stream(torch.tpu.current_stream())
    assert (y + 1)[0, 0].item() == 257
    side.synchronize()
    assert side.query()


def test_backward_under_a_stream():
    w = torch.ones(4, device="tpu", requires_grad=True)
    with torch.tpu.stream(torch.tpu.Stream()):
        (w * 3).sum().backward()
    assert w.grad.tolist() == [3.0] * 4


def test_events_in_order():
    start, end = (torch.tpu.Event(enable_timing=True) for _ in range(2))
    assert isinstance(start, torch.tpu.Event)
    assert not isinstance(torch.Event("cpu"), torch.tpu.Event)
    x = torch.ones(512, 512, device="tpu")
    start.record()
    for _ in range(10):
        x = (x @ x).clamp(max=1)
    end.record()
    end.synchronize()
    assert start.query()
    assert end.query()
    elapsed = start.elapsed_time(end)
    assert 0 < elapsed < 60_000
    assert end.elapsed_time(start) == pytest.approx(-elapsed)


def test_an_event_waits_for_the_work_before_it():
    """An event that is done means that the result is there."""
    x = torch.ones(700, 700, device="tpu")
    y = x @ x
    for _ in range(5):
        y = (y @ x) / 700
    event = torch.Event("tpu")
    event.record()
    event.synchronize()
    assert event.query()
    assert torch.tpu.current_stream().query()
    assert y[0, 0].item() == pytest.approx(700)


def test_times_need_two_recorded_events_with_timing():
    timed, plain = torch.tpu.Event(enable_timing=True), torch.tpu.Event()
    timed.record(), plain.record()
    torch.tpu.synchronize()
    with pytest.raises((RuntimeError, ValueError), match="must be recorded"):
        timed.elapsed_time(torch.tpu.Event(enable_timing=True))
    with pytest.raises((RuntimeError, ValueError), match="enable_timing"):
        timed.elapsed_time(plain)


def test_an_unrecorded_event_is_done():
    event = torch.tpu.Event()
    assert event.query()
    event.synchronize()
    event.wait()


def test_an_event_holds_no_memory():
    torch.tpu.synchronize()
    before = torch.tpu.memory_allocated()
    x = torch.ones(1000, 1000, device="tpu") * 2
    event = torch.tpu.Event()
    event.record()
    del x
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() <= before + 1024
    event.synchronize()
    assert event.query()


def test_no_events_between_processes():
    with pytest.raises(RuntimeError, match="between processes"):
        torch.tpu.Event(interprocess=True)
    assert not torch.tpu.is_current_stream_capturing()


def test_synchronize_reports_bad_indices():
    x = torch.ones(3, device="tpu")
    y = x[torch.tensor([0, 7], device="tpu")]
    with pytest.raises(IndexError, match=r"index 7 is out of bounds for dimension 0 with size 3"):
        torch.tpu.synchronize()
    torch.tpu.synchronize()  # told once
    assert y.shape == (2,)
