"""A quiet end of the process."""

from __future__ import annotations

import atexit
import time
from pathlib import Path

WAIT = 1.0  # seconds at most
PAUSE = 0.001


def install() -> None:
    """Lets the threads of the last backward pass come to rest before the interpreter ends.

    `backward()` returns a moment before the autograd thread of a device has let go of the Python objects of the pass.
    When the interpreter ends in between, that thread is refused the interpreter's lock and takes the process down.
    """
    atexit.register(settle)


def settle() -> None:
    """Waits until no autograd thread runs. One that waits for the interpreter's lock gets it meanwhile."""
    deadline = time.monotonic() + WAIT
    time.sleep(PAUSE)
    while _running() and time.monotonic() < deadline:
        time.sleep(PAUSE)


def _running() -> bool:
    """Whether a thread named pt_autograd_* of this process is on a processor or wants to be."""
    for stat in Path("/proc/self/task").glob("*/stat"):
        try:
            # "id (name) state ..."; a name may hold spaces and brackets
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:  # the thread has ended
            continue
        if name.startswith("pt_autograd_") and rest.split()[0] == "R":
            return True
    return False
