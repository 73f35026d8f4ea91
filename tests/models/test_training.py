"""The five miniature models train on device "tpu" as they do on CPU torch, on the device alone."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

import torch_tpu  # noqa: F401  (registers the device where the entry point is not installed)

sys.path.insert(0, str(Path(__file__).parent))

from miniatures import MINIATURES, train

STEPS = 20

# Float32: the order of summation alone costs up to 4e-5 over these 20 steps. Under autocast a sum
# that rounds to the other of two neighbouring bfloat16 values moves by 4e-3 of itself; batches are large enough
# for the mean loss to move by at most 6e-4 between oneDNN's, ATen's and XLA's orders of summation.
TOLERANCE = {False: 1e-4, True: 1e-3}


def relative_difference(losses: Sequence[float], reference: Sequence[float]) -> float:
    """The largest relative difference of two loss curves; infinite where a loss is not a number."""
    differences = [abs(loss - other) / abs(other) for loss, other in zip(losses, reference, strict=True)]
    return max(math.inf if math.isnan(difference) else difference for difference in differences)


@pytest.mark.parametrize("autocast", [False, True], ids=["float32", "autocast"])
@pytest.mark.parametrize("name", MINIATURES)
def test_losses_match_cpu_torch_without_host_fallback(name: str, autocast: bool) -> None:
    reference = train(name, "cpu", STEPS, autocast)
    assert min(reference) < 0.99 * reference[0], "the reference does not learn, so it could not show an error"

    before = torch.tpu.cache_stats()["fallbacks"]
    losses = train(name, "tpu", STEPS, autocast)
    assert torch.tpu.cache_stats()["fallbacks"] == before

    assert relative_difference(losses, reference) <= TOLERANCE[autocast], (losses, reference)


@pytest.mark.parametrize("name", MINIATURES)
def test_autocast_changes_the_arithmetic(name: str) -> None:
    # The tolerance above would let a backend pass that ignores autocast: bfloat16 shows in the first loss.
    exact, rounded = train(name, "tpu", 1, autocast=False), train(name, "tpu", 1, autocast=True)
    assert 1e-6 < relative_difference(rounded, exact) < 1e-2


def test_moving_a_model_keeps_tied_weights() -> None:
    model = MINIATURES["gpt"]("test").model
    optimizer = torch.optim.AdamW(model.parameters())
    weight = model.tokens.weight
    model.to("tpu")
    assert weight.device.type == "tpu"
    assert model.head.weight is weight
    assert model.tokens.weight is weight
    assert any(parameter is weight for parameter in optimizer.param_groups[0]["params"])


def test_relative_difference_sees_errors() -> None:
    reference = [2.0, 1.0, 0.5]
    assert relative_difference(reference, reference) == 0
    assert relative_difference([2.0, 1.0, 0.505], reference) == pytest.approx(0.01)
    assert relative_difference([2.0, math.nan, 0.5], reference) == math.inf
    with pytest.raises(ValueError, match="longer"):
        relative_difference([2.0], reference)
