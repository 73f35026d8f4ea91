"""What the sweep over PyTorch's operator samples makes of operators that cannot equal the CPU's results.

An entry of KNOWN that passes fails its test, so that the list says what is.
"""

from __future__ import annotations

_NO_SPARSE = "the device has dense tensors only"
_OUTSIDE = "it reads the storage outside of its input, which a copy to a device leaves behind"
_STATISTICS = "saved statistics are as on CUDA: of float32, and there in evaluation too"

# Operator (with its variant) -> check -> reason. A check is "forward", "gradient", "in-place" or "out", with a dtype or
# without (then it fails for every dtype), or "all".
KNOWN: dict[str, dict[str, str]] = {
    "as_strided_partial_views": {"forward": _OUTSIDE, "gradient": _OUTSIDE},
    "chalf": {"all": "no compiler has half complex numbers"},
    "logcumsumexp": {
        "forward complex64": "the phase is right up to a multiple of 2 pi, which depends on the order of summation"
    },
    "native_batch_norm": {"forward": _STATISTICS, "out": _STATISTICS},
    "native_layer_norm": {"forward bfloat16": _STATISTICS},
    "_native_batch_norm_legit": {"forward": _STATISTICS, "out": _STATISTICS},
    "_batch_norm_with_update": {"forward bfloat16": _STATISTICS},
    "sparse_mm_reduce": {"forward": _NO_SPARSE, "gradient": _NO_SPARSE},
    "sparse_sampled_addmm": {"all": _NO_SPARSE},
    "to_sparse": {"forward": _NO_SPARSE, "gradient": _NO_SPARSE},
}

# Results that differ from the CPU's by nature: only their number, shapes and dtypes are compared.
RANDOM: set[str] = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "normal", "normal_in_place", "normal_number_mean",
    "uniform", "rand_like", "randn", "randn_like", "randint", "randint_like", "multinomial", "binomial", "poisson",
    "nn_functional_dropout", "nn_functional_dropout2d", "nn_functional_dropout3d", "nn_functional_alpha_dropout",
    "nn_functional_feature_alpha_dropout_with_train", "nn_functional_fractional_max_pool2d",
    "nn_functional_fractional_max_pool3d", "nn_functional_rrelu", "svd_lowrank", "pca_lowrank",
    # no values are promised
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
}  # fmt: skip

# (values, positions), or positions, where any of several equal elements may be chosen.
POSITIONS: set[str] = {
    "topk", "kthvalue", "median", "nanmedian", "mode", "sort", "cummax", "cummin", "max_reduction_with_dim",
    "min_reduction_with_dim", "argsort",
}  # fmt: skip

# Operators whose tensor arguments beside the input stay on the CPU, on every device.
HOST_ARGUMENTS: set[str] = {"tensor_split"}

# (operator, what is compared) -> (rtol, atol, reason) where the tolerances of op_db.py are too narrow.
TOLERANCES: dict[tuple[str, str], tuple[float, float, str]] = {
    ("logcumsumexp", "gradient"): (1e-2, 1e-2, "it cancels: CPU torch is 2e-3 off the float64 result, the device 3e-3"),
}
