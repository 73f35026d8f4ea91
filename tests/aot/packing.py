"""Many modules as one, because libtpu takes 50 ms for a module and 5 ms for one more function in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from torch_tpu.aot import Pool, Verdict

_MODULE = re.compile(
    r"module @program \{\nfunc\.func public @main\((?P<arguments>[^\n]*)\) -> \((?P<results>[^\n]*)\) \{\n"
    r"(?P<body>.*)\}\n\}\n",
    re.DOTALL,
)
_ALIAS = re.compile(r" \{tf\.aliasing_output = \d+ : i32\}")


def pack(modules: Sequence[str]) -> str:
    """One module that computes what all of these do, each from arguments of its own."""
    functions, arguments, calls, names, kinds = [], [], [], [], []
    for i, module in enumerate(modules):
        match = _MODULE.fullmatch(module)
        assert match, module
        taken = _ALIAS.sub("", match["arguments"])
        functions.append(f"func.func private @f{i}({taken}) -> ({match['results']}) {{\n{match['body']}}}\n")
        types = [a.split(": ", 1)[1] for a in taken.split(", %")] if taken else []
        mine = [f"%a{i}_{k}" for k in range(len(types))]
        arguments += [f"{name}: {kind}" for name, kind in zip(mine, types, strict=True)]
        results = _split(match["results"])
        calls.append(
            f'  %r{i}:{len(results)} = "func.call"({", ".join(mine)}) {{callee = @f{i}}} : '
            f"({', '.join(types)}) -> ({match['results']})\n"
        )
        names += [f"%r{i}#{k}" for k in range(len(results))]
        kinds += results
    return (
        f"module @packed {{\n{''.join(functions)}func.func public @main({', '.join(arguments)}) -> "
        f'({", ".join(kinds)}) {{\n{"".join(calls)}  "func.return"({", ".join(names)}) : ({", ".join(kinds)}) -> ()\n'
        "}\n}\n"
    )


def _split(types: str) -> list[str]:
    return re.findall(r"tensor<(?:[^<>]|<[^<>]*>)*>", types)


def compile_all(pool: Pool, modules: Sequence[str], topology: str, size: int) -> Callable[[], list[Verdict]]:
    """Starts compiling the modules, `size` in one; the result waits, and gives each module's own verdict.

    A pack that is not accepted is halved until the modules to blame are alone.
    """
    packs = [list(modules[i : i + size]) for i in range(0, len(modules), size)]
    futures = [_submit(pool, p, topology) for p in packs]

    def settle(pack: list[str], future: Future[Verdict]) -> list[Verdict]:
        verdict = future.result()
        if verdict.ok or len(pack) == 1:
            return [verdict] * len(pack)
        halves = [pack[: len(pack) // 2], pack[len(pack) // 2 :]]
        started = [_submit(pool, half, topology) for half in halves]
        return [v for half, future in zip(halves, started, strict=True) for v in settle(half, future)]

    return lambda: [v for p, f in zip(packs, futures, strict=True) for v in settle(p, f)]


def _submit(pool: Pool, modules: list[str], topology: str) -> Future[Verdict]:
    return pool.submit(modules[0] if len(modules) == 1 else pack(modules), topology)
