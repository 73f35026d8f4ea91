// Convolutions on channels-first operands, laid out and decomposed as suits the platform's compiler.
#pragma once

#include "core/ops/call.h"

namespace tpu::ops {

/// Of the spatial dimensions only.
struct SpatialWindow {
  Dims stride, input_dilation, kernel_dilation;
  std::vector<std::pair<int64_t, int64_t>> padding;  // negative crops
};

/// The type to convolve tensors of `dtype` in: XLA's CPU device has fast code for f32 only.
DType conv_type(Call& c, DType dtype);

/// x [N, C, ...], w [O, C/groups, ...] -> [N, O, ...].
Value convolve(Call& c, Value x, Value w, const SpatialWindow& window, int64_t groups);

/// Sums over the batch: x [N, C, ...], y [N, O, ...] -> [O, C/groups, ...], where y is the window that moves
/// over x.
Value correlate(Call& c, Value x, Value y, const SpatialWindow& window, int64_t groups);

}  // namespace tpu::ops
