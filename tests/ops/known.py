"""What the sweep over PyTorch's operator samples makes of operators that cannot equal the CPU's results.

An entry of KNOWN that passes fails its test, so that the list says what is.
"""

from __future__ import annotations

# Operator (with its variant) -> check ("forward", "gradient", "in-place", "out", with or without a dtype, or "all") -> reason.
KNOWN: dict[str, dict[str, str]] = {}

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

# (values, positions) where any of several equal elements may be chosen.
POSITIONS: set[str] = {
    "topk", "kthvalue", "median", "nanmedian", "mode", "sort", "msort", "cummax", "cummin", "max_reduction_with_dim",
    "min_reduction_with_dim",
}  # fmt: skip

# Operator -> (rtol, atol, reason) where torch.testing's tolerances and those of PyTorch's own tests are too narrow.
TOLERANCES: dict[str, tuple[float, float, str]] = {}
