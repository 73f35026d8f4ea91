// Padding with a constant, by reflection and by replication, and the backwards.
#include <algorithm>

#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// One dimension at a time; low and high may be negative (cropping).
using PadDim = Value (*)(Value x, int dim, int64_t low, int64_t high);

Value crop(Value x, int dim, int64_t low, int64_t high) {
  return slice_dim(x, dim, std::max<int64_t>(-low, 0), x.size(dim) - std::max<int64_t>(-high, 0));
}

// Zeros around x, negative amounts crop.
Value widen(Value x, int dim, int64_t low, int64_t high) {
  Dims lows(x.rank(), 0), highs(x.rank(), 0);
  lows[dim] = low, highs[dim] = high;
  return pad(x, like(x, 0), lows, highs);
}

Value reflect(Value x, int dim, int64_t low, int64_t high) {
  const int64_t n = x.size(dim);
  Values parts;
  if (low > 0) parts.push_back(reverse(slice_dim(x, dim, 1, low + 1), {dim}));
  parts.push_back(crop(x, dim, low, high));
  if (high > 0) parts.push_back(reverse(slice_dim(x, dim, n - 1 - high, n - 1), {dim}));
  return concatenate(parts, dim);
}

// g has the padded size; the result has n = size - low - high.
Value reflect_backward(Value g, int dim, int64_t low, int64_t high) {
  const int64_t size = g.size(dim), n = size - low - high;
  Value out = widen(g, dim, -low, -high);
  if (low > 0) out = out + widen(reverse(slice_dim(g, dim, 0, low), {dim}), dim, 1, n - 1 - low);
  if (high > 0) out = out + widen(reverse(slice_dim(g, dim, size - high, size), {dim}), dim, n - 1 - high, 1);
  return out;
}

Value replicate(Value x, int dim, int64_t low, int64_t high) {
  const int64_t n = x.size(dim);
  const auto edge = [&](int64_t at, int64_t times) {
    Dims dims = x.dims();
    dims[dim] = times;
    return broadcast_to(slice_dim(x, dim, at, at + 1), dims);
  };
  Values parts;
  if (low > 0) parts.push_back(edge(0, low));
  parts.push_back(crop(x, dim, low, high));
  if (high > 0) parts.push_back(edge(n - 1, high));
  return concatenate(parts, dim);
}

Value replicate_backward(Value g, int dim, int64_t low, int64_t high) {
  const int64_t size = g.size(dim), n = size - low - high;
  const auto sum = [&](int64_t from, int64_t to) {
    return unsqueeze(reduce_sum(slice_dim(g, dim, from, to), {dim}), dim);
  };
  Value out = widen(g, dim, -low, -high);
  if (low > 0) out = out + widen(sum(0, low), dim, 0, n - 1);
  if (high > 0) out = out + widen(sum(size - high, size), dim, n - 1, 0);
  return out;
}

// `padding` holds (low, high) pairs from the last dimension backwards.
Value each_dim(Call& c, Value x, PadDim f) {
  const Dims amounts = c.ints("padding");
  if (c.out().elements() == 0) return full(c.b, 0, c.out());
  for (size_t i = 0; i < amounts.size() / 2; i++)
    x = f(x, x.rank() - 1 - static_cast<int>(i), amounts[2 * i], amounts[2 * i + 1]);
  return x;
}

template <PadDim f>
Results forward(Call& c) {
  return each_dim(c, c.tensor("self"), f);
}

template <PadDim f>
Results backward(Call& c) {
  return each_dim(c, c.tensor("grad_output", c.compute_dtype()), f);
}

}  // namespace

void pad(Table& t) {
  t.op("constant_pad_nd", [](Call& c) -> Results {
    Value x = c.tensor("self");
    const Dims amounts = c.ints("pad");
    Dims low(x.rank(), 0), high(x.rank(), 0);
    for (size_t i = 0; i < amounts.size() / 2; i++) {
      low[x.rank() - 1 - i] = amounts[2 * i];
      high[x.rank() - 1 - i] = amounts[2 * i + 1];
    }
    return hlo::pad(x, c.scalar("value", x.dtype()), low, high);
  });
  t.op("reflection_pad1d reflection_pad2d reflection_pad3d", forward<reflect>);
  t.op("reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward",
       backward<reflect_backward>);
  t.op("replication_pad1d replication_pad2d replication_pad3d", forward<replicate>);
  t.op("replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward",
       backward<replicate_backward>);
}

}  // namespace tpu::ops
