// Cumulative sums, products, extremes.
#include "core/ops/scan.h"

#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

// Reductions of segments; a part of the scan family.
void segments(Table& t);

namespace {

// Doubling: after step k each element covers 2^k predecessors. For short extents.
Value scan_by_doubling(Value x, int dim, const Combine& combine) {
  const int64_t n = x.size(dim);
  for (int64_t step = 1; step < n; step *= 2) {
    Value joined = combine(slice_dim(x, dim, 0, n - step), slice_dim(x, dim, step, n));
    x = concatenate({slice_dim(x, dim, 0, step), joined}, dim);
  }
  return x;
}

// A loop over dim 0 that carries one row and overwrites the operand row by row.
Value scan_rows(Value x, const Combine& combine) {
  const int64_t n = x.size(0);
  const int rank = x.rank();
  return while_loop(
      {x.builder().constant(1, DType::S32), slice_dim(x, 0, 0, 1), x},
      [n](const Values& v) { return v[0] < static_cast<double>(n); },
      [&](const Values& v) -> Values {
        Values at(rank, like(v[0], 0));
        at[0] = v[0];
        Value carry = combine(v[1], dynamic_slice(v[2], at, v[1].dims()));
        return {v[0] + like(v[0], 1), carry, dynamic_update_slice(v[2], carry, at)};
      })[2];
}

// The dimension `from` moved to the place `to`.
Value move_dim(Value x, int from, int to) {
  Dims order;
  for (int i = 0; i < x.rank(); i++)
    if (i != from) order.push_back(i);
  order.insert(order.begin() + to, from);
  return transpose(x, order);
}

}  // namespace

Value scan_along(Value x, int dim, const Combine& combine) {
  // The extent is cut into blocks that are scanned side by side, kBlock steps in all; the blocks' totals are
  // scanned by the same rule and the totals before a block are combined into it. So the work is linear, each
  // step works on a long row, and there are few steps.
  constexpr int64_t kShort = 8, kBlock = 64;
  const int64_t n = x.size(dim);
  if (n <= kShort) return scan_by_doubling(x, dim, combine);
  if (n <= 2 * kBlock) return move_dim(scan_rows(move_dim(x, dim, 0), combine), 0, dim);
  const int64_t blocks = n / kBlock, whole = blocks * kBlock;
  Dims split = x.dims(), joined = x.dims();
  split[dim] = blocks;
  split.insert(split.begin() + dim + 1, kBlock);
  joined[dim] = whole;

  // The position within the block comes first, then the dimensions as they are, the block's number for dim.
  Value inner = scan_rows(move_dim(reshape(slice_dim(x, dim, 0, whole), split), dim + 1, 0), combine);
  Value totals = scan_along(squeeze(slice_dim(inner, 0, kBlock - 1, kBlock), 0), dim, combine);
  // The first block has nothing before it.
  Value later = slice_dim(inner, dim + 1, 1, blocks);
  Value before = broadcast_to(unsqueeze(slice_dim(totals, dim, 0, blocks - 1), 0), later.dims());
  Value blocked = concatenate({slice_dim(inner, dim + 1, 0, 1), combine(before, later)}, dim + 1);
  Value out = reshape(move_dim(blocked, 0, dim + 1), joined);
  if (whole == n) return out;
  Value tail = scan_along(slice_dim(x, dim, whole, n), dim, combine);
  tail = combine(broadcast_to(slice_dim(totals, dim, blocks - 1, blocks), tail.dims()), tail);
  return concatenate({out, tail}, dim);
}

namespace {

template <Value (*f)(Value, Value)>
Results cumulative(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  if (x.rank() == 0 || x.elements() == 0) return x;
  return scan_along(x, Call::wrap(c.integer("dim"), x.rank()), f);
}

// cummax, cummin -> (values, indices): the last of equals wins, and a NaN stays until the next one.
// An index moves where the element is the extreme so far, so the indices are a running maximum too.
template <Value (*f)(Value, Value)>
Results cumulative_extreme(Call& c) {
  Value x = c.tensor("self");
  if (x.rank() == 0 || x.elements() == 0) return {x, full(c.b, 0, Type{DType::S64, x.dims()})};
  const int dim = Call::wrap(c.integer("dim"), x.rank());
  Value values = scan_along(x, dim, f);
  const DType type = x.size(dim) < INT32_MAX ? DType::S32 : DType::S64;
  Value position = iota(c.b, type, x.dims(), dim);
  Value records = select(logical_or(equal(x, values), is_nan(x)), position, like(position, 0));
  return {values, scan_along(records, dim, maximum)};
}

}  // namespace

void scan(Table& t) {
  t.op("cumsum", cumulative<hlo::add>);
  t.op("cumprod", cumulative<hlo::multiply>);
  t.op("logcumsumexp _logcumsumexp", cumulative<log_add_exp>);
  t.op("cummax", cumulative_extreme<hlo::maximum>);
  t.op("cummin", cumulative_extreme<hlo::minimum>);
  segments(t);
}

}  // namespace tpu::ops
