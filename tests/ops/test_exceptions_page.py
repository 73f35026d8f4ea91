"""docs/operator-exceptions.md: its lines name what exists, and few enough entries are on it."""

from __future__ import annotations

import torch
from sweep import exceptions, modules, optimizers, samples

ENTRIES = {*samples.OPS, *modules.MODULES, *optimizers.OPTIMIZERS}
# PyTorch's op_db, without the foreach operators.
OPERATORS = [name for name in samples.OPS if samples.family(name) != "foreach"]


def failing(name: str, dtype: torch.dtype, *checks: str) -> bool:
    known = exceptions.expected_failures(name, str(dtype).removeprefix("torch."))
    return any(check in known for check in checks)


def test_lines_name_what_exists() -> None:
    dtypes = {str(dtype).removeprefix("torch.") for dtype in samples.DTYPES} | {exceptions.ALL}
    failures, on_host = exceptions.tables()
    for line in [*failures, *on_host]:
        assert set(line.entries) <= ENTRIES, line.entries
        assert set(line.dtypes) <= dtypes, line.dtypes
        assert line.what, line.entries
        assert line.reason, line.entries
    for line in failures:
        assert set(line.what) <= set(exceptions.CHECKS), line.what


def test_690_of_702_operators_give_the_results_of_the_cpu() -> None:
    assert len(OPERATORS) >= 702
    passing = [n for n in OPERATORS if not failing(n, samples.first_dtype(samples.OPS[n]), "forward")]
    assert len(passing) >= len(OPERATORS) - 12


def test_97_percent_of_operators_and_dtypes_do() -> None:
    pairs = [
        (name, dtype) for name, op in samples.OPS.items() for dtype in samples.DTYPES if samples.supported(op, dtype)
    ]
    assert sum(failing(*pair, *exceptions.CHECKS) for pair in pairs) <= 0.03 * len(pairs)


def test_97_percent_of_the_differentiable_ones_have_the_gradients_of_the_cpu() -> None:
    first = {name: samples.first_dtype(op) for name, op in samples.OPS.items()}
    names = [name for name, dtype in first.items() if samples.differentiable(samples.OPS[name], dtype)]
    assert sum(failing(name, first[name], "forward", "gradient") for name in names) <= 0.03 * len(names)
