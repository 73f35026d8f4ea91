#include "core/ops/tridiagonal.h"

#include <cmath>
#include <limits>
#include <tuple>

#include "core/ops/math.h"

namespace tpu::ops {

using namespace hlo;

// A matrix is cut in two by taking |b| off the two diagonal elements beside an off-diagonal b. What is left
// over is the rank-one matrix |b| u u^T, with ones of b's sign in two places of u. With the halves'
// eigenvectors Q this is D + |b| z z^T, z = Q^T u, and its eigenvalues are the roots of 1 + |b| sum z_i^2 /
// (d_i - x), one between any two neighbouring d. All halves are merged at once; and all roots are found at
// once, by bisection, which takes the same number of steps for each.
//
// Matrices are scaled so that their largest element is 1. The first levels merge inside blocks of at most 32,
// one loop for all of them, in which the `node` of an element says which of the block's matrices it belongs
// to. Above that a block is one matrix, and each level has twice as large ones.

namespace {

double epsilon(DType t) { return t == DType::F64 ? 0x1p-52 : 0x1p-23; }

Value rows_of(Value x) { return unsqueeze(x, 2); }     // [r, w] along the first index of [r, w, w]
Value columns_of(Value x) { return unsqueeze(x, 1); }  // along the second

// The sums over the first index of [r, w, w], as a product: XLA's CPU device adds up columns one number at a
// time.
Value sum_rows(Value x) {
  return squeeze(times(full(x.builder(), 1, {x.dtype(), {x.size(0), 1, x.size(1)}}), x), 1);
}

/// Matrices D + rho z z^T in rows of blocks: d, z, rho [r, w]; node S32 [1, w], ascending.
struct RankOne {
  Value d, z, rho, node;
};

struct Merged {
  Value values;   // [r, w]
  Value vectors;  // [r, w, w]: of D + rho z z^T, rows in the order of d
};

// Where `keep` holds, raises d to be at least a step above all kept elements before it: the roots between
// elements that are equal would have no place. The change is of the size of rounding errors.
Value spread(Value d, Value same, Value keep) {
  const int64_t w = d.size(1);
  Builder& b = d.builder();
  Value ramp = convert(iota(b, DType::S32, {1, w}, 1), d.dtype()) * epsilon(d.dtype());
  Value before = same & columns_of(keep) & logical_not(above_diagonal(b, w, w));
  Value low = select(before, columns_of(d - ramp), lowest(b, d.dtype()));
  return select(keep, maximum(d, reduce_max(low, {2}) + ramp), d);
}

Merged merge(const RankOne& m) {
  Builder& b = m.d.builder();
  const DType t = m.d.dtype();
  const int64_t r = m.d.size(0), w = m.d.size(1);
  // Elements with a small z are eigenvalues as they are. They go to the end of their matrix, the others in
  // ascending order before them.
  Value apart = m.rho * abs(m.z) <= 4 * epsilon(t);
  Value key = broadcast_to(m.node, {r, w}) * 2.0 + convert(apart, DType::S32);
  Values sorted = hlo::sort(
      {key, m.d, m.z, m.rho * m.z * m.z, iota(b, DType::S32, {r, w}, 1)}, 1, true,
      [](const Values& x, const Values& y) { return (x[0] < y[0]) | (equal(x[0], y[0]) & (x[1] < y[1])); });
  Value z = sorted[2], order = rows_of(sorted[4]);
  Value kept = equal(sorted[0] & like(key, 1), like(key, 0));
  Value node = shift_right_logical(sorted[0], like(key, 1));
  Value same = equal(rows_of(node), columns_of(node));
  Value d = spread(sorted[1], same, kept);
  Value weight = keep(kept, sorted[3]);
  Value pair = same & rows_of(kept) & columns_of(kept);

  // Root j lies between d_j and the next one, the last no further than the sum of the weights above its own.
  const auto next = [&](Value x) {
    return concatenate({slice_dim(x, 1, 1, w), slice_dim(x, 1, w - 1, w)}, 1);
  };
  Value position = iota(b, DType::S32, {1, w}, 1);
  Value inner = kept & next(kept) & equal(node, next(node)) & (position < static_cast<double>(w - 1));
  Value above = sum_rows(keep(pair, rows_of(weight)));
  Value gap = select(kept, select(inner, next(d) - d, above), like(d, 1));

  // It is found as its distance from the nearer end, which so keeps all its digits.
  const auto distances = [&](Value from) {
    return select(pair, rows_of(d) - columns_of(from), highest(b, t));
  };
  const auto secular = [](Value weight, Value distance, Value shift) {
    return squeeze(times(columns_of(weight), 1.0 / (distance - columns_of(shift))), 1) + 1.0;
  };
  Value half = gap * 0.5;
  Value right = inner & (secular(weight, distances(d), half) < 0.0);
  Value origin = select(right, next(d), d), distance = distances(origin);
  Value side = select(right, like(d, -1), full_like(d, 1));
  const double tiny =
      t == DType::F64 ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  // The exponent first, then the digits.
  Value offset =
      repeat(t == DType::F64 ? 65 : 34, {full_like(d, tiny), select(inner, half, gap)},
             {weight, distance, side}, [&](Value, const Values& state, const Values& in) -> Values {
               Value low = state[0], high = state[1];
               Value middle = select(low * 4.0 < high, sqrt(low) * sqrt(high), (low + high) * 0.5);
               Value beyond = in[2] * secular(in[0], in[1], in[2] * middle) >= 0.0;
               return {select(beyond, low, middle), select(beyond, middle, high)};
             })[1];
  Value values = select(kept, origin + side * offset, d);

  // The z whose exact roots these are (Loewner's formula): with it the eigenvectors are orthogonal.
  Value from_root = distance - columns_of(side * offset);  // d_i - root_j
  Value diagonal = equal(row_index(b, w), column_index(b, w));
  Value between = rows_of(d) - columns_of(d);
  Value ratio = select(diagonal, negate(from_root), from_root / select(diagonal, like(d, 1), between));
  Value size = sqrt(abs(reduce_prod(select(pair, ratio, like(d, 1)), {2})));
  Value vectors = rows_of(copy_sign(size, z)) * (columns_of(offset) / from_root);
  Value norm = sqrt(sum_rows(vectors * vectors));
  vectors = vectors / columns_of(select(norm > 0.0, norm, like(norm, 1)));
  vectors = select(diagonal & columns_of(logical_not(kept)), like(vectors, 1), keep(pair, vectors));
  return {values, rows_in_order(vectors, inverse_order(order))};
}

// Merges `levels` times: from matrices of `leaf` rows, of which `vectors` [r, w, w] holds the eigenvectors in
// blocks on the diagonal, to ones of 2, 4, .. times as many rows. d and beside are [r, w], beside[i] between
// i and i + 1.
std::pair<Value, Value> merge_levels(Value d, Value vectors, Value beside, int64_t leaf, int64_t levels) {
  const int64_t r = d.size(0), w = d.size(1);
  Values out = repeat(
      levels, {d, vectors}, {beside}, [&](Value level, const Values& state, const Values& in) -> Values {
        Builder& b = level.builder();
        const auto number = [&](int64_t v) { return b.constant(v, DType::S32); };
        Value index = iota(b, DType::S32, {1, w}, 1), half = shift_left(number(1), level) * number(leaf);
        Value node = divide(index, broadcast_to(half * number(2), {1, w}));
        Value cut = (node * number(2) + number(1)) * half - number(1);  // the last row of the upper half
        Value upper = index <= cut, there = cut < number(w - 1);
        Value place = minimum(cut, number(w - 1));
        Value off = keep(there, take_along_dim(in[0], broadcast_to(place, {r, w}), 1));
        // The row of the eigenvectors that is beside the cut.
        Value row = equal(row_index(b, w), columns_of(select(upper, cut, cut + number(1))));
        Value z = sum_rows(keep(row, state[1]));
        const Merged m = merge({state[0], select(upper, z, sign(off) * z), abs(off), node});
        return {m.values, times(state[1], m.vectors)};
      });
  return {out[0], out[1]};
}

int64_t levels_for(int64_t parts) {
  int64_t levels = 0;
  while ((int64_t{1} << levels) < parts) levels++;
  return levels;
}

}  // namespace

Eigen in_order(Value values, Value vectors) {
  const int64_t batch = values.size(0), n = values.size(1);
  Values sorted = hlo::sort({squeeze(values, 2), iota(values.builder(), DType::S32, {batch, n}, 1)}, 1, true,
                            [](const Values& x, const Values& y) { return x[0] < y[0]; });
  Value columns = rows_in_order(swap_dims(vectors, 1, 2), unsqueeze(sorted[1], 2));
  return {unsqueeze(sorted[0], 2), swap_dims(columns, 1, 2)};
}

Eigen solve_tridiagonal(Value diagonal, Value beside) {
  Builder& b = diagonal.builder();
  const DType t = diagonal.dtype();
  const int64_t batch = diagonal.size(0), n = diagonal.size(1);
  constexpr int64_t kBlock = 32;
  const int64_t blocks = int64_t{1} << levels_for((n + kBlock - 1) / kBlock);
  const int64_t w = (n + blocks - 1) / blocks, total = w * blocks;

  Value finite = all_finite(diagonal) & all_finite(beside);
  Value d = keep(finite, diagonal), e = keep(finite, beside);
  Value scale = maximum(largest(d), largest(e));
  scale = select(scale > 0.0, scale, like(scale, 1));
  // Padding: elements of their own, larger than any eigenvalue.
  d = reshape(pad(d / scale, like(d, 8), {0, 0, 0}, {0, total - n, 0}), {batch, total});
  e = reshape(pad(e / scale, like(e, 0), {0, 0, 0}, {0, total - n + 1, 0}), {batch, total});
  Value taken = abs(e);
  d = d - taken - pad(slice_dim(taken, 1, 0, total - 1), like(d, 0), {0, 1}, {0, 0});

  const int64_t r = batch * blocks;
  auto [values, vectors] = merge_levels(reshape(d, {r, w}), broadcast_to(eye(b, t, w, w), {r, w, w}),
                                        reshape(e, {r, w}), 1, levels_for(w));
  if (blocks > 1) {
    // The blocks on the diagonal of one matrix.
    Value here = equal(iota(b, DType::S32, {1, blocks, 1, blocks, 1}, 1),
                       iota(b, DType::S32, {1, blocks, 1, blocks, 1}, 3));
    vectors = keep(here, reshape(vectors, {batch, blocks, w, 1, w}));
    std::tie(values, vectors) = merge_levels(
        reshape(values, {batch, total}), reshape(vectors, {batch, total, total}), e, w, levels_for(blocks));
  }
  const Eigen all = in_order(unsqueeze(values, 2), vectors);
  Value nan = b.constant(NAN, t);
  return {select(finite, slice_dim(all.values, 1, 0, n) * scale, nan),
          select(finite, slice(all.vectors, {0, 0, 0}, {batch, n, n}), nan)};
}

}  // namespace tpu::ops
