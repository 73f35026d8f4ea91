#include "core/ops/conv_layout.h"

#include <numeric>

namespace tpu::ops {

using namespace hlo;

namespace {

// Dimensions of a channels-first operand after `order`: its positions of batch, feature and spatial dimensions.
Dims iota_from(int64_t first, size_t count) {
  Dims out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

// [first, second, spatial...] -> the spatial dimensions between or before them.
Dims channels_last(size_t spatial) {
  Dims p{0};
  for (size_t i = 0; i < spatial; i++) p.push_back(2 + i);
  p.push_back(1);
  return p;
}

Dims channels_first(size_t spatial) {
  Dims p{0, static_cast<int64_t>(spatial) + 1};
  for (size_t i = 0; i < spatial; i++) p.push_back(1 + i);
  return p;
}

// [O, I, spatial...] -> [spatial..., I, O]
Dims kernel_last(size_t spatial) {
  Dims p = iota_from(2, spatial);
  p.push_back(1), p.push_back(0);
  return p;
}

ConvWindow conv_window(const SpatialWindow& w) {
  return {w.stride, w.input_dilation, w.kernel_dilation, w.padding, {}};
}

}  // namespace

DType conv_type(Call& c, DType dtype) {
  return c.lowering.platform == Platform::Cpu ? compute_type(dtype) : dtype;
}

Value convolve(Call& c, Value x, Value w, const SpatialWindow& window, int64_t groups) {
  const size_t n = window.stride.size();
  if (c.lowering.platform != Platform::Cpu) {
    const Dims spatial = iota_from(2, n);
    return convolution(x, w, {0, 1, 1, 0, 0, 1, spatial, spatial, spatial}, conv_window(window), groups);
  }
  const int64_t last = static_cast<int64_t>(n);
  const ConvDims d{0, last + 1, last, last + 1, 0, last + 1, iota_from(1, n), iota_from(0, n), iota_from(1, n)};
  Value y = convolution(transpose(x, channels_last(n)), transpose(w, kernel_last(n)), d, conv_window(window), groups);
  return transpose(y, channels_first(n));
}

Value correlate(Call& c, Value x, Value y, const SpatialWindow& window, int64_t groups) {
  const size_t n = window.stride.size();
  const int64_t last = static_cast<int64_t>(n);
  if (c.lowering.platform != Platform::Cpu) {
    // Batch and feature swap roles: the channels of x become the batch, in groups.
    const Dims spatial = iota_from(2, n);
    return convolution(x, y, {1, 0, 0, 1, 1, 0, spatial, spatial, spatial}, conv_window(window), 1, groups);
  }
  // Without batch groups: [N, g, C', ...] -> [C', ..., g N], so that each group is a feature group.
  const int64_t batch = x.size(0), channels = x.size(1) / groups;
  Dims split{batch, groups, channels};
  split.insert(split.end(), x.dims().begin() + 2, x.dims().end());
  Dims order{2};
  for (size_t i = 0; i < n; i++) order.push_back(3 + i);
  order.push_back(1), order.push_back(0);
  Dims merged{channels};
  merged.insert(merged.end(), x.dims().begin() + 2, x.dims().end());
  merged.push_back(groups * batch);
  Dims kernel = iota_from(2, n);
  kernel.push_back(0), kernel.push_back(1);
  const ConvDims d{0, last + 1, last, last + 1, 0, last + 1, iota_from(1, n), iota_from(0, n), iota_from(1, n)};
  Value out = convolution(reshape(transpose(reshape(x, split), order), merged), transpose(y, kernel), d,
                          conv_window(window), groups);
  Dims back{last + 1, 0};  // [C', k..., O] -> [O, C', k...]
  for (size_t i = 0; i < n; i++) back.push_back(1 + i);
  return transpose(out, back);
}

}  // namespace tpu::ops
