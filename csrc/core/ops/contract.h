// Matrix products for the families that need one: the accumulation type is chosen in one place.
#pragma once

#include "core/ops/call.h"

namespace tpu::ops {

/// dot_general whose result is in the compute type of the operands' (equal) dtype: halves add up in f32 and
/// are rounded once, by the caller. Result dimensions: batch, rest of x, rest of y.
Value product(Call& c, Value x, Value y, const Dims& x_batch, const Dims& y_batch, const Dims& x_contract,
              const Dims& y_contract);

/// reduce_sum. Where XLA's CPU device would add up contiguous elements one by one (trailing dimensions of
/// floats), they are multiplied by ones instead: its matrix product is several times as fast, and exact in
/// NaN and infinities.
Value fast_sum(Call& c, Value x, const Dims& dims);

}  // namespace tpu::ops
