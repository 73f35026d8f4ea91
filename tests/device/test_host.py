"""Between the device and host memory: what is refused, pinned memory, copies whose source is reused at once."""

import multiprocessing

import numpy as np
import pytest
import torch


def test_numpy_is_refused_as_on_other_devices():
    x = torch.ones(2, device="tpu")
    with pytest.raises(TypeError, match=r"can't convert tpu:0 device type tensor to numpy.*cpu\(\)"):
        x.numpy()
    with pytest.raises(TypeError, match="can't convert tpu:0 device type tensor to numpy"):
        x.__array__()
    assert x.numpy(force=True).tolist() == [1, 1]


def test_dlpack_is_refused():
    x = torch.ones(2, device="tpu")
    for export in (torch.utils.dlpack.to_dlpack, torch.to_dlpack, torch.from_dlpack, np.from_dlpack):
        with pytest.raises(BufferError, match=r"DLPack.*tensor\.cpu\(\)"):
            export(x)
    assert np.from_dlpack(torch.ones(2)).tolist() == [1, 1]


def test_a_raw_address_is_refused():
    """A slice of a storage is a new storage at an address inside the first, which here leads nowhere."""
    part = torch.ones(4, device="tpu").untyped_storage()[4:12]
    with pytest.raises(RuntimeError, match="raw address"):
        torch.empty(0, device="tpu").set_(part).cpu()


def test_sharing_between_processes_is_refused():
    x = torch.ones(2, device="tpu")
    with pytest.raises(RuntimeError, match="cannot be shared between processes"):
        x.share_memory_()
    with pytest.raises(RuntimeError, match="cannot be shared between processes"):
        torch.nn.Linear(2, 2, device="tpu").share_memory()
    with pytest.raises(RuntimeError, match="cannot be shared between processes"):
        multiprocessing.reduction.ForkingPickler.dumps(x)
    assert torch.ones(2).share_memory_().is_shared()


def test_pinned_memory():
    x = torch.arange(6.0).pin_memory()
    assert x.is_pinned()
    assert x[2:].is_pinned()
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    assert not torch.arange(6.0).is_pinned()
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert torch.empty(0, pin_memory=True).numel() == 0
    with pytest.raises(RuntimeError, match=r"(?i)only dense CPU tensors can be pinned|cannot pin"):
        torch.ones(2, device="tpu").pin_memory()


def test_pinned_memory_is_counted():
    before = torch.tpu.host_memory_stats()["allocated_bytes.current"]
    x = torch.empty(1024, dtype=torch.uint8, pin_memory=True)
    assert torch.tpu.host_memory_stats()["allocated_bytes.current"] == before + 1024
    torch.tpu.reset_accumulated_host_memory_stats()
    assert torch.tpu.host_memory_stats()["allocations.allocated"] == 0
    del x
    assert torch.tpu.host_memory_stats()["allocated_bytes.current"] == before
    assert torch.tpu.host_memory_stats()["allocated_bytes.peak"] >= before + 1024
    torch.tpu.reset_peak_host_memory_stats()
    assert torch.tpu.host_memory_stats()["allocated_bytes.peak"] == before
    torch.accelerator.empty_host_cache()


@pytest.mark.parametrize("pinned", [False, True])
def test_the_source_of_a_copy_may_be_reused_at_once(pinned):
    source = torch.empty(1 << 18, pin_memory=pinned)
    copies = []
    for i in range(10):
        source.fill_(i)
        copies.append(source.to("tpu", non_blocking=True))
    source.fill_(-1)
    assert [(c.min().item(), c.max().item()) for c in copies] == [(float(i),) * 2 for i in range(10)]


def test_copies_to_the_host_are_complete_when_they_return():
    x = torch.ones(600, 600, device="tpu")
    for _ in range(3):
        x = x @ x / 600
    target = torch.empty(600, 600, pin_memory=True)
    target.copy_(x, non_blocking=True)
    torch.tpu.synchronize()
    assert torch.allclose(target, torch.ones(600, 600))
    assert x.to("cpu", non_blocking=True)[0, 0].item() == pytest.approx(1)


def test_a_loader_that_pins(run):
    assert (
        run(
            """
            from torch.utils.data import DataLoader
            loader = DataLoader(torch.arange(4.), batch_size=2, num_workers=1, pin_memory=True, timeout=60)
            batches = list(loader)
            assert all(b.is_pinned() for b in batches)
            print([b.to("tpu", non_blocking=True).tolist() for b in batches])
            """
        )
        == "[[0.0, 1.0], [2.0, 3.0]]"
    )


def test_a_file_descriptor_is_refused():
    storage = torch.ones(2, device="tpu").untyped_storage()
    with pytest.raises(RuntimeError, match="only available on CPU"):
        storage._share_fd_cpu_()
