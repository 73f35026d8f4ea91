"""Compiling for TPUs on a machine without one.

libtpu compiles for a topology, a slice of TPUs by name, and needs no hardware for it. It runs in child processes
(`Pool`), so that a crash of the compiler is a verdict about one module and not the end of the program.
"""

from torch_tpu.aot._pool import Pool, Verdict
from torch_tpu.aot._topology import GENERATIONS, check_topology

__all__ = ["GENERATIONS", "Pool", "Verdict", "check_topology"]
