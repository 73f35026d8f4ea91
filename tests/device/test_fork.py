"""Forked processes: the ones that keep to the CPU work, the others get a clear error, none hangs."""

import os

import pytest
import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.full((3,), float(i))


class OnDevice(Numbers):
    def __getitem__(self, i):
        return super().__getitem__(i).to("tpu")


def test_workers_forked_after_the_first_use():
    torch.ones(2, device="tpu").add_(1).cpu()
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, pin_memory=False, timeout=60)
    rows = [row for batch in loader for row in batch.to("tpu").tolist()]
    assert rows == [[float(i)] * 3 for i in range(8)]


def test_workers_forked_before_the_first_use(run):
    assert (
        run(
            """
            from torch.utils.data import DataLoader
            loader = DataLoader(torch.arange(6.), batch_size=3, num_workers=2, timeout=60)
            assert not torch.tpu.is_initialized()
            batches = [b.to("tpu").tolist() for b in loader]
            assert batches == [[0., 1., 2.], [3., 4., 5.]], batches
            print("done")
            """
        )
        == "done"
    )


def test_a_worker_that_uses_the_device_says_what_to_do():
    torch.ones(2, device="tpu").add_(1).cpu()
    with pytest.raises(RuntimeError, match=r"(?s)forked subprocess.*spawn"):
        list(DataLoader(OnDevice(), num_workers=1, timeout=60))


def test_a_child_that_only_lets_go_of_tensors_ends():
    x = torch.ones(1000, device="tpu") + 1
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert torch.tpu._is_in_bad_fork()
            assert not torch.tpu.is_initialized()
            assert torch.tpu.device_count() >= 1
            torch.manual_seed(1)  # must not touch the runtime
            y = x
            del y
            for use in (
                lambda: x + 1,
                lambda: torch.ones(1, device="tpu").cpu(),
                lambda: x.cpu(),
                torch.tpu.synchronize,
                torch.tpu.mem_get_info,
            ):
                with pytest.raises(RuntimeError, match="forked subprocess"):
                    use()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert x.sum().item() == 2000


def test_a_child_of_an_unused_device_may_use_it(run):
    assert (
        run(
            """
            import os
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    status = 0 if torch.ones(2, device="tpu").sum().item() == 2 else 2
                finally:
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            print(torch.ones(2, device="tpu").sum().item())
            """
        )
        == "2.0"
    )
