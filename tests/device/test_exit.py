"""How a process ends."""

import pytest


@pytest.mark.parametrize("time", range(6))  # the end of the interpreter races with a thread of autograd
def test_right_after_a_backward_pass(run, time):
    program = """
x = torch.ones(3, 4, device="tpu", requires_grad=True)
(x * x).sum().backward()
print("done")
"""
    assert run(program) == "done"
