// Sampling an image at the points of a grid, and the backward by image and grid.
#include <cmath>

#include "core/ops/resample.h"

namespace tpu::ops {

using namespace hlo;

namespace {

enum Mode : int64_t { kBilinear = 0, kNearest = 1, kBicubic = 2 };
enum Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

// A coordinate in elements with its derivative by the grid's value.
struct Coordinate {
  Value at, slope;
};

struct Sampler {
  Mode mode;
  Padding padding;
  bool align;

  Coordinate unnormalised(Value g, int64_t size) const {
    const double n = static_cast<double>(size);
    if (align) return {(g + 1.0) / 2.0 * (n - 1), full_like(g, (n - 1) / 2)};
    return {((g + 1.0) * n - 1.0) / 2.0, full_like(g, n / 2)};
  }

  Coordinate clipped(Coordinate c, int64_t size) const {
    const double last = static_cast<double>(size - 1);
    Value inside = (c.at > 0.0) & (c.at < last);
    return {minimum(maximum(c.at, like(c.at, 0)), like(c.at, last)),
            select(inside, c.slope, full_like(c.slope, 0))};
  }

  // Back and forth between the centres (align) or the borders of the first and the last element.
  Coordinate reflected(Coordinate c, int64_t size) const {
    const double low = align ? 0 : -0.5,
                 span = align ? static_cast<double>(size - 1) : static_cast<double>(size);
    if (span == 0) return {full_like(c.at, 0), full_like(c.slope, 0)};
    Value d = c.at - low, far = abs(d);
    Value turns = floor(far / span), extra = far - turns * span;
    Value odd = not_equal(turns - 2.0 * floor(turns / 2.0), like(turns, 0));
    Value at = select(odd, span - extra, extra) + low;
    Value sign = select(d < 0.0, full_like(d, -1), full_like(d, 1));
    return {at, c.slope * select(odd, -sign, sign)};
  }

  Coordinate padded(Coordinate c, int64_t size) const {
    if (padding == kReflection) c = reflected(c, size);
    return padding == kZeros ? c : clipped(c, size);
  }

  // The neighbours of a coordinate along one dimension: where, how much, and how that changes with the grid.
  struct Neighbour {
    Value index, inside, weight, slope;
  };

  std::vector<Neighbour> neighbours(Value g, int64_t size) const {
    Coordinate c = unnormalised(g, size);
    if (mode != kBicubic) c = padded(c, size);
    Value base = mode == kNearest ? round_even(c.at) : floor(c.at), f = c.at - base;
    Value one = full_like(f, 1), zero = full_like(f, 0);
    const double last = static_cast<double>(size - 1);
    const auto neighbour = [&](Value at, Value weight, Value slope) {
      Value inside = (at >= 0.0) & (at <= last);
      Value index = convert(
          minimum(maximum(select(inside, at, full_like(at, 0)), like(at, 0)), like(at, last)), DType::S32);
      return Neighbour{index, inside, weight, slope * c.slope};
    };
    if (mode == kNearest) return {neighbour(base, one, zero)};
    if (mode == kBilinear) return {neighbour(base, 1.0 - f, -one), neighbour(base + 1.0, f, one)};
    std::vector<Neighbour> out;
    for (int k = -1; k <= 2; k++) {
      // Keys' kernel, a = -0.75, at distance |f - k|.
      constexpr double a = -0.75;
      const bool near = k == 0 || k == 1;
      Value x = k <= 0 ? f - static_cast<double>(k) : static_cast<double>(k) - f;
      Value weight = near ? ((a + 2) * x - (a + 3)) * x * x + 1.0 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
      Value slope = near ? (3 * (a + 2) * x - 2 * (a + 3)) * x : (3 * a * x - 10 * a) * x + 8 * a;
      if (k > 0) slope = -slope;
      Value at = base + static_cast<double>(k);
      out.push_back(neighbour(padded({at, zero}, size).at, weight, slope));
    }
    return out;
  }
};

Sampler sampler(Call& c) {
  return {static_cast<Mode>(c.integer("interpolation_mode")), static_cast<Padding>(c.integer("padding_mode")),
          c.flag("align_corners")};
}

// One point of the product of all dimensions' neighbours, [N, points].
struct Corner {
  Value index, inside, weight;
  Values slopes;  // of the weight by each grid coordinate, in the order of the spatial dimensions
};

struct Points {
  Value image;  // [N, C, elements]
  std::vector<Corner> corners;
  int64_t elements;
};

Points points(Call& c) {
  Value x = c.tensor("input");
  const DType t = compute_type(x.dtype());
  x = convert(x, t);
  const int n = x.rank() - 2;
  Value grid = c.tensor("grid", t);
  const int64_t batch = x.size(0), count = batch ? grid.elements() / batch / n : 0;
  grid = reshape(grid, {batch, count, n});
  const Sampler s = sampler(c);
  Points p;
  p.elements = x.elements() / std::max<int64_t>(batch * x.size(1), 1);
  p.image = reshape(x, {batch, x.size(1), p.elements});
  for (int d = 0; d < n; d++) {
    // The grid lists coordinates from the last dimension to the first.
    Value g = reshape(slice_dim(grid, 2, n - 1 - d, n - d), {batch, count});
    const auto along = s.neighbours(g, x.size(2 + d));
    std::vector<Corner> grown;
    for (const auto& k : along) {
      if (d == 0) {
        grown.push_back({k.index, k.inside, k.weight, {k.slope}});
        continue;
      }
      for (const Corner& corner : p.corners) {
        Corner next{corner.index * static_cast<double>(x.size(2 + d)) + k.index,
                    corner.inside & k.inside,
                    corner.weight * k.weight,
                    {}};
        for (Value slope : corner.slopes) next.slopes.push_back(slope * k.weight);
        next.slopes.push_back(corner.weight * k.slope);
        grown.push_back(next);
      }
    }
    p.corners = grown;
  }
  // Computed once, and not again for every channel.
  if (x.size(1) > 1)
    for (Corner& k : p.corners)
      for (Value* v : {&k.index, &k.inside, &k.weight}) *v = optimization_barrier(*v);
  return p;
}

// The image at a corner of every point, 0 outside: [N, C, points].
Value values(const Points& p, const Corner& k) {
  const int64_t n = p.image.size(0), channels = p.image.size(1), count = k.index.size(1);
  GatherDims d;
  d.offset_dims = {1}, d.collapsed_slice_dims = {2}, d.start_index_map = {2};
  d.operand_batching_dims = {0}, d.indices_batching_dims = {0}, d.index_vector_dim = 2;
  Value v = gather(p.image, k.index, d, {1, channels, 1}, {n, channels, count});
  return select(broadcast_in_dim(k.inside, v.dims(), {0, 2}), v, full_like(v, 0));
}

Value per_channel(Value v, const Dims& dims) { return broadcast_in_dim(v, dims, {0, 2}); }

Results forward(Call& c) {
  if (c.out().elements() == 0) return full(c.b, 0, c.out());
  const Points p = points(c);
  Value sum;
  for (const Corner& k : p.corners) {
    Value v = values(p, k);
    v = v * per_channel(k.weight, v.dims());
    sum = sum ? sum + v : v;
  }
  return reshape(sum, c.out().dims);
}

Results backward(Call& c) {
  const std::vector<bool> wanted = c.flags("output_mask");
  Value input = c.tensor("input"), grid = c.tensor("grid");
  Value grad = c.tensor("grad_output", compute_type(input.dtype()));
  Values out(2);
  if (grad.elements() == 0 || input.elements() == 0) {
    if (wanted[0]) out[0] = full_like(input, 0);
    if (wanted[1]) out[1] = full_like(grid, 0);
    return out;
  }
  const Points p = points(c);
  const int64_t batch = input.size(0), channels = input.size(1), count = p.corners[0].index.size(1);
  const Dims dims{batch, channels, count};
  grad = reshape(grad, dims);
  if (wanted[0]) {
    // Every corner in one scatter, all channels of a point at once: [N, elements, C].
    Values shares, indices;
    for (const Corner& k : p.corners) {
      Value share = grad * per_channel(k.weight, dims);
      shares.push_back(swap_dims(select(per_channel(k.inside, dims), share, full_like(share, 0)), 1, 2));
      indices.push_back(k.index);
    }
    ScatterDims d;
    d.update_window_dims = {2}, d.inserted_window_dims = {1}, d.scatter_dims_to_operand_dims = {1};
    d.input_batching_dims = {0}, d.indices_batching_dims = {0}, d.index_vector_dim = 2;
    Value zero = full(c.b, 0, Type{grad.dtype(), {batch, p.elements, channels}});
    Value sum = scatter(zero, concatenate(indices, 1), concatenate(shares, 1), d, add);
    out[0] = reshape(swap_dims(sum, 1, 2), input.dims());
  }
  if (wanted[1]) {
    const size_t n = p.corners[0].slopes.size();
    Values sums(n);
    for (const Corner& k : p.corners) {
      Value v = reduce_sum(values(p, k) * grad, {1});
      for (size_t d = 0; d < n; d++) sums[d] = sums[d] ? sums[d] + v * k.slopes[d] : v * k.slopes[d];
    }
    Values columns;
    for (size_t d = n; d-- > 0;) columns.push_back(unsqueeze(sums[d], 2));
    out[1] = reshape(concatenate(columns, 2), grid.dims());
  }
  return out;
}

}  // namespace

void grid_sampler(Table& t) {
  t.op("grid_sampler_2d grid_sampler_3d", forward);
  t.op("grid_sampler_2d_backward grid_sampler_3d_backward", backward);
}

}  // namespace tpu::ops
