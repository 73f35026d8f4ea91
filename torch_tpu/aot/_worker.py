"""The child process that compiles: takes jobs from a connection and answers each; ends when the connection does."""

from __future__ import annotations

import functools
import resource
import sys
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

# Replies: ("ready",), ("compiled", seconds, stats, cost, bytes of the executable), ("refused", class, text),
# ("topology", text).
Reply = tuple[Any, ...]

COSTS = ("flops", "transcendentals", "bytes accessed", "optimal_seconds")


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: libtpu without a TPU, its metadata server, its lock and its log files."""
    return {
        "TPU_ACCELERATOR_TYPE": "v6e-4",  # it wants one; the topology decides
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_LOG_DIR": "disabled",
        **env,
        "TPU_SKIP_MDS_QUERY": "1",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "OMP_NUM_THREADS": "1",
    }


def main() -> None:
    """Serves jobs (module, topology). Arguments: the connection's descriptor, the path of libtpu, and the most bytes
    of heap to take, 0 for no bound."""
    descriptor, plugin, memory = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    # The kernel should end this process rather than the one that asked, which may hold a model.
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    from torch_tpu import _C

    topology = functools.cache(functools.partial(_C.Topology, plugin))
    topology("v6e:1x1x1")  # what fails here is the plugin's fault, not that of a name
    with Connection(descriptor) as parent:
        parent.send(("ready",))
        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        while True:
            try:
                module, name = parent.recv()
            except EOFError:
                return
            parent.send(_answer(topology, module, name))


def _answer(topology: Any, module: str, name: str) -> Reply:
    try:
        target = topology(name)
    except RuntimeError as error:
        return "topology", str(error)
    start = time.monotonic()
    try:
        program = target.compile(module)
    except Exception as error:
        return "refused", type(error).__name__, str(error)
    seconds = time.monotonic() - start
    cost = {k: v for k, v in program.cost().items() if k in COSTS}
    return "compiled", seconds, program.stats(), cost, len(program.serialize())
