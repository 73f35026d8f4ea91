#include "core/ops/conv_layout.h"

#include <algorithm>
#include <numeric>

namespace tpu::ops {

using namespace hlo;

namespace {

// first, first + 1, ...: `count` of them.
Dims iota_from(int64_t first, size_t count) {
  Dims out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

// The permutation [N, C, spatial...] -> [N, spatial..., C], and back.
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

bool all(const Dims& dims, int64_t value) {
  return std::all_of(dims.begin(), dims.end(), [value](int64_t d) { return d == value; });
}

bool is_plain(const SpatialWindow& w) {
  const bool unpadded =
      std::all_of(w.padding.begin(), w.padding.end(), [](auto p) { return p.first == 0 && p.second == 0; });
  return unpadded && all(w.stride, 1) && all(w.input_dilation, 1) && all(w.kernel_dilation, 1);
}

Dims flat(Value x) { return {x.size(0), x.size(1), hlo::product(std::span(x.dims()).subspan(2))}; }

// From here on an image has so many positions that its product needs no other images to be fast.
constexpr int64_t kLargeImage = 512;

// A kernel of one element is a matrix [O, C]. Small images are multiplied together, as one matrix [N
// positions, C].
Value pointwise(Value x, Value w) {
  Dims dims = x.dims();
  const int64_t batch = x.size(0), channels = x.size(1), outs = w.size(0), positions = flat(x)[2];
  dims[1] = outs;
  Value matrix = reshape(w, {outs, channels}), images = reshape(x, {batch, channels, positions});
  if (positions >= kLargeImage)
    return reshape(
        dot_general(broadcast_in_dim(matrix, {batch, outs, channels}, {1, 2}), images, {0}, {0}, {2}, {1}),
        dims);
  Value rows = reshape(swap_dims(images, 1, 2), {batch * positions, channels});
  Value y = reshape(dot_general(rows, matrix, {}, {}, {1}, {1}), {batch, positions, outs});
  return reshape(swap_dims(y, 1, 2), dims);
}

// Up to here a depthwise kernel is a sum of shifted images, which fuses into one loop.
constexpr int64_t kShifts = 49;

// Every channel with a kernel of its own, [C, 1, ...].
Value depthwise(Value x, Value w, const SpatialWindow& window) {
  const int n = static_cast<int>(window.stride.size());
  Dims low{0, 0}, high{0, 0}, inside{0, 0};
  for (int d = 0; d < n; d++) {
    low.push_back(window.padding[d].first), high.push_back(window.padding[d].second);
    inside.push_back(window.input_dilation[d] - 1);
  }
  x = pad(x, like(x, 0), low, high, inside);
  const Dims kernel(w.dims().begin() + 2, w.dims().end());
  Value sum;
  for (int64_t tap = 0; tap < hlo::product(kernel); tap++) {
    Dims start{0, 0}, limit{x.size(0), x.size(1)}, step{1, 1}, at{0, 0}, at_end{w.size(0), 1};
    int64_t rest = tap;
    for (int d = n - 1; d >= 0; d--) {
      const int64_t k = rest % kernel[d], first = k * window.kernel_dilation[d];
      rest /= kernel[d];
      const int64_t reach = (kernel[d] - 1) * window.kernel_dilation[d];
      start.insert(start.begin() + 2, first), limit.insert(limit.begin() + 2, x.size(2 + d) - reach + first);
      step.insert(step.begin() + 2, window.stride[d]);
      at.insert(at.begin() + 2, k), at_end.insert(at_end.begin() + 2, k + 1);
    }
    Value weight = reshape(slice(w, at, at_end), {w.size(0)}), image = slice(x, start, limit, step);
    Value part = image * broadcast_in_dim(weight, image.dims(), {1});
    sum = sum ? sum + part : part;
  }
  return sum;
}

}  // namespace

DType conv_type(Call& c, DType dtype) {
  return c.lowering.platform == Platform::Cpu ? compute_type(dtype) : dtype;
}

namespace {

// XLA has none outside its CPU device, and says so in terms of its own passes.
void refuse_wide_integers(Call& c, Value x) {
  if (x.dtype() == DType::S64 || x.dtype() == DType::U64)
    throw Error(Code::Unimplemented, c.op(),
                "the TPU compiler has no convolution of 64-bit integers: convert to int32 or float32 first");
}

}  // namespace

Value convolve(Call& c, Value x, Value w, const SpatialWindow& window, int64_t groups) {
  const size_t n = window.stride.size();
  if (c.lowering.platform != Platform::Cpu) {
    refuse_wide_integers(c, x);
    const Dims spatial = iota_from(2, n);
    return convolution(x, w, {0, 1, 1, 0, 0, 1, spatial, spatial, spatial}, conv_window(window), groups);
  }
  const int64_t last = static_cast<int64_t>(n), taps = hlo::product(std::span(w.dims()).subspan(2));
  if (taps == 1 && groups == 1 && is_plain(window)) return pointwise(x, w);
  if (groups > 1 && groups == x.size(1) && groups == w.size(0) && taps <= kShifts)
    return depthwise(x, w, window);
  const ConvDims d{
      0, last + 1, last, last + 1, 0, last + 1, iota_from(1, n), iota_from(0, n), iota_from(1, n)};
  Value y = convolution(transpose(x, channels_last(n)), transpose(w, kernel_last(n)), d, conv_window(window),
                        groups);
  return transpose(y, channels_first(n));
}

Value correlate(Call& c, Value x, Value y, const SpatialWindow& window, int64_t groups) {
  const size_t n = window.stride.size();
  const int64_t last = static_cast<int64_t>(n);
  if (c.lowering.platform != Platform::Cpu) {
    refuse_wide_integers(c, x);
    // Batch and feature swap roles: the channels of x become the batch, in groups.
    const Dims spatial = iota_from(2, n);
    return convolution(x, y, {1, 0, 0, 1, 1, 0, spatial, spatial, spatial}, conv_window(window), 1, groups);
  }
  if (groups == 1 && is_plain(window) && flat(x) == Dims{x.size(0), x.size(1), flat(y)[2]}) {
    Dims dims(n + 2, 1);
    dims[0] = y.size(1), dims[1] = x.size(1);
    return reshape(dot_general(reshape(y, flat(y)), reshape(x, flat(x)), {}, {}, {0, 2}, {0, 2}), dims);
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
  const ConvDims d{
      0, last + 1, last, last + 1, 0, last + 1, iota_from(1, n), iota_from(0, n), iota_from(1, n)};
  Value out = convolution(reshape(transpose(reshape(x, split), order), merged), transpose(y, kernel), d,
                          conv_window(window), groups);
  Dims back{last + 1, 0};  // [C', k..., O] -> [O, C', k...]
  for (size_t i = 0; i < n; i++) back.push_back(1 + i);
  return transpose(out, back);
}

}  // namespace tpu::ops
