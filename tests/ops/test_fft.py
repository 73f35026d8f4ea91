"""Fourier transforms: every form, normalisation and number of dimensions, against CPU torch."""

from __future__ import annotations

import pytest
import torch
from comparison import on_device

CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_dimension(name: str, norm: str) -> None:
    function = getattr(torch.fft, name)
    x = floats(3, 10)
    if name in ("irfft", "hfft"):
        x = torch.complex(x, x.flip(1))  # its ends are not real: what is imaginary there does not count
    for n in (None, 7, 16):
        on_device(lambda d, n=n: function(x.to(d), n, norm=norm), **CLOSE)
        on_device(lambda d, n=n: function(x.to(d), n, dim=0, norm=norm), **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64, torch.complex128], ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    x = floats(4, 6, dtype=dtype)
    on_device(lambda d: torch.fft.fft(x.to(d)), **CLOSE)
    on_device(lambda d: torch.fft.ifft2(x.to(d)), **CLOSE)
    on_device(lambda d: torch.fft.irfft(x.to(d)), **CLOSE)


@pytest.mark.parametrize("dims", [(0,), (1, 3), (3, 0, 2), (0, 1, 2, 3), (4, 1, 0, 2, 3)], ids=str)
def test_more_dimensions_than_the_compiler_takes_at_once(dims: tuple[int, ...]) -> None:
    x = floats(2, 3, 4, 3, 5)
    on_device(lambda d: torch.fft.fftn(x.to(d), dim=dims), **CLOSE)
    on_device(lambda d: torch.fft.rfftn(x.to(d), dim=dims), **CLOSE)
    on_device(lambda d: torch.fft.irfftn(torch.fft.rfftn(x, dim=dims).to(d), dim=dims), **CLOSE)
    on_device(lambda d: torch.fft.hfftn(x.to(d), dim=dims), **CLOSE)


def test_views_out_and_infinities() -> None:
    x = floats(6, 4)
    on_device(lambda d: torch.fft.fft(x.to(d).t()[::2]), **CLOSE)
    on_device(lambda d: torch.fft.rfft(x.to(d), out=torch.empty(0, dtype=torch.complex64, device=d)), **CLOSE)
    on_device(lambda d: torch.fft.irfft(torch.fft.rfft(x).to(d), out=torch.empty(6, 6, device=d)), **CLOSE)
    on_device(lambda d: torch.fft.fft(torch.tensor([[float("inf"), 1], [2, 3]], device=d), norm="ortho"))
    on_device(lambda d: torch.fft.fft(torch.ones(4, 0, device=d)))


def test_gradients() -> None:
    def gradient(device: str, name: str) -> torch.Tensor:
        x = floats(3, 8).to(device).requires_grad_()
        y = getattr(torch.fft, name)(x)
        (torch.view_as_real(y) if y.is_complex() else y).square().sum().backward()
        assert x.grad is not None
        return x.grad

    for name in ("fft", "rfft", "rfft2", "irfft", "hfft"):
        on_device(lambda d, name=name: gradient(d, name), **CLOSE)


def test_short_time_transform_and_back() -> None:
    x, window = floats(2, 400), torch.hann_window(64)

    def program(device: str) -> list[torch.Tensor]:
        w = window.to(device)
        y = torch.stft(x.to(device), 64, 16, window=w, return_complex=True)
        return [y, torch.istft(y, 64, 16, window=w)]

    on_device(program, **CLOSE)
