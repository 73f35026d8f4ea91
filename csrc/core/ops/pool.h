// What the pooling families share: planes of the last two or three dimensions.
#pragma once

#include "core/ops/table.h"
#include "core/ops/taps.h"

namespace tpu::ops {

/// Adds (or, with `replace`, writes) the values to zero planes of `size` elements: values and index are
/// [planes, n].
Value scatter_planes(Value values, Value index, int64_t size, bool replace = false);
/// All dimensions before the last `n` in one: [planes, last n...].
Value planes(Value x, int n);

/// A reducer of (element, position): the largest element, of equals the first; of NaNs, which win, the last.
Values larger(const Values& left, const Values& right);

void average_pool(Table& t);   // pool_average.cc
void fixed_pool(Table& t);     // pool_max.cc
void adaptive_pool(Table& t);  // pool_adaptive.cc

}  // namespace tpu::ops
