"""Every entry of the operator table is compiled by the TPU compiler, without a TPU."""

from __future__ import annotations

import json

import operators
import pytest
from samples import Sweep

from torch_tpu import _C, _platform, cli


def stored() -> dict:
    return json.loads(operators.DATA.read_text())["operators"]


@pytest.mark.slow
@pytest.mark.skipif(_platform.libtpu_path() is None, reason="libtpu is not installed")
def test_the_verdicts_are_what_the_compiler_says():
    found = operators.verdicts(Sweep(operators.DTYPES).run())
    expected = stored()
    wrong = {name: (row, expected.get(name)) for name, row in found.items() if row != expected.get(name)}
    assert not wrong, "run make operators"


def test_the_verdicts_are_of_the_entries_there_are():
    assert sorted(stored()) == sorted(_C.table()), "run make operators"


def test_the_page_is_in_step():
    assert operators.PAGE.read_text() == cli.operators_page(), "run make operators"
