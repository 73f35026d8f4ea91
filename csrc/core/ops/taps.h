// Sparse linear maps along one dimension, known when the program is built: interpolation, adaptive averages,
// unfolding, and (transposed) the backwards of all of these.
#pragma once

#include <utility>
#include <vector>

#include "core/ops/call.h"

namespace tpu::ops {

struct Taps {
  int64_t in = 0;                                             // size before
  std::vector<std::vector<std::pair<int64_t, double>>> rows;  // what each result is the weighted sum of

  int64_t out() const { return static_cast<int64_t>(rows.size()); }
  Taps transposed() const;
};

/// Elements `index` of dimension `dim` (all in range), which gets their number as its size.
Value take(Value x, const std::vector<int64_t>& index, int dim);
/// The map applied to dimension `dim`, in x's dtype. A result without taps is zero.
Value apply(Call& c, Value x, int dim, const Taps& taps);
/// A 1-d constant of these numbers.
Value reals(hlo::Builder& b, const std::vector<double>& values, DType dtype);

}  // namespace tpu::ops
