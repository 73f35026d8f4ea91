"""The two training runs of the demo: ordinary PyTorch, told nothing about the device but its name."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from examples.data import digits, prose
from examples.mingpt.model import GPT
from examples.resnet.model import ResNet

GPT_BATCH, RESNET_BATCH, HELD_OUT = 16, 64, 256
SHOW_LOSS_EVERY = 10


@dataclass
class Run:
    """A finished training run: the model, the loss of every step, and the wall time in seconds."""

    model: nn.Module
    losses: list[float]
    seconds: float
    batch: int

    @property
    def samples_per_second(self) -> float:
        """Mean over the whole run, compilation included."""
        return len(self.losses) * self.batch / self.seconds


def train(
    name: str,
    model: nn.Module,
    batches: Callable[[torch.Generator], tuple[Tensor, Tensor]],
    batch: int,
    device: torch.device,
    steps: int,
    peak_lr: float,
    seed: int,
) -> Run:
    """Trains `model` for `steps` steps of AdamW on cross-entropy, with a progress bar, and returns the run.

    `batches` draws (inputs, class targets), `batch` samples, on the CPU from the generator it is given, so
    that every device sees the same data in the same order. Gradients are clipped to
    norm 1; the learning rate changes each step (linear warm-up, then a cosine down to a tenth).
    """
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak_lr, weight_decay=0.01)
    warmup = max(1, min(20, steps // 5))

    def scale(step: int) -> float:
        progress = max(0.0, (step - warmup) / max(1, steps - warmup))
        return min((step + 1) / warmup, 0.55 + 0.45 * math.cos(math.pi * progress))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, scale)
    generator = torch.Generator().manual_seed(seed)
    losses: list[Tensor] = []
    start = time.perf_counter()
    # A log file gets a line of progress now and then, a terminal a moving bar.
    interval = 0.1 if sys.stderr.isatty() else 5.0
    with tqdm(
        total=steps * batch,
        unit=" samples",
        unit_scale=True,
        desc=f"{name} on {device}",
        mininterval=interval,
    ) as bar:
        for step in range(steps):
            inputs, targets = (tensor.to(device) for tensor in batches(generator))
            loss = F.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.detach())
            if step % SHOW_LOSS_EVERY == 0 or step == steps - 1:
                bar.set_postfix(loss=f"{loss.item():.4f}", refresh=False)
            bar.update(batch)
    values = [loss.item() for loss in losses]
    return Run(model, values, time.perf_counter() - start, batch)


class Language:
    """A character-level GPT on real prose."""

    def __init__(self) -> None:
        text = prose()
        self.alphabet = sorted(set(text))
        codes = {character: code for code, character in enumerate(self.alphabet)}
        self.ids = torch.tensor([codes[character] for character in text])
        self.context = 64
        # The last characters are kept out of training; generation starts from them.
        self.training, self.prompt = self.ids[: -self.context], self.ids[-self.context :]

    def run(self, device: torch.device, steps: int, seed: int) -> Run:
        """Trains from the initial weights that belong to `seed`."""
        torch.manual_seed(seed)
        model = GPT(len(self.alphabet), self.context, layers=3, heads=4, width=96)
        return train("GPT", model, self.batch, GPT_BATCH, device, steps, 3e-3, seed)

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Random windows (batch, context) and the same windows one character on."""
        starts = torch.randint(len(self.training) - self.context, (GPT_BATCH, 1), generator=generator)
        window = self.training[starts + torch.arange(self.context + 1)]
        return window[:, :-1], window[:, 1:]

    def generate(self, model: nn.Module, device: torch.device, characters: int) -> tuple[str, str]:
        """Returns (prompt, continuation sampled on `device`)."""
        assert isinstance(model, GPT)
        prompt = "".join(self.alphabet[code] for code in self.prompt.tolist())
        tokens = model.eval().generate(self.prompt.unsqueeze(0).to(device), characters)
        return prompt, "".join(self.alphabet[code] for code in tokens)


class Vision:
    """A ResNet on images of handwritten digits."""

    def __init__(self) -> None:
        images, labels = digits()
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
        self.images, self.labels = images[order], labels[order]

    def run(self, device: torch.device, steps: int, seed: int) -> Run:
        """Trains from the initial weights that belong to `seed`."""
        torch.manual_seed(seed)
        return train("ResNet", ResNet(widths=(16, 32)), self.batch, RESNET_BATCH, device, steps, 3e-3, seed)

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Random training images (batch, 1, 8, 8) and their labels (batch,)."""
        picks = torch.randint(len(self.images) - HELD_OUT, (RESNET_BATCH,), generator=generator) + HELD_OUT
        return self.images[picks], self.labels[picks]

    @torch.no_grad()
    def accuracy(self, model: nn.Module, device: torch.device) -> float:
        """The share of the held-out images that `model`, on `device`, labels correctly."""
        guesses = model.eval()(self.images[:HELD_OUT].to(device)).argmax(dim=-1)
        return (guesses.cpu() == self.labels[:HELD_OUT]).float().mean().item()
