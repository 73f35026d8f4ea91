"""Processes that compile modules for TPU topologies, and what became of each module."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Pipe
from typing import Literal

from torch_tpu import _platform
from torch_tpu.aot import _worker
from torch_tpu.aot._topology import check_topology, unknown_topology

Outcome = Literal["compiled", "refused", "too large", "crashed", "timed out", "out of memory"]

START_SECONDS = 300.0  # until a child has imported torch and loaded libtpu on a busy machine
TAIL = 2000  # characters of a crashed child's stderr that are kept
# What an allocator says before it aborts.
_OUT_OF_MEMORY = ("bad_alloc", "out of memory", "Out of memory", "unable to allocate", "Unable to allocate")


@dataclass(frozen=True)
class Verdict:
    """What the compiler made of a module.

    `outcome` is "compiled"; "refused", with the compiler's text; "too large", when the program does not fit the
    device's memory; or what happened to the compiler's process: "crashed", "timed out", "out of memory" (the host's).
    """

    outcome: Outcome
    text: str = ""
    seconds: float = 0.0
    stats: dict[str, int] | None = None
    cost: dict[str, float] = field(default_factory=dict)
    executable_bytes: int = 0

    @property
    def ok(self) -> bool:
        return self.outcome == "compiled"


class Pool:
    """Up to `workers` child processes that compile. They start with the first modules and end with the pool.

    `timeout` is in seconds a module, `memory` in bytes a child (its heap). ImportError when libtpu is not installed.
    """

    def __init__(self, workers: int = 2, timeout: float = 3600.0, memory: int | None = None) -> None:
        library = _platform.libtpu_path()
        if library is None:
            raise ImportError(
                "compiling for a TPU needs libtpu, which is not installed (nor named by TPU_LIBRARY_PATH): "
                "pip install 'torchtpu[tpu]'"
            )
        self._plugin, self._timeout, self._memory = library, timeout, memory or 0
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="torch_tpu-aot")
        self._idle: queue.LifoQueue[_Child] = queue.LifoQueue()
        self._children: set[_Child] = set()
        self._lock = threading.Lock()

    def submit(self, module: str, topology: str) -> Future[Verdict]:
        """Compiles the text of a StableHLO module for one device of `topology`, e.g. "v6e:1x1x1".

        ValueError for a topology that does not exist: at once, or from the future when only libtpu can tell.
        """
        check_topology(topology)
        return self._threads.submit(self._compile, module, topology)

    def pids(self) -> list[int]:
        """The child processes that are alive."""
        with self._lock:
            return [child.pid for child in self._children if child.alive]

    def close(self) -> None:
        """Drops what has not begun and ends the children."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            children, self._children = self._children, set()
        for child in children:
            child.end()
        self._threads.shutdown()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _compile(self, module: str, topology: str) -> Verdict:
        with self._child() as child:
            kind, *rest = child.ask(module, topology, self._timeout)
        if kind == "topology":
            raise unknown_topology(topology, rest[0])
        if kind == "refused":
            return Verdict("too large" if rest[0] == "OutOfMemoryError" else "refused", rest[1])
        if kind == "compiled":
            return Verdict("compiled", "", *rest)
        return Verdict(kind, *rest)

    @contextlib.contextmanager
    def _child(self) -> Iterator[_Child]:
        """An idle child, or a new one; it is idle again afterwards unless it has ended."""
        try:
            child = self._idle.get_nowait()
        except queue.Empty:
            child = _Child(self._plugin, self._memory)
            with self._lock:
                self._children.add(child)
        try:
            yield child
        finally:
            if child.alive:
                self._idle.put(child)
            else:
                with self._lock:
                    self._children.discard(child)


class _Child:
    """One process that compiles, and the connection to it."""

    def __init__(self, plugin: str, memory: int) -> None:
        self._connection, theirs = Pipe()
        # A file, not a pipe: nobody reads while the child works.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (read when the child has ended)
        program = "from torch_tpu.aot._worker import main; main()"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program, str(theirs.fileno()), plugin, str(memory)],
                stdin=subprocess.DEVNULL,
                stdout=self._stderr,
                stderr=self._stderr,
                pass_fds=[theirs.fileno()],
                # Modules are found where this process finds them, whatever has changed its path.
                env=_worker.environment(os.environ) | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self._ready = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, module: str, topology: str, timeout: float) -> _worker.Reply:
        """The child's reply, or (outcome, text) when it gave none; then it has ended."""
        try:
            if not self._ready:
                if not self._connection.poll(START_SECONDS):
                    self.end()
                    return "timed out", f"the compiler's process did not start in {START_SECONDS:g} s"
                self._connection.recv()
                self._ready = True
            self._connection.send((module, topology))
            if not self._connection.poll(timeout):
                self.end()
                return "timed out", f"no answer in {timeout:g} s"
            reply: _worker.Reply = self._connection.recv()
            return reply
        except (EOFError, OSError):
            return self._died()

    def end(self) -> None:
        """Kills the process. Harmless twice."""
        self._process.kill()
        self._process.wait()
        self._connection.close()
        self._stderr.close()

    def _died(self) -> _worker.Reply:
        status = self._process.wait()
        said = ""
        if not self._stderr.closed:  # it is when the pool was closed meanwhile
            self._stderr.seek(0)
            said = self._stderr.read().decode(errors="replace")
        self.end()
        how = f"exit status {status}" if status >= 0 else signal.Signals(-status).name
        # Nobody but the kernel's out-of-memory killer sends this signal without a word.
        starved = status == -signal.SIGKILL or any(words in said for words in _OUT_OF_MEMORY)
        text = f"the compiler's process ended with {how}: {said[-TAIL:].strip() or 'it said nothing'}"
        return ("out of memory" if starved else "crashed"), text
