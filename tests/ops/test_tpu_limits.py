"""What a lowering for a TPU does where the TPU compiler cannot do what XLA's CPU compiler can."""

from __future__ import annotations

import pytest
import torch

from torch_tpu import _C


def test_integer_products_are_no_dots():
    x = torch.ones(2, 3, 4, dtype=torch.int64, device="tpu")
    y = torch.ones(2, 4, 5, dtype=torch.int64, device="tpu")
    with _C.Recording("tpu") as recording:
        assert torch.bmm(x, y).shape == (2, 3, 5)
        torch.mv(x[0], y[0, :, 0])
    assert [r.operators for r in recording.modules] == [["bmm"], ["mv"]]
    assert all("stablehlo.multiply" in r.module and "dot_general" not in r.module for r in recording.modules)


def test_a_convolution_of_wide_integers_says_so():
    x = torch.ones(1, 2, 5, dtype=torch.int64, device="tpu")
    w = torch.ones(3, 2, 3, dtype=torch.int64, device="tpu")
    recording = _C.Recording("tpu")
    with recording, pytest.raises(NotImplementedError, match="no convolution of 64-bit integers"):
        torch.conv1d(x, w)
    (made,) = recording.modules
    assert made.module == ""
    assert "64-bit integers" in made.error


def test_results_of_a_recording_are_zeros_and_the_device_computes_after_it():
    x = torch.ones(3, device="tpu")
    with _C.Recording("tpu") as recording:
        assert (x + 1).tolist() == [0, 0, 0]
    assert recording.modules[0].inputs == [torch.float32]
    assert recording.modules[0].results == [torch.float32]
    assert (x + 1).tolist() == [2, 2, 2]


def test_a_recording_of_an_unknown_platform():
    with pytest.raises(ValueError, match="tpu or cpu"):
        _C.Recording("gpu")
