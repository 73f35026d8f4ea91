"""Generators: the same numbers for the same seed, states that can be saved, one stream a device."""

import copy
import pickle

import pytest
import torch


def draw(generator=None, n=8):
    return torch.rand(n, device="tpu", generator=generator).tolist()


def test_the_same_seed_gives_the_same_numbers():
    torch.manual_seed(7)
    a, b = draw(), draw()
    torch.manual_seed(7)
    assert draw() == a
    assert draw() == b
    assert a != b
    torch.manual_seed(8)
    assert draw() != a


def test_seed_functions():
    torch.tpu.manual_seed(3)
    assert torch.tpu.initial_seed() == 3
    torch.tpu.manual_seed_all(4)
    assert [g.initial_seed() for g in torch.tpu.default_generators] == [4] * torch.tpu.device_count()
    torch.tpu.seed()
    first = torch.tpu.initial_seed()
    torch.tpu.seed_all()
    assert torch.tpu.initial_seed() != first


def test_state_of_the_device():
    torch.manual_seed(1)
    draw()
    state = torch.tpu.get_rng_state()
    assert state.dtype == torch.uint8
    assert state.shape == (16,)
    assert state.is_cpu
    a = draw()
    torch.tpu.set_rng_state(state)
    assert draw() == a
    torch.tpu.set_rng_state_all([state] * torch.tpu.device_count())
    assert draw() == a
    assert len(torch.tpu.get_rng_state_all()) == torch.tpu.device_count()


def test_states_that_make_no_sense():
    with pytest.raises(RuntimeError, match="16 bytes"):
        torch.tpu.set_rng_state(torch.zeros(5, dtype=torch.uint8))
    with pytest.raises(TypeError, match="ByteTensor"):
        torch.tpu.set_rng_state(torch.zeros(16))


def test_own_generators():
    g = torch.Generator(device="tpu")
    assert g.device == torch.device("tpu:0")
    g.manual_seed(11)
    before = torch.tpu.get_rng_state()
    a = draw(g)
    assert torch.equal(torch.tpu.get_rng_state(), before)  # the default one was not touched
    g.manual_seed(11)
    assert draw(g) == a
    state = g.get_state()
    b = draw(g)
    g.set_state(state)
    assert draw(g) == b


def test_clones_and_shared_states():
    g = torch.Generator(device="tpu").manual_seed(5)
    twin = g.clone_state()
    assert draw(g) == draw(twin)
    follower = torch.Generator(device="tpu")
    follower.graphsafe_set_state(g.graphsafe_get_state())
    a, b = draw(g), draw(follower)
    assert a != b  # one stream of numbers, drawn from by both
    assert g.get_offset() == follower.get_offset()
    g.set_offset(0)
    g.manual_seed(5)
    assert follower.initial_seed() == 5


def test_generators_can_be_pickled_and_copied():
    g = torch.Generator(device="tpu").manual_seed(5)
    draw(g)
    twin = pickle.loads(pickle.dumps(g))
    assert twin.device == g.device
    assert draw(twin) == draw(g)


def test_the_offset_counts_numbers():
    g = torch.Generator(device="tpu").manual_seed(5)
    assert g.get_offset() == 0
    draw(g)
    assert g.get_offset() > 0
    g.set_offset(0)
    assert g.initial_seed() == 5


def test_a_generator_of_another_device_is_refused():
    with pytest.raises(RuntimeError, match="Expected a 'tpu' device type for generator but found 'cpu'"):
        torch.rand(2, device="tpu", generator=torch.Generator())


def test_fork_rng():
    torch.manual_seed(2)
    a = draw()
    torch.manual_seed(2)
    with torch.random.fork_rng(devices=[0], device_type="tpu"):
        torch.manual_seed(99)
        draw()
    assert draw() == a


def test_checkpointing_replays_dropout():
    x = torch.ones(64, device="tpu", requires_grad=True)
    torch.manual_seed(3)
    y = torch.utils.checkpoint.checkpoint(lambda t: torch.nn.functional.dropout(t, 0.5), x, use_reentrant=False)
    y.sum().backward()
    assert x.grad.tolist() == y.detach().tolist()


def test_seeding_starts_nothing(run):
    assert run("torch.manual_seed(1); torch.tpu.get_rng_state(); print(torch.tpu.is_initialized())") == "False"


def test_each_device_has_its_own_stream(run):
    assert (
        run(
            """
            torch.manual_seed(5)
            a = torch.rand(4, device="tpu:0").tolist()
            b = torch.rand(4, device="tpu:1").tolist()
            assert a == b  # same seed, same offset
            torch.tpu.set_device(1)
            torch.tpu.manual_seed(6)
            assert [g.initial_seed() for g in torch.tpu.default_generators] == [5, 6]
            assert torch.rand(4, device="tpu:0").tolist() != torch.rand(4, device="tpu:1").tolist()
            with torch.random.fork_rng(devices=[0, 1], device_type="tpu"):
                torch.manual_seed(1)
            assert [g.initial_seed() for g in torch.tpu.default_generators] == [5, 6]
            print("done")
            """,
            TORCH_TPU_CPU_DEVICES="2",
            TORCH_TPU_PLATFORM="cpu",
        )
        == "done"
    )


def test_default_generators_are_the_ones_used():
    g = torch.tpu.default_generators[0]
    g.manual_seed(21)
    a = draw()
    g.manual_seed(21)
    assert draw(g) == a
    assert copy.copy(torch.tpu.default_generators)[0].device.index == 0
