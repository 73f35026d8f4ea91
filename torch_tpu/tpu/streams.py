"""Streams and events.

A device runs its work in one queue, in program order. Streams can be made, set and waited for as on other devices, and
everything that relies on their ordering is right; work on two of them does not overlap.
"""

from __future__ import annotations

from typing import Any

import torch

from torch_tpu.tpu._utils import Device, index_of


class Stream(torch.Stream):
    """A stream of a device (the current one when `device` is None). `priority` is accepted and has no effect."""

    def __new__(cls, device: Device = None, priority: int = 0, **ids: Any) -> Stream:
        if "stream_id" in ids:
            return super().__new__(cls, priority=priority, **ids)
        return super().__new__(cls, torch.device("tpu", index_of(device)), priority=priority)

    def __repr__(self) -> str:
        return f"torch.tpu.Stream(device={self.device}, stream_id={self.stream_id})"


class _EventType(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, torch.Event) and value.device.type == "tpu"


class Event(torch.Event, metaclass=_EventType):
    """A point in a device's work: record it, query it, wait for it, measure time between two of them.

    Makes a `torch.Event`, because `elapsed_time` takes no subclass of it. `blocking` makes no difference: waiting never
    spins. `interprocess` events do not exist.
    """

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> torch.Event:
        if interprocess:
            raise RuntimeError("tpu events cannot be shared between processes")
        return torch.Event("tpu", enable_timing=enable_timing, blocking=blocking)


class StreamContext:
    """Context manager that makes a stream this thread's current one; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self.before: torch.Stream | None = None
        self.device_before = -1

    def __enter__(self) -> None:
        if self.stream is not None:
            self.device_before = torch._C._accelerator_getDeviceIndex()
            self.before = current_stream(self.stream.device)
            torch._C._accelerator_setStream(self.stream)

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            torch._C._accelerator_setStream(self.before)
            torch._C._accelerator_setDeviceIndex(self.device_before)


def stream(stream: torch.Stream | None) -> StreamContext:
    """`with torch.tpu.stream(s):` runs the body on stream s."""
    return StreamContext(stream)


def current_stream(device: Device = None) -> Stream:
    """This thread's current stream on a device."""
    return _wrap(torch._C._accelerator_getStream(index_of(device)))


def default_stream(device: Device = None) -> Stream:
    """The stream a device uses unless another was set."""
    index = index_of(device)
    return Stream(stream_id=0, device_index=index, device_type=current_stream(index).device_type)


def set_stream(stream: torch.Stream | None) -> None:
    """Makes a stream this thread's current one, and its device the current device."""
    if stream is not None:
        torch._C._accelerator_setStream(stream)


def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
    set_stream(Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))


def is_current_stream_capturing() -> bool:
    """Whether work is being recorded for replay: never, since torch.compile captures programs here."""
    return False


def _wrap(s: torch.Stream) -> Stream:
    return Stream(stream_id=s.stream_id, device_index=s.device_index, device_type=s.device_type)
