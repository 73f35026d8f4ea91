"""Memory statistics: they follow what is alive."""

import gc

import pytest
import torch

MB = 1 << 20


@pytest.fixture(autouse=True)
def _quiet():
    gc.collect()
    torch.tpu.synchronize()
    torch.tpu.reset_peak_memory_stats()


def test_bytes_follow_tensors():
    before = torch.tpu.memory_allocated()
    x = torch.ones(MB, dtype=torch.float32, device="tpu")
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() - before == 4 * MB
    assert torch.tpu.memory_reserved() == torch.tpu.memory_allocated()
    y = x[: MB // 2]  # a view costs nothing
    assert torch.tpu.memory_allocated() - before == 4 * MB
    del x
    assert torch.tpu.memory_allocated() - before == 4 * MB
    del y
    assert torch.tpu.memory_allocated() == before


def test_allocation_is_lazy():
    before = torch.tpu.memory_allocated()
    x = torch.empty(1 << 40, dtype=torch.uint8, device="tpu")  # a terabyte nobody writes
    assert x.numel() == 1 << 40
    assert torch.tpu.memory_allocated() == before


def test_in_place_writes_take_no_more_memory():
    x = torch.ones(MB, device="tpu")
    torch.tpu.synchronize()
    before = torch.tpu.memory_allocated()
    for _ in range(5):
        x.add_(1)
    torch.tpu.synchronize()
    assert torch.tpu.memory_allocated() == before
    assert x[0].item() == 6


def test_peak():
    before = torch.tpu.memory_allocated()
    x = torch.ones(MB, device="tpu")
    torch.tpu.synchronize()
    del x
    assert torch.tpu.max_memory_allocated() - before >= 4 * MB
    assert torch.tpu.max_memory_reserved() == torch.tpu.max_memory_allocated()
    torch.tpu.reset_peak_memory_stats()
    assert torch.tpu.max_memory_allocated() == torch.tpu.memory_allocated() == before


def test_statistics_by_pytorchs_names():
    torch.tpu.reset_accumulated_memory_stats()
    x = torch.ones(MB, device="tpu")
    torch.tpu.synchronize()
    stats = torch.tpu.memory_stats()
    assert stats == torch.accelerator.memory_stats()
    assert stats["allocated_bytes.all.current"] == torch.tpu.memory_allocated() == torch.accelerator.memory_allocated()
    assert stats["allocated_bytes.all.peak"] == torch.accelerator.max_memory_allocated()
    assert stats["allocated_bytes.all.allocated"] >= 4 * MB
    assert stats["allocation.all.allocated"] >= 1
    count = stats["allocation.all.current"]
    del x
    after = torch.tpu.memory_stats()
    assert after["allocation.all.current"] == count - 1
    assert after["allocated_bytes.all.freed"] >= 4 * MB
    torch.tpu.reset_accumulated_memory_stats()
    assert torch.tpu.memory_stats()["allocated_bytes.all.allocated"] == 0
    assert torch.tpu.memory_stats()["allocation.all.current"] == count - 1
    assert torch.tpu.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["allocated"] == 0


def test_empty_tensors_are_counted_evenly():
    before = torch.tpu.memory_stats()["allocation.all.current"]
    x = torch.zeros(0, 3, device="tpu") + 1
    del x
    torch.tpu.synchronize()
    assert torch.tpu.memory_stats()["allocation.all.current"] <= before + 1  # the scalar may be kept


def test_free_and_total():
    free, total = torch.tpu.mem_get_info()
    assert 0 < free <= total
    assert torch.accelerator.get_memory_info()[1] == total
    assert torch.tpu.device_memory_used() <= total
    assert torch.tpu.get_device_properties().total_memory == total
    torch.tpu.empty_cache()
    torch.accelerator.empty_cache()
    torch.accelerator.empty_host_cache()


def test_summary():
    x = torch.ones(1000, device="tpu")
    torch.tpu.synchronize()
    text = torch.tpu.memory_summary()
    assert "tpu:0" in text
    assert f"{torch.tpu.memory_allocated():,}" in text
    assert "arrays" not in torch.tpu.memory_summary(abbreviated=True)
    assert x.numel() == 1000


def test_before_the_start_all_is_zero_and_nothing_starts(run):
    assert (
        run(
            """
            assert torch.tpu.memory_allocated() == 0 == torch.tpu.max_memory_allocated()
            assert torch.tpu.memory_stats() == {} == torch.accelerator.memory_stats()
            torch.tpu.reset_peak_memory_stats(), torch.tpu.reset_accumulated_memory_stats(), torch.tpu.empty_cache()
            print(torch.tpu.is_initialized())
            """
        )
        == "False"
    )


def test_storage_resize_keeps_the_contents():
    x = torch.arange(4, dtype=torch.int32, device="tpu")
    storage = x.untyped_storage()
    storage.resize_(32)
    assert storage.nbytes() == 32
    assert torch.tensor([], dtype=torch.int32, device="tpu").set_(storage).tolist()[:4] == [0, 1, 2, 3]
    storage.resize_(8)
    assert torch.tensor([], dtype=torch.int32, device="tpu").set_(storage).tolist() == [0, 1]


def test_storage_resize_to_nothing_frees():
    """What FSDP does between two uses of a parameter."""
    before = torch.tpu.memory_allocated()
    x = torch.ones(MB, device="tpu")
    torch.tpu.synchronize()
    x.untyped_storage().resize_(0)
    assert torch.tpu.memory_allocated() == before
    x.untyped_storage().resize_(4 * MB)
    assert torch.tpu.memory_allocated() == before
    x.fill_(3)
    assert x[-1].item() == 3


def test_addresses_tell_storages_apart():
    x, y = torch.ones(4, device="tpu"), torch.ones(4, device="tpu")
    assert x.data_ptr() != y.data_ptr()
    assert x[1:].data_ptr() - x.data_ptr() == 4
    before = x.data_ptr()
    x += 1
    assert x.data_ptr() == before
