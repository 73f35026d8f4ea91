"""Names of topologies, and the lack of libtpu: what needs no compiler."""

from __future__ import annotations

import pytest

from torch_tpu import _platform, aot


@pytest.mark.parametrize("name", [*aot.GENERATIONS.values(), "v6e:1x1x1", "v5e:16x16"])
def test_a_topology(name):
    aot.check_topology(name)


@pytest.mark.parametrize("name", ["v6e", "v6:2x2", "v99:1x1x1", "v6e:0x1", "v6e-4", "V6E:2x2", ""])
def test_an_unknown_topology(name):
    with pytest.raises(ValueError, match=r"unknown topology.*v5e:2x2.*tpu7x:2x2x1"):
        aot.check_topology(name)


def test_libtpu_is_missing(monkeypatch):
    monkeypatch.setattr(_platform, "libtpu_path", lambda: None)
    with pytest.raises(ImportError, match=r"pip install 'torchtpu\[tpu\]'"):
        aot.Pool()
