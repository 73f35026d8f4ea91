"""Saving, loading, pickling and copying tensors of the device."""

import copy
import io
import pickle

import pytest
import torch


def round_trip(obj, **options):
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return torch.load(file, **options)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64, torch.uint8]
)
def test_save_and_load(dtype):
    x = torch.tensor([0, 1, 2, 3]).to(dtype)
    y = round_trip(x.tpu())
    assert y.device == torch.device("tpu:0")
    assert y.dtype == dtype
    assert torch.equal(y.cpu(), x)


def test_map_location():
    x = torch.arange(6.0).reshape(2, 3)
    assert round_trip(x.tpu(), map_location="cpu").is_cpu
    assert round_trip(x, map_location="tpu").device == torch.device("tpu:0")
    assert round_trip(x, map_location=torch.device("tpu:0")).tolist() == x.tolist()
    assert round_trip(x.tpu(), map_location=lambda storage, where: storage).is_cpu
    assert round_trip(x.tpu(), map_location={"tpu:0": "cpu"}).is_cpu
    assert round_trip(x.tpu(), map_location="meta").is_meta


def test_load_to_a_device_that_does_not_exist():
    with pytest.raises(RuntimeError, match=r"device_count\(\) is"):
        round_trip(torch.ones(2), map_location="tpu:77")


def test_views_stay_views():
    base = torch.arange(10.0, device="tpu")
    a, b = round_trip([base[2:6], base[4:8]])
    assert a.tolist() == [2, 3, 4, 5]
    assert b.tolist() == [4, 5, 6, 7]
    a[2] = -1
    assert b[0].item() == -1
    t = round_trip(torch.arange(6.0, device="tpu").reshape(2, 3).t())
    assert t.stride() == (1, 3)
    assert t.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_module_and_optimizer():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to("tpu")
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2, 3, device="tpu")).sum().backward()
    optimizer.step()
    state = round_trip({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    fresh = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to("tpu")
    fresh.load_state_dict(state["model"])
    for p, q in zip(model.state_dict().values(), fresh.state_dict().values()):
        assert torch.equal(p.cpu(), q.cpu())
    again = torch.optim.AdamW(fresh.parameters())
    again.load_state_dict(state["optimizer"])
    assert again.state_dict()["state"][0]["exp_avg"].is_tpu


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_pickle():
    x = torch.nn.Parameter(torch.arange(4.0, device="tpu"))
    y = pickle.loads(pickle.dumps(x))
    assert isinstance(y, torch.nn.Parameter)
    assert y.is_tpu
    assert y.tolist() == [0, 1, 2, 3]
    storage = pickle.loads(pickle.dumps(x.detach().storage()))
    assert storage.device.type == "tpu"
    assert storage.tolist() == [0, 1, 2, 3]


def test_deepcopy():
    model = torch.nn.Linear(2, 2, device="tpu")
    model.twin = model.weight
    twin = copy.deepcopy(model)
    assert twin.weight is twin.twin
    with torch.no_grad():
        twin.weight.fill_(9)
    assert not (model.weight == 9).any()
    base = torch.arange(6.0, device="tpu")
    x = copy.deepcopy(base[::2])
    assert x.tolist() == [0, 2, 4]
    x += 1
    assert base.tolist() == [0, 1, 2, 3, 4, 5]
    assert copy.copy(base).data_ptr() == base.data_ptr()


def test_mmap_and_files(tmp_path):
    x = torch.arange(5.0, device="tpu")
    torch.save(x, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt", mmap=True, map_location="tpu").tolist() == x.tolist()
    assert torch.load(tmp_path / "x.pt", weights_only=False).is_tpu


def test_storage_moves():
    storage = torch.arange(4, dtype=torch.uint8).untyped_storage()
    on_device = storage.tpu()
    assert on_device.device.type == "tpu"
    assert list(on_device.cpu()) == [0, 1, 2, 3]
