"""Which device is current, and what happens with devices that do not exist."""

import threading

import pytest
import torch


def test_device_exists():
    assert torch.tpu.is_available()
    assert torch.tpu.device_count() >= 1
    assert torch.accelerator.current_accelerator().type == "tpu"
    assert torch.get_device_module("tpu") is torch.tpu
    assert torch.device("tpu").type == "tpu"


def test_tensor_and_module_methods():
    x = torch.ones(2, 3)
    y = x.tpu()
    assert y.is_tpu
    assert not x.is_tpu
    assert y.device == torch.device("tpu:0")
    assert torch.nn.Linear(2, 2).tpu().weight.is_tpu
    assert y.untyped_storage().is_tpu


@pytest.mark.parametrize("index", [99, 127])
def test_a_device_that_does_not_exist(index):
    with pytest.raises(RuntimeError, match=f"tpu:{index} does not exist"):
        torch.tpu.set_device(index)
    with pytest.raises(RuntimeError, match=f"tpu:{index} does not exist"):
        torch.ones(2, device=f"tpu:{index}")
    with pytest.raises(RuntimeError, match=f"tpu:{index} does not exist"):
        torch.ones(2).to(f"tpu:{index}")
    with pytest.raises(RuntimeError, match=f"tpu:{index} does not exist"):
        torch.tpu.get_device_properties(index)
    assert torch.tpu.current_device() == 0


def test_a_device_of_another_kind():
    with pytest.raises(ValueError, match="Expected a tpu device"):
        torch.tpu.set_device("cpu")
    with pytest.raises(ValueError, match="Expected a tpu device"):
        torch.tpu.memory_allocated(torch.device("cpu"))


def test_properties():
    p = torch.tpu.get_device_properties()
    assert p.name == torch.tpu.get_device_name("tpu:0")
    assert p.platform == torch.tpu.platform()
    assert p.total_memory > 2**28
    assert p.multi_processor_count >= 1
    assert torch.float32 in torch.tpu.supported_dtypes()
    assert torch.quint8 not in torch.tpu.supported_dtypes()
    assert torch.bfloat16 in torch.accelerator.get_device_capability()["supported_dtypes"]


def test_set_default_device():
    torch.set_default_device("tpu")
    try:
        assert torch.ones(2).is_tpu
        assert torch.nn.Linear(2, 2).bias.is_tpu
        assert torch.tensor([1.0]).is_tpu
    finally:
        torch.set_default_device(None)
    with torch.device("tpu"):
        assert torch.zeros(3).is_tpu
    assert torch.zeros(3).is_cpu


def test_device_of_leaves_other_kinds_alone():
    with torch.tpu.device_of(torch.ones(1)):
        assert torch.tpu.current_device() == 0
    with torch.tpu.device(None):
        assert torch.tpu.current_device() == 0


MULTI = """
import threading
assert torch.tpu.device_count() == 2
assert torch.accelerator.device_count() == 2
"""


def test_current_device_is_a_threads_own(run):
    assert (
        run(
            MULTI
            + """
with torch.tpu.device(1):
    assert torch.tpu.current_device() == 1 == torch.accelerator.current_device_index()
    assert torch.ones(2, device="tpu").device.index == 1
    with torch.tpu.device("tpu:0"):
        assert torch.empty(2, device="tpu").device.index == 0
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.tpu.current_device()))
    thread.start(), thread.join()
    assert seen == [0], seen
assert torch.tpu.current_device() == 0
torch.tpu.set_device("tpu:1")
x = torch.arange(4, device="tpu")
with torch.tpu.device_of(torch.ones(1, device="tpu:0")):
    assert torch.tpu.current_device() == 0
    y = x * 2  # runs where its operand is
assert y.device.index == 1 and y.tolist() == [0, 2, 4, 6]
torch.accelerator.set_device_index(0)
assert torch.tpu.current_device() == 0
print("done")
""",
            TORCH_TPU_CPU_DEVICES="2",
            TORCH_TPU_PLATFORM="cpu",
        )
        == "done"
    )


def test_copies_between_devices(run):
    assert (
        run(
            MULTI
            + """
x = torch.arange(12, dtype=torch.float32, device="tpu:0").reshape(3, 4)
y = x.to("tpu:1")
assert y.device.index == 1 and y.tolist() == x.tolist()
y += 1
assert x.tolist() == torch.arange(12.).reshape(3, 4).tolist()
z = torch.empty(4, 3, device="tpu:1")
z.copy_(x.t())
assert z.tolist() == x.t().tolist()
x.copy_(y)
assert x.tolist() == y.tolist()
assert x.cpu().to("tpu:1", torch.bfloat16).dtype == torch.bfloat16
try:
    x + y
except RuntimeError as error:
    assert "tpu:0" in str(error) and "tpu:1" in str(error), error
else:
    raise AssertionError("an operator took operands on two devices")
model = torch.nn.Linear(4, 2).to("tpu:1")
model(y).sum().backward()
assert model.weight.grad.device.index == 1
assert torch.tpu.can_device_access_peer(0, 1) and not torch.tpu.can_device_access_peer(1, 1)
print("done")
""",
            TORCH_TPU_CPU_DEVICES="2",
            TORCH_TPU_PLATFORM="cpu",
        )
        == "done"
    )


def test_threads_share_a_device():
    results: list[list[float]] = []

    def work(k: int) -> None:
        x = torch.full((4,), float(k), device="tpu")
        for _ in range(10):
            x = x + 1
        results.append(x.tolist())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == [[k + 10.0] * 4 for k in range(4)]
