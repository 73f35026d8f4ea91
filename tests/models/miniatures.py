"""Five well-known architectures at a thousandth of their size, in unmodified PyTorch, and a loop that trains them.

`MINIATURES` maps a name to a function of the size ("test" or "bench") that returns a `Miniature`; `trainer`
and `train` are what the benchmarks and the tests run. Nothing here knows a device except by the name it is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Size = Literal["test", "bench"]
Inputs = tuple[Tensor, ...]


class Miniature(NamedTuple):
    """A model with a task it can learn.

    model: the module, on the CPU, weights drawn from the default generator.
    batch: (step, device) -> inputs; drawn on the CPU, the same for a given step everywhere.
    loss: (model, inputs) -> 0-d tensor.
    """

    model: nn.Module
    batch: Callable[[int, torch.device | str], Inputs]
    loss: Callable[[nn.Module, Inputs], Tensor]


def _batches(draw: Callable[[torch.Generator], Inputs]) -> Callable[[int, torch.device | str], Inputs]:
    """Turns a sampler into a batch function whose data depend on the step only."""

    def batch(step: int, device: torch.device | str) -> Inputs:
        generator = torch.Generator().manual_seed(1000 + step)
        return tuple(tensor.to(device) for tensor in draw(generator))

    return batch


def _next_token_loss(model: nn.Module, inputs: Inputs) -> Tensor:
    ids, targets = inputs
    return F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())


def _sequences(vocabulary: int, batch: int, time: int) -> Callable[[int, torch.device | str], Inputs]:
    """Arithmetic progressions modulo the vocabulary: (ids, next ids), both (batch, time)."""

    def draw(generator: torch.Generator) -> Inputs:
        start = torch.randint(vocabulary, (batch, 1), generator=generator)
        stride = torch.randint(1, 4, (batch, 1), generator=generator)
        ids = (start + stride * torch.arange(time + 1)) % vocabulary
        return ids[:, :-1], ids[:, 1:]

    return _batches(draw)


class Residual(nn.Module):
    """Two 3x3 convolutions with batch norm, and a 1x1 convolution as shortcut where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """A stem with max pooling, residual blocks, average pooling, a linear head: (n, 3, h, w) -> (n, classes)."""

    def __init__(self, widths: list[int], classes: int, pool: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, widths[0], 3, padding=1, bias=False), nn.BatchNorm2d(widths[0]))
        self.pool = nn.MaxPool2d(3, stride=2, padding=1) if pool else nn.Identity()
        pairs = zip([widths[0], *widths], widths)
        self.blocks = nn.Sequential(*(Residual(a, b, 1 if a == b else 2) for a, b in pairs))
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        y = self.blocks(self.pool(F.relu(self.stem(x))))
        return self.head(F.adaptive_avg_pool2d(y, 1).flatten(1))


def resnet(size: Size) -> Miniature:
    """Image classification; "bench": eight 3x3 convolutions and their shortcuts, 16 to 64 channels, 16x16 images."""
    widths, batch, classes = ([8, 16], 64, 10) if size == "test" else ([16, 32, 64], 16, 10)
    patterns = torch.randn(classes, 3, 16, 16, generator=torch.Generator().manual_seed(7))

    def draw(generator: torch.Generator) -> Inputs:
        labels = torch.randint(classes, (batch,), generator=generator)
        return patterns[labels] + torch.randn(batch, 3, 16, 16, generator=generator), labels

    def loss(model: nn.Module, inputs: Inputs) -> Tensor:
        return F.cross_entropy(model(inputs[0]), inputs[1])

    return Miniature(ResNet(widths, classes, pool=size == "test"), _batches(draw), loss)


class GPTBlock(nn.Module):
    """Pre-norm self-attention with an explicit causal mask and softmax, then a GELU MLP."""

    def __init__(self, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("mask", torch.ones(context, context).triu(1).bool())

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        heads = (batch, time, self.heads, width // self.heads)
        q, k, v = (y.view(heads).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(width, dim=-1))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(heads[-1])
        weights = scores.masked_fill(self.mask[:time, :time], float("-inf")).softmax(dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, time, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    """GPT-2's layout: learned positions, tied head: ids (batch, time) -> logits (batch, time, vocabulary)."""

    def __init__(self, vocabulary: int, context: int, layers: int, heads: int, width: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(GPTBlock(width, heads, context) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.1)
        nn.init.normal_(self.positions.weight, std=0.1)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def gpt(size: Size) -> Miniature:
    """Next-token prediction; "bench": 4 layers, width 128, context 64, batch 8."""
    layers, width, context, batch = (2, 64, 32, 8) if size == "test" else (4, 128, 64, 8)
    return Miniature(GPT(96, context, layers, 4, width), _sequences(96, batch, context), _next_token_loss)


class RMSNorm(nn.Module):
    """Llama's norm: statistics in float32 whatever the input's dtype."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        return self.weight * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of x (batch, heads, time, dim) by angles (time, dim), halves rotated together."""
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


class LlamaBlock(nn.Module):
    """Grouped-query attention with rotary positions, then a SwiGLU MLP, both after RMSNorm."""

    def __init__(self, width: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.dim = heads, kv_heads, width // heads
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, kv_heads * self.dim, bias=False)
        self.v = nn.Linear(width, kv_heads * self.dim, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        hidden = 8 * width // 3 // 8 * 8
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, time, width = x.shape
        y = self.norm1(x)
        q = _rotate(self.q(y).view(batch, time, self.heads, self.dim).transpose(1, 2), cos, sin)
        k = _rotate(self.k(y).view(batch, time, self.kv_heads, self.dim).transpose(1, 2), cos, sin)
        v = self.v(y).view(batch, time, self.kv_heads, self.dim).transpose(1, 2)
        # The angles are float32, so under autocast the rotated q and k are too; attention wants one dtype.
        y = F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, time, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """ids (batch, time) -> logits (batch, time, vocabulary)."""

    def __init__(self, vocabulary: int, layers: int, heads: int, kv_heads: int, width: int) -> None:
        super().__init__()
        self.dim = width // heads
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, kv_heads) for _ in range(layers))
        self.norm = RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.5)

    def forward(self, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1], device=ids.device, dtype=torch.float32)
        rates = 10000.0 ** (-torch.arange(0, self.dim, 2, device=ids.device, dtype=torch.float32) / self.dim)
        angles = torch.outer(places, rates).repeat(1, 2)
        cos, sin = angles.cos(), angles.sin()
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


def llama(size: Size) -> Miniature:
    """Next-token prediction with 4 query heads on 2 key-value heads."""
    layers, width, context, batch = (2, 64, 32, 8) if size == "test" else (4, 128, 64, 8)
    return Miniature(Llama(96, layers, 4, 2, width), _sequences(96, batch, context), _next_token_loss)


class UNetBlock(nn.Module):
    """GroupNorm, SiLU, convolution, twice, with the time embedding added in between and a shortcut."""

    def __init__(self, inputs: int, outputs: int, time_width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, inputs), nn.GroupNorm(4, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(time_width, outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(y)))


class UNet(nn.Module):
    """A denoiser with one level of down- and upsampling: images (n, 1, h, w), times (n,) -> (n, 1, h, w)."""

    def __init__(self, width: int, time_width: int = 32) -> None:
        super().__init__()
        self.time_width = time_width
        self.time = nn.Sequential(nn.Linear(time_width, time_width), nn.SiLU(), nn.Linear(time_width, time_width))
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.left = UNetBlock(width, width, time_width)
        self.shrink = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.middle = UNetBlock(2 * width, 2 * width, time_width)
        self.grow = nn.Conv2d(2 * width, width, 3, padding=1)
        self.right = UNetBlock(2 * width, width, time_width)
        self.norm, self.out = nn.GroupNorm(4, width), nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x: Tensor, times: Tensor) -> Tensor:
        half = self.time_width // 2
        rates = torch.exp(-math.log(1000.0) * torch.arange(half, device=x.device) / half)
        angles = 1000.0 * times[:, None] * rates
        time = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        left = self.left(self.stem(x), time)
        y = self.middle(self.shrink(left), time)
        y = self.grow(F.interpolate(y, scale_factor=2, mode="nearest"))
        y = self.right(torch.cat([y, left], dim=1), time)
        return self.out(F.silu(self.norm(y)))


def unet(size: Size) -> Miniature:
    """Predicting the noise added to images of one wave each."""
    width, batch, side = (8, 16, 16) if size == "test" else (32, 8, 16)

    def draw(generator: torch.Generator) -> Inputs:
        wave = torch.rand(batch, 3, 1, 1, generator=generator) * 6
        grid = torch.linspace(0, 1, side)
        image = torch.sin(wave[:, 0] * grid[:, None] + wave[:, 1] * grid + wave[:, 2]).unsqueeze(1)
        noise = torch.randn(batch, 1, side, side, generator=generator)
        times = torch.rand(batch, generator=generator)
        level = times[:, None, None, None]
        return (1 - level).sqrt() * image + level.sqrt() * noise, times, noise

    def loss(model: nn.Module, inputs: Inputs) -> Tensor:
        noisy, times, noise = inputs
        return F.mse_loss(model(noisy, times).float(), noise)

    return Miniature(UNet(width), _batches(draw), loss)


def _mlp(*widths: int) -> nn.Sequential:
    layers = [nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in zip(widths, widths[1:])]
    return nn.Sequential(*layers)


class DLRM(nn.Module):
    """Click prediction: dense (n, features), ids (tables, n, bag) -> logits (n,).

    A bottom MLP for the dense features, an EmbeddingBag a table, the dot products of all pairs, a top MLP.
    """

    def __init__(self, tables: int, rows: int, width: int, features: int) -> None:
        super().__init__()
        self.bottom = _mlp(features, 2 * width, width)
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        for bag in self.bags:
            nn.init.uniform_(bag.weight, -(rows**-0.5), rows**-0.5)
        pairs = torch.tril_indices(tables + 1, tables + 1, offset=-1)
        self.register_buffer("rows", pairs[0])
        self.register_buffer("columns", pairs[1])
        self.top = nn.Sequential(_mlp(width + pairs.shape[1], 2 * width, width), nn.Linear(width, 1))

    def forward(self, dense: Tensor, ids: Tensor) -> Tensor:
        x = self.bottom(dense)
        vectors = torch.stack([x, *(bag(ids[i]).to(x.dtype) for i, bag in enumerate(self.bags))], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.rows, self.columns]
        return self.top(torch.cat([x, products.to(x.dtype)], dim=1)).squeeze(1)


def dlrm(size: Size) -> Miniature:
    """Clicks that depend on one dense feature and on the ids' parity."""
    tables, rows, width, batch = (4, 200, 16, 128) if size == "test" else (8, 2000, 32, 512)
    features = 13

    def draw(generator: torch.Generator) -> Inputs:
        dense = 3 * torch.randn(batch, features, generator=generator)
        ids = torch.randint(rows, (tables, batch, 3), generator=generator)
        score = dense[:, 0] + (ids % 2).sum(dim=(0, 2)) - 1.5 * tables
        return dense, ids, (score > 0).float()

    def loss(model: nn.Module, inputs: Inputs) -> Tensor:
        dense, ids, clicks = inputs
        return F.binary_cross_entropy_with_logits(model(dense, ids).float(), clicks)

    return Miniature(DLRM(tables, rows, width, features), _batches(draw), loss)


MINIATURES: dict[str, Callable[[Size], Miniature]] = {
    "resnet": resnet,
    "gpt": gpt,
    "llama": llama,
    "unet": unet,
    "dlrm": dlrm,
}


def trainer(
    model_name: str, device: torch.device | str, autocast: bool = False, seed: int = 0, size: Size = "test"
) -> Callable[[int], Tensor]:
    """Returns a function that runs training step i of a miniature and returns its loss, 0-d on the device.

    AdamW with gradient clipping and a learning rate that warms up over ten steps. The initial weights are drawn
    on the CPU from `seed` and the batches from the step number, so two devices run the same computation.
    `autocast` runs the forward pass under bfloat16 autocast of the device's type. Raises KeyError for an
    unknown name.
    """
    torch.manual_seed(seed)
    miniature = MINIATURES[model_name](size)
    model = miniature.model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    # Without a warm-up Adam's first steps have the size of the learning rate whatever the gradient's, and
    # turn rounding into differences of the loss.
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))

    def run(step: int) -> Tensor:
        inputs = miniature.batch(step, device)
        with torch.autocast(torch.device(device).type, dtype=torch.bfloat16, enabled=autocast):
            loss = miniature.loss(model, inputs)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        schedule.step()
        return loss.detach()

    return run


def train(
    model_name: str,
    device: torch.device | str,
    steps: int,
    autocast: bool = False,
    seed: int = 0,
    size: Size = "test",
) -> list[float]:
    """Runs `steps` steps of `trainer` and returns the loss of each."""
    step = trainer(model_name, device, autocast, seed, size)
    return [loss.item() for loss in [step(i) for i in range(steps)]]
