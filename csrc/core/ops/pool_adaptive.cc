// Adaptive and fractional pooling: the window sizes follow from the result's size.
#include <algorithm>

#include "core/ops/pool.h"

namespace tpu::ops {

using namespace hlo;

namespace {

int64_t first(int64_t i, int64_t in, int64_t out) { return i * in / out; }
int64_t end(int64_t i, int64_t in, int64_t out) { return ((i + 1) * in + out - 1) / out; }

Taps averages(int64_t in, int64_t out) {
  Taps t{in, {}};
  for (int64_t i = 0; i < out; i++) {
    t.rows.emplace_back();
    const int64_t from = first(i, in, out), to = end(i, in, out);
    for (int64_t k = from; k < to; k++) t.rows.back().push_back({k, 1.0 / static_cast<double>(to - from)});
  }
  return t;
}

// The mean of each window, one by one.
Value window_means(Value x, int dim, int64_t out) {
  const int64_t in = x.size(dim);
  Values parts;
  for (int64_t i = 0; i < out; i++) {
    const int64_t from = first(i, in, out), to = end(i, in, out);
    parts.push_back(
        unsqueeze(reduce_sum(slice_dim(x, dim, from, to), {dim}) / static_cast<double>(to - from), dim));
  }
  return concatenate(parts, dim);
}

Results average(Call& c, int n) {
  constexpr int64_t kFew = 16;  // results: more would make a long program
  Value x = c.tensor("self", c.compute_dtype());
  if (c.out().elements() == 0) return full(c.b, 0, c.out());
  for (int d = x.rank() - n; d < x.rank(); d++) {
    const int64_t in = x.size(d), out = c.out().dims[d];
    if (in % out == 0) {  // equal windows side by side
      Dims split = x.dims();
      split[d] = out, split.insert(split.begin() + d + 1, in / out);
      x = reduce_sum(reshape(x, split), {d + 1}) / static_cast<double>(in / out);
    } else if (out <= kFew && in > out) {
      x = window_means(x, d, out);
    } else {
      x = apply(c, x, d, averages(in, out));
    }
  }
  return x;
}

Results average_backward(Call& c, int n) {
  Value grad = c.tensor("grad_output", c.compute_dtype());
  if (grad.elements() == 0) return full(c.b, 0, c.out());
  for (int d = grad.rank() - n; d < grad.rank(); d++) {
    const int64_t in = c.out().dims[d], out = grad.size(d);
    if (in % out == 0) {
      Dims spread = grad.dims(), merged = grad.dims(), map;
      spread.insert(spread.begin() + d + 1, in / out), merged[d] = in;
      for (int i = 0; i < grad.rank(); i++) map.push_back(i <= d ? i : i + 1);
      grad = reshape(broadcast_in_dim(grad / static_cast<double>(in / out), spread, map), merged);
    } else {
      grad = apply(c, grad, d, averages(in, out).transposed());
    }
  }
  return grad;
}

// The largest element of each region: `regions[d]` lists, for each result, equally many positions along
// dimension d (repeating one changes nothing). Equals: the first; NaNs: the last.
Values regional_max(Call& c, Value x, const std::vector<std::vector<std::vector<int64_t>>>& regions) {
  const int n = static_cast<int>(regions.size());
  Dims plane{1};
  for (int d = 0; d < n; d++) plane.push_back(x.size(d + 1));
  Value at = reshape(iota(c.b, DType::S32, {hlo::product(plane)}, 0), plane);
  Dims split{x.size(0)}, windows{0}, inside;
  for (int d = 0; d < n; d++) {
    std::vector<int64_t> index;
    for (const auto& region : regions[d]) index.insert(index.end(), region.begin(), region.end());
    x = take(x, index, d + 1), at = take(at, index, d + 1);
    windows.push_back(static_cast<int64_t>(split.size()));
    split.push_back(static_cast<int64_t>(regions[d].size()));
    inside.push_back(static_cast<int64_t>(split.size()));
    split.push_back(static_cast<int64_t>(regions[d][0].size()));
  }
  x = reshape(x, split);
  split[0] = 1;
  at = broadcast_to(reshape(at, split), x.dims());
  return hlo::reduce({x, at}, {lowest(c.b, x.dtype()), highest(c.b, DType::S32)}, inside, larger);
}

Results max_of(Call& c, int n, const std::vector<std::vector<std::vector<int64_t>>>& regions) {
  Values out = regional_max(c, planes(c.tensor("self"), n), regions);
  return {reshape(out[0], c.out(0).dims), reshape(convert(out[1], DType::S64), c.out(1).dims)};
}

Results maximum(Call& c, int n) {
  if (c.out(0).elements() == 0) return {full(c.b, 0, c.out(0)), full(c.b, 0, c.out(1))};
  const Dims self = c.tensor("self").dims();
  std::vector<std::vector<std::vector<int64_t>>> regions(n);
  for (int d = 0; d < n; d++) {
    const int at = static_cast<int>(self.size()) - n + d;
    const int64_t in = self[at], out = c.out(0).dims[at];
    int64_t most = 0;
    for (int64_t i = 0; i < out; i++) most = std::max(most, end(i, in, out) - first(i, in, out));
    for (int64_t i = 0; i < out; i++) {
      regions[d].emplace_back();
      for (int64_t k = 0; k < most; k++)
        regions[d].back().push_back(std::min(first(i, in, out) + k, end(i, in, out) - 1));
    }
  }
  return max_of(c, n, regions);
}

// Where the windows of a dimension start, [planes, out]: about evenly spaced, shifted by each plane's random
// sample (in [0, 1)), the last at the end.
Value random_starts(Value sample, int64_t in, int64_t out, int64_t size) {
  Builder& b = sample.builder();
  const Dims dims{sample.size(0), out};
  Value last = full(b, static_cast<double>(in - size), Type{DType::S32, dims});
  if (out == 1) return last;
  Value at = iota(b, sample.dtype(), dims, 1), u = unsqueeze(sample, 1);
  Value step = b.constant(static_cast<double>(in - size), u.dtype()) / static_cast<double>(out - 1);
  Value start = convert((at + u) * step, DType::S32) - convert(u * step, DType::S32);
  return select(equal(at, like(at, static_cast<double>(out - 1))), last, start);
}

Results fractional_max(Call& c, int n) {
  if (c.out(0).elements() == 0) return {full(c.b, 0, c.out(0)), full(c.b, 0, c.out(1))};
  Value x = planes(c.tensor("self"), n);
  const int64_t count = x.size(0);
  Value samples = reshape(c.tensor("random_samples", compute_type(c.dtype_of("random_samples"))), {count, n});
  const Dims size = c.ints("kernel_size");
  Dims inside, all{count};
  for (int d = 0; d < n; d++) {
    all.push_back(c.out(0).dims[c.out(0).rank() - n + d]), all.push_back(size[size.size() == 1 ? 0 : d]);
    inside.push_back(2 + 2 * d);
  }
  Value index = full(c.b, 0, Type{DType::S32, all});
  for (int d = 0; d < n; d++) {
    const int sample = n == 2 ? 1 - d : d;  // two dimensions: the samples are for width, then height
    Value start = random_starts(reshape(slice_dim(samples, 1, sample, sample + 1), {count}), x.size(d + 1),
                                all[1 + 2 * d], all[2 + 2 * d]);
    Value at = broadcast_in_dim(start, all, {0, 1 + 2 * d}) + iota(c.b, DType::S32, all, 2 + 2 * d);
    index = index * static_cast<double>(x.size(d + 1)) + at;
  }
  Value flat = reshape(x, {count, x.elements() / count});
  Value taken = reshape(take_along_dim(flat, reshape(index, {count, index.elements() / count}), 1), all);
  Values out =
      hlo::reduce({taken, index}, {lowest(c.b, x.dtype()), highest(c.b, DType::S32)}, inside, larger);
  return {reshape(out[0], c.out(0).dims), reshape(convert(out[1], DType::S64), c.out(1).dims)};
}

Results max_backward(Call& c, int n) {
  Value self = c.tensor("self");
  const DType t = compute_type(self.dtype());
  Value grad = planes(c.tensor("grad_output", t), n), index = planes(c.tensor("indices", DType::S32), n);
  if (self.elements() == 0 || grad.elements() == 0) return full_like(self, 0);
  const int64_t size = hlo::product(std::span(self.dims()).last(n));
  const Dims flat{grad.size(0), grad.elements() / grad.size(0)};
  Value out = scatter_planes(reshape(grad, flat), reshape(index, flat), size);
  return convert(reshape(out, self.dims()), self.dtype());
}

}  // namespace

void adaptive_pool(Table& t) {
  t.op("_adaptive_avg_pool2d", [](Call& c) { return average(c, 2); });
  t.op("_adaptive_avg_pool3d", [](Call& c) { return average(c, 3); });
  t.op("_adaptive_avg_pool2d_backward", [](Call& c) { return average_backward(c, 2); });
  t.op("_adaptive_avg_pool3d_backward", [](Call& c) { return average_backward(c, 3); });
  t.op("fractional_max_pool2d", [](Call& c) { return fractional_max(c, 2); });
  t.op("fractional_max_pool3d", [](Call& c) { return fractional_max(c, 3); });
  t.op("adaptive_max_pool2d", [](Call& c) { return maximum(c, 2); });
  t.op("adaptive_max_pool3d", [](Call& c) { return maximum(c, 3); });
  t.op("adaptive_max_pool2d_backward fractional_max_pool2d_backward",
       [](Call& c) { return max_backward(c, 2); });
  t.op("adaptive_max_pool3d_backward", [](Call& c) { return max_backward(c, 3); });
  t.op("fractional_max_pool3d_backward", [](Call& c) { return max_backward(c, 3); }, {.infer = true});
}

}  // namespace tpu::ops
