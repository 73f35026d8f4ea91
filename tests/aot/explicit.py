"""Calls of entries that PyTorch's operator samples do not reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class Make:
    """Tensors on the CPU for one dtype."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def __call__(self, *sizes: int) -> torch.Tensor:
        """Values between 0 and 1, or 1 and 3 for integers: in the domain of most functions."""
        if self.dtype.is_floating_point or self.dtype.is_complex:
            return (torch.rand(sizes) * 0.8 + 0.1).to(self.dtype)
        return torch.randint(1, 4, sizes).to(self.dtype)

    @property
    def number(self) -> float | int:
        return 0.5 if self.dtype.is_floating_point or self.dtype.is_complex else 2


def arguments_for(schema: Any, make: Make) -> tuple[list[Any], dict[str, Any]] | None:
    """Plain arguments for a schema whose arguments without a default are tensors and numbers; None for another."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for a in schema.arguments:
        value: Any
        match str(a.type):
            case "Tensor":
                value = make() if schema.name.startswith("aten::_foreach_") else make(3, 4)
            case "List[Tensor]":
                value = [make(2, 3), make(4)]
            case "number" | "float" if not a.has_default_value():
                value = make.number
            case "List[number]":
                value = [make.number, make.number]
            case _:
                if not a.has_default_value():
                    return None
                continue
        if a.kwarg_only:
            keywords[a.name] = value
        else:
            positional.append(value)
    return positional, keywords


def _index(*values: int) -> torch.Tensor:
    return torch.tensor(values)


def _batch_norm(x: Make) -> tuple[Any, ...]:
    return x(2, 3, 4), x(3), x(3), x(3), x(3)


def _adam_call(x: Make, rate: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    keywords = {
        "lr": rate,
        "beta1": 0.9,
        "beta2": 0.999,
        "weight_decay": 0.01,
        "eps": 1e-8,
        "amsgrad": False,
        "maximize": False,
    }
    state = [[x(2, 3), x(4)] for _ in range(4)]
    return (*state, [], [torch.ones(()), torch.ones(())]), keywords


def _sgd_call(x: Make, rate: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    keywords = {"weight_decay": 0.01, "momentum": 0.9, "lr": rate, "dampening": 0.0}
    keywords |= {"nesterov": True, "maximize": False, "is_first_step": False}
    return ([x(2, 3)], [x(2, 3)], [x(2, 3)]), keywords


def _adagrad_call(x: Make, rate: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    keywords = {"lr": rate, "lr_decay": 0.1, "weight_decay": 0.01, "eps": 1e-8, "maximize": False}
    return ([x(2, 3)], [x(2, 3)], [x(2, 3)], [torch.ones(())]), keywords


# Arguments by position; a pair of a tuple and a dict has keyword arguments too.
EXPLICIT: dict[str, Callable[[Make], tuple[Any, ...]]] = {
    "__lshift__.Scalar": lambda x: (x(3, 4), 2),
    "__rshift__.Scalar": lambda x: (x(3, 4), 2),
    "_addmm_activation": lambda x: (x(4), x(3, 5), x(5, 4)),
    "_amp_foreach_non_finite_check_and_unscale_": lambda x: ([x(2, 3), x(4)], torch.zeros(1), torch.ones(1)),
    "_amp_update_scale_": lambda x: (x(1), torch.zeros(1, dtype=torch.int32), x(1), 2.0, 0.5, 100),
    "_batch_norm_no_update": lambda x: (*_batch_norm(x), 0.1, 1e-5),
    "_batch_norm_with_update_functional": lambda x: (*_batch_norm(x), 0.1, 1e-5),
    "_embedding_bag_forward_only": lambda x: (x(5, 3), _index(1, 2, 4), _index(0, 2)),
    "_foreach_mm": lambda x: ([x(2, 3), x(4, 2)], [x(3, 4), x(2, 2)]),
    "_fused_adagrad_": lambda x: _adagrad_call(x, 0.1),
    "_fused_adagrad_.tensor_lr": lambda x: _adagrad_call(x, torch.ones(())),
    "_fused_adam_": lambda x: _adam_call(x, 0.1),
    "_fused_adam_.tensor_lr": lambda x: _adam_call(x, torch.ones(())),
    "_fused_adamw_": lambda x: _adam_call(x, 0.1),
    "_fused_adamw_.tensor_lr": lambda x: _adam_call(x, torch.ones(())),
    "_fused_rms_norm": lambda x: (x(3, 4), [4], x(4), 1e-5),
    "_fused_rms_norm_backward": lambda x: (x(3, 4), x(3, 4), [4], x(3, 1), x(4), [True, True]),
    "_fused_sgd_": lambda x: _sgd_call(x, 0.1),
    "_fused_sgd_.tensor_lr": lambda x: _sgd_call(x, torch.ones(())),
    "_index_put_impl": lambda x: (x(5, 3), [_index(1, 2)], x(2, 3)),
    "_int_mm": lambda x: (torch.ones(32, 32, dtype=torch.int8), torch.ones(32, 32, dtype=torch.int8)),
    "_logcumsumexp": lambda x: (x(3, 4), 1),
    "_native_batch_norm_legit.no_stats": lambda x: (x(2, 3, 4), x(3), x(3), True, 0.1, 1e-5),
    "_native_batch_norm_legit_functional": lambda x: (*_batch_norm(x), True, 0.1, 1e-5),
    "_native_batch_norm_legit_no_training": lambda x: (*_batch_norm(x), 0.1, 1e-5),
    "_reshape_alias": lambda x: (x(3, 4), [2, 6], [6, 1]),
    "_stack": lambda x: ([x(3, 4), x(3, 4)], 1),
    "_thnn_fused_lstm_cell": lambda x: (x(2, 12), x(2, 12), x(2, 3), x(12), x(12)),
    "_thnn_fused_lstm_cell_backward_impl": lambda x: (x(2, 3), x(2, 3), x(2, 3), x(2, 3), x(2, 12), True),
    "_thnn_fused_gru_cell_backward": lambda x: (x(2, 3), x(2, 15), True),
    "_transform_bias_rescale_qkv": lambda x: (x(2, 3, 24), x(24), 2),
    "_unsafe_index.Tensor": lambda x: (x(5, 3), [_index(1, 2)]),
    "_unsafe_index_put": lambda x: (x(5, 3), [_index(1, 2)], x(2, 3)),
    "_unsafe_view": lambda x: (x(3, 4), [2, 6]),
    "_upsample_bicubic2d_aa": lambda x: (x(1, 2, 4, 4), [3, 6], False),
    "_upsample_bicubic2d_aa_backward": lambda x: (x(1, 2, 3, 6), [3, 6], [1, 2, 4, 4], False),
    "_upsample_lanczos2d_aa": lambda x: (x(1, 2, 4, 4), [3, 6], False),
    "_upsample_lanczos2d_aa_backward": lambda x: (x(1, 2, 3, 6), [3, 6], [1, 2, 4, 4], False),
    "_upsample_nearest_exact2d": lambda x: (x(1, 2, 4, 4), [3, 6]),
    "_upsample_nearest_exact2d_backward": lambda x: (x(1, 2, 3, 6), [3, 6], [1, 2, 4, 4]),
    "_upsample_nearest_exact3d": lambda x: (x(1, 2, 4, 4, 4), [3, 6, 5]),
    "_upsample_nearest_exact3d_backward": lambda x: (x(1, 2, 3, 6, 5), [3, 6, 5], [1, 2, 4, 4, 4]),
    "_weight_int8pack_mm": lambda x: (x(3, 32), torch.ones(4, 32, dtype=torch.int8), x(4)),
    "as_strided": lambda x: (x(3, 4), [2, 3], [1, 2], 1),
    "batch_norm_backward_elemt": lambda x: (
        x(2, 3, 4), x(2, 3, 4), x(3), x(3), x(3), x(3), x(3), torch.full((1,), 8, dtype=torch.int32)
    ),
    "batch_norm_backward_reduce": lambda x: (x(2, 3, 4), x(2, 3, 4), x(3), x(3), x(3), True, True, True),
    "batch_norm_elemt": lambda x: (x(2, 3, 4), x(3), x(3), x(3), x(3), 1e-5),
    "batch_norm_gather_stats": lambda x: (x(2, 3, 4), x(2, 3), x(2, 3), x(3), x(3), 0.1, 1e-5, 8),
    "batch_norm_gather_stats_with_counts": lambda x: (x(2, 3, 4), x(2, 3), x(2, 3), x(3), x(3), 0.1, 1e-5, x(2)),
    "batch_norm_update_stats": lambda x: (x(2, 3, 4), x(3), x(3), 0.1),
    "bucketize.Scalar": lambda x: (2, x(4)),
    "count_nonzero.dim_IntList": lambda x: (x(3, 4), [1]),
    "div.Scalar_mode": lambda x: ((x(3, 4), x.number), {"rounding_mode": "floor"}),
    "embedding_renorm": lambda x: (x(5, 3), _index(1, 2), 1.0, 2.0),
    "embedding_renorm_": lambda x: (x(5, 3), _index(1, 2), 1.0, 2.0),
    "expand": lambda x: (x(3, 1), [3, 4]),
    "fill.Tensor": lambda x: (x(3, 4), x()),
    "flatten.using_ints": lambda x: (x(2, 3, 4), 1, 2),
    "glu_jvp": lambda x: (x(3, 2), x(3, 4), x(3, 4), 1),
    "norm.ScalarOpt_dim_dtype": lambda x: ((x(3, 4), 2, [1], False), {"dtype": x.dtype}),
    "norm.ScalarOpt_dtype": lambda x: ((x(3, 4), 2), {"dtype": x.dtype}),
    "permute": lambda x: (x(2, 3, 4), [2, 0, 1]),
    "repeat_interleave.Tensor": lambda x: ((_index(1, 2, 3),), {"output_size": 6}),
    "reshape": lambda x: (x(3, 4), [2, 6]),
    "searchsorted.Scalar": lambda x: (x(4), 2),
    "select.int": lambda x: (x(3, 4), 1, 2),
    "split.Tensor": lambda x: (x(3, 4), 2, 1),
    "split_with_sizes": lambda x: (x(3, 4), [1, 3], 1),
    "squeeze.dim": lambda x: (x(3, 1), 1),
    "squeeze.dims": lambda x: (x(3, 1, 1), [1, 2]),
    "transpose.int": lambda x: (x(3, 4), 0, 1),
    "unflatten.int": lambda x: (x(3, 4), 1, [2, 2]),
    "unfold": lambda x: (x(3, 4), 1, 2, 1),
    "unsafe_split.Tensor": lambda x: (x(3, 4), 2, 1),
    "unsafe_split_with_sizes": lambda x: (x(3, 4), [1, 3], 1),
    "unsqueeze": lambda x: (x(3, 4), 1),
    "upsample_nearest2d": lambda x: (x(1, 2, 4, 4), [3, 6]),
    "upsample_nearest2d_backward": lambda x: (x(1, 2, 3, 6), [3, 6], [1, 2, 4, 4]),
    "upsample_nearest3d": lambda x: (x(1, 2, 4, 4, 4), [3, 6, 5]),
    "upsample_nearest3d_backward": lambda x: (x(1, 2, 3, 6, 5), [3, 6, 5], [1, 2, 4, 4, 4]),
    "view": lambda x: (x(3, 4), [2, 6]),
    "view.dtype": lambda x: (x(3, 4), x.dtype),
    "view_as_complex": lambda x: (x(3, 2),),
    "view_as_real": lambda x: (x(3, 2),),
    "reflection_pad2d": lambda x: (x(1, 3, 4, 4), [1, 2, 1, 2]),
    "reflection_pad2d_backward": lambda x: (x(1, 3, 7, 7), x(1, 3, 4, 4), [1, 2, 1, 2]),
    "reflection_pad3d": lambda x: (x(1, 3, 4, 4, 4), [1, 2, 1, 2, 1, 1]),
    "reflection_pad3d_backward": lambda x: (x(1, 3, 6, 7, 7), x(1, 3, 4, 4, 4), [1, 2, 1, 2, 1, 1]),
    "replication_pad3d": lambda x: (x(1, 3, 4, 4, 4), [1, 2, 1, 2, 1, 1]),
    "replication_pad3d_backward": lambda x: (x(1, 3, 6, 7, 7), x(1, 3, 4, 4, 4), [1, 2, 1, 2, 1, 1]),
    "scatter.value_reduce": lambda x: ((x(3, 4), 1, torch.tensor([[1], [2], [0]]), x.number), {"reduce": "add"}),
    "mm.dtype": lambda x: (x(3, 4), x(4, 5), torch.float32),
    "bmm.dtype": lambda x: (x(2, 3, 4), x(2, 4, 5), torch.float32),
    "addmm.dtype": lambda x: (x(3, 5), x(3, 4), x(4, 5), torch.float32),
    "baddbmm.dtype": lambda x: (x(2, 3, 5), x(2, 3, 4), x(2, 4, 5), torch.float32),
    "random.to": lambda x: (x(3, 4), 5),
}  # fmt: skip
