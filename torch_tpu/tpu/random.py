"""Seeds and states of the devices' random generators. None of this starts the runtime."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torch_tpu import _C
from torch_tpu.tpu._utils import Device, index_of


def default_generators() -> tuple[torch.Generator, ...]:
    """The default generator of each device, in order."""
    return tuple(_C.default_generator(i) for i in range(_C.device_count()))


def _generator(device: Device) -> torch.Generator:
    return _C.default_generator(index_of(device))


def get_rng_state(device: Device = "tpu") -> torch.Tensor:
    """The state of a device's generator: 16 bytes, the seed and then how many numbers were drawn."""
    return _generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of all devices, in order."""
    return [g.get_state() for g in default_generators()]


def set_rng_state(new_state: torch.Tensor, device: Device = "tpu") -> None:
    """Sets what `get_rng_state` returned. RuntimeError for a tensor of another size, TypeError for another type."""
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of all devices, in order."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def _get_rng_state_offset(device: Device = "tpu") -> int:
    return _generator(device).get_offset()


def _set_rng_state_offset(offset: int, device: Device = "tpu") -> None:
    _generator(device).set_offset(offset)


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator."""
    _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds every device's generator with the same number."""
    for g in default_generators():
        g.manual_seed(int(seed))


def seed() -> None:
    """Seeds the current device's generator with a random number."""
    _generator(None).seed()


def seed_all() -> None:
    """Seeds every device's generator with one random number."""
    generators = default_generators()
    if generators:
        manual_seed_all(generators[0].seed())


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return _generator(None).initial_seed()
