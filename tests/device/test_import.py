"""What importing costs and does."""

import os
import subprocess
import sys

import pytest
import torch

import torch_tpu


def test_import_starts_nothing(run):
    assert run("print(torch.tpu.is_available(), torch.tpu.device_count() > 0, torch.tpu.is_initialized())") == (
        "True True False"
    )


@pytest.mark.parametrize("devices", ["", "1", "3"])
def test_the_number_of_devices_is_known_before_the_start(run, devices):
    program = "n = torch.tpu.device_count(); torch.tpu.init(); print(n, torch.tpu.device_count())"
    expected = devices or "1"
    assert run(program, TORCH_TPU_CPU_DEVICES=devices, TORCH_TPU_PLATFORM="cpu") == f"{expected} {expected}"


def test_without_autoload(run):
    assert run("print(torch.ones(2, device='tpu').sum().item())", TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "2.0"


def test_import_is_quick():
    program = (
        "import time, torch, numpy\nstart = time.process_time()\nimport torch_tpu\nprint(time.process_time() - start)"
    )
    times = []
    for _ in range(3):
        out = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
            capture_output=True,
            text=True,
            check=True,
        )
        times.append(float(out.stdout))
    assert min(times) < 0.15


def test_dynamo_is_not_imported(run):
    assert run("import sys; print('torch._dynamo' in sys.modules)") == "False"


def test_dynamo_finds_our_interface(run):
    assert (
        run(
            """
            import warnings
            warnings.simplefilter("ignore")
            import torch._dynamo.device_interface as di
            interface = di.get_interface_for_device("tpu")
            assert interface.__module__ == "torch_tpu._dynamo_interface", interface
            assert dict(di.get_registered_device_interfaces())["tpu"] is interface
            assert interface.device_count() == torch.tpu.device_count()
            assert interface.is_dtype_supported(torch.float64) and not interface.is_triton_capable()
            with interface.device(0):
                assert interface.current_device() == 0
            print("done")
            """
        )
        == "done"
    )


def test_registering_twice_is_harmless():
    torch_tpu.register()
    assert torch_tpu.active


def test_another_backend_in_the_place():
    program = """
import torch
torch.utils.rename_privateuse1_backend("other")
try:
    import torch_tpu
except RuntimeError as error:
    assert "'other'" in str(error), error
    print("refused")
"""
    out = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.strip() == "refused"


def test_cuda_keeps_its_place_until_asked():
    """On a machine with CUDA and no TPU, torch.accelerator stays CUDA unless the user wants this device."""
    program = """
import os, torch
torch.version.cuda = "13.0"
listdir = os.listdir
os.listdir = lambda path=".": [*listdir(path), "nvidia0"] if str(path) == "/dev" else listdir(path)
import torch_tpu
assert not torch_tpu.active and not hasattr(torch, "tpu")
assert torch._C._get_privateuse1_backend_name() == "privateuseone"
torch_tpu.register()
print(torch_tpu.active, torch.ones(2, device="tpu").sum().item())
"""
    environment = {k: v for k, v in os.environ.items() if k not in ("TORCH_TPU_PLATFORM", "CUDA_VISIBLE_DEVICES")}
    out = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.strip() == "True 2.0"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"TORCH_TPU_PLATFORM": "gpu"}, "TORCH_TPU_PLATFORM=gpu"),
        ({"TORCH_TPU_PJRT_PLUGIN": "/nowhere.so"}, "/nowhere.so"),
        ({"TORCH_TPU_CPU_DEVICES": "none"}, "TORCH_TPU_CPU_DEVICES=none"),
    ],
)
def test_a_choice_that_cannot_be_made_is_told_at_the_first_use(run, environment, message):
    program = """
try:
    torch.ones(2, device="tpu").cpu()
except (RuntimeError, ValueError) as error:
    print(error)
"""
    assert message in run(program, **environment)
    assert run("torch.tpu.manual_seed_all(1) if torch.tpu.device_count() else None; print('ok')", **environment) == "ok"


def test_cache_stats():
    x = torch.ones(3, 29, device="tpu")
    (x * 2 + 1).cpu()
    stats = torch.tpu.cache_stats()
    assert stats["compiles"] == torch.tpu.compiles()
    assert stats["memory_misses"] > 0
    misses = stats["memory_misses"]
    (x * 2 + 1).cpu()
    assert torch.tpu.cache_stats()["memory_misses"] == misses
    torch.tpu.cache_clear()
    (x * 2 + 1).cpu()
    assert torch.tpu.cache_stats()["memory_misses"] > misses
    assert stats["compile_seconds"] >= 0
    assert isinstance(stats["fallback_ops"], dict)
