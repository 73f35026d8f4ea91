// Ordering and counting along a dimension, shared by the index, sort and random families.
#pragma once

#include <utility>

#include "core/ops/call.h"

namespace tpu::ops {

/// The integer type wide enough for positions below n.
inline DType position_type(int64_t n) { return n < (int64_t{1} << 31) ? DType::S32 : DType::S64; }

/// Where each value goes in the sorted sequence: the number of elements below it (right: not above it), as
/// `torch.searchsorted` counts. sequence [.., n], values [.., m] with the same leading dimensions -> [.., m]
/// of position_type(n).
Value search(Value sequence, Value values, bool right);

/// Stable order along dim: NaN counts as largest and -0.0 equals 0.0. Gives the values and their positions
/// (position_type). Bool is ordered too; complex is not.
std::pair<Value, Value> order(Call& c, Value x, int dim, bool descending);

/// Positions of the k largest (smallest) along the last dimension, best first; order()'s rules.
Value best(Call& c, Value x, int64_t k, bool largest);

/// The elements of the 1-d `x` where the 1-d `mask` is true, first and in their order; what follows is
/// unspecified.
Value compact(Call& c, Value x, Value mask);
/// Where they come from (position_type), in range.
Value compact(Call& c, Value mask);

}  // namespace tpu::ops
