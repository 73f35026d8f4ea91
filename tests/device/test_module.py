"""The names in torch.tpu against those of the other device modules, and against what the documentation says."""

import inspect
import re
from pathlib import Path

import pytest
import torch

DOCUMENT = Path(__file__).parents[2] / "docs" / "device-module.md"
OTHERS = set(torch.cuda.__all__) | set(torch.xpu.__all__)


def documented(section: str) -> set[str]:
    body = DOCUMENT.read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in body.splitlines() if line.startswith("| `")]
    return {name for cell in rows for name in re.findall(r"`(\w+)`", cell)}


def test_what_is_left_out_is_documented():
    assert documented("Left out") == OTHERS - set(torch.tpu.__all__)


def test_what_is_added_is_documented():
    assert documented("Added") == set(torch.tpu.__all__) - OTHERS


def test_every_name_exists_and_is_explained():
    for name in torch.tpu.__all__:
        value = getattr(torch.tpu, name)
        assert inspect.ismodule(value) or isinstance(value, tuple) or value.__doc__, name


def test_functions_take_the_arguments_of_torch_cuda():
    for name in sorted(set(torch.tpu.__all__) & set(torch.cuda.__all__)):
        theirs, ours = getattr(torch.cuda, name), getattr(torch.tpu, name)
        if not inspect.isfunction(theirs) or not inspect.isfunction(ours):
            continue
        wanted = list(inspect.signature(theirs).parameters)
        assert list(inspect.signature(ours).parameters)[: len(wanted)] == wanted, name


# Transformers, vLLM, SGLang, Diffusers and PyTorch itself look these up.
ASKED_FOR = """
    is_available is_initialized _lazy_init _is_in_bad_fork _initialized device_count current_device set_device device
    manual_seed manual_seed_all get_rng_state set_rng_state default_generators initial_seed synchronize empty_cache
    mem_get_info memory_allocated max_memory_allocated reset_peak_memory_stats get_device_properties get_device_name
    get_amp_supported_dtype Stream Event StreamContext stream set_stream current_stream default_stream _lazy_call
    _exchange_device _maybe_exchange_device _set_stream_by_id _utils amp memory random
"""


@pytest.mark.parametrize("name", ASKED_FOR.split())
def test_names_that_libraries_ask_for(name):
    assert hasattr(torch.tpu, name)


def test_a_name_that_does_not_exist():
    with pytest.raises(AttributeError, match=r"module 'torch\.tpu' has no attribute 'nvtx'"):
        torch.tpu.nvtx  # noqa: B018
    assert not hasattr(torch.tpu, "get_device_capability")
