"""A small GPT: a decoder-only transformer over characters, in plain PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """One pre-norm transformer layer: causal self-attention, then a GELU MLP.

    Maps (batch, time, width) to the same shape; `width` must be a multiple of `heads`.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, time, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, time, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Maps token ids (batch, time) to logits (batch, time, vocabulary), for time up to `context`."""

    def __init__(self, vocabulary: int, context: int, layers: int, heads: int, width: int) -> None:
        super().__init__()
        self.context = context
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.positions(places))))

    @torch.no_grad()
    def generate(self, prompt: Tensor, count: int, temperature: float = 0.8) -> Iterator[int]:
        """Yields `count` sampled token ids that continue `prompt` (1, context), ids on the model's device.

        The window slides at a constant length, so every step has the same shapes and a compiling device
        compiles one step only. Raises ValueError when the prompt does not fill the context.
        """
        if prompt.shape != (1, self.context):
            raise ValueError(f"prompt must have shape (1, {self.context}), got {tuple(prompt.shape)}")
        window = prompt
        for _ in range(count):
            probabilities = F.softmax(self(window)[:, -1] / temperature, dim=-1)
            token = torch.multinomial(probabilities, num_samples=1)
            window = torch.cat([window[:, 1:], token], dim=1)
            yield int(token)
