// The Cholesky factorisation and solves with it.
#include "core/ops/linalg.h"
#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

struct Cholesky {
  Value lower;  // [batch, n, n]
  Value info;   // S32 [batch, 1, 1]: the order of the first leading minor that is not positive, or 0
};

// The factor of the columns from `first` on, of which `panel` [batch, n, size] holds what is left of the
// matrix. `limit` columns count: the rest is padding.
Cholesky factor_panel(Value panel, Value first, Value info) {
  const int64_t n = panel.size(1), size = panel.size(2);
  Values out =
      repeat(size, {panel, info}, {first}, [&](Value j, const Values& state, const Values& in) -> Values {
        Builder& b = j.builder();
        Value x = state[0], at = in[0] + j;
        Value pivot = real(slice_at(slice_at(x, 1, at, 1), 2, j, 1));
        Value good = pivot > 0.0;  // false for NaN
        Value info = select(equal(state[1], like(state[1], 0)) & logical_not(good), at + 1.0, state[1]);
        // Without a pivot the numbers mean nothing; they are kept finite.
        Value root = select(good, sqrt(pivot), like(pivot, 1));
        Value rows = row_index(b, n), columns = column_index(b, size);
        Value column = keep(rows > at, slice_at(x, 2, j, 1) / cast_like(root, x));
        column = select(equal(rows, at), cast_like(root, x), column);
        Value row = turned(conjugate(slice_at(column, 1, in[0], size)));
        Value rest = select(columns > j, x - column * row, x);
        return {select(equal(columns, j), column, rest), info};
      });
  return {out[0], out[1]};
}

// Blocks from left to right: each first gets the products of those before it.
Cholesky factor(Value a) {
  Builder& b = a.builder();
  const int64_t batch = a.size(0), n = a.size(1);
  const Blocks blocks = blocks_of(n);
  const int64_t total = blocks.total(), size = blocks.size;
  Value info = full(b, 0, {DType::S32, {batch, 1, 1}});
  if (blocks.count == 1) return factor_panel(a, b.constant(0, DType::S32), info);
  a = extend(extend(a, 1, total), 2, total);
  Value padding =
      equal(row_index(b, total), column_index(b, total)) & (row_index(b, total) >= static_cast<double>(n));
  a = select(padding, like(a, 1), a);
  Values out = repeat(blocks.count, {full_like(a, 0), info}, {a},
                      [&](Value i, const Values& state, const Values& in) -> Values {
                        Value at = i * static_cast<double>(size);
                        Value known = slice_at(state[0], 1, at, size);
                        Value panel = slice_at(in[0], 2, at, size) - times_adjoint(state[0], known);
                        Cholesky c = factor_panel(panel, at, state[1]);
                        return {write_at(state[0], c.lower, 2, at), c.info};
                      });
  return {slice(out[0], {0, 0, 0}, {batch, n, n}), out[1]};
}

Value lower_half(Value x) {
  const int64_t n = x.size(1);
  return keep(logical_not(above_diagonal(x.builder(), n, n)), x);
}

// cholesky(self, upper) and linalg_cholesky_ex(self, *, upper, check_errors) -> L, info
Results cholesky(Call& c) {
  const Type& type = c.out();
  Value info = full(c.b, 0, {DType::S32, batch_of(type.dims)});
  Value x = matrices(c, "self");
  if (x.elements() == 0) return {x, info};
  const bool upper = c.flag("upper");
  x = as_batch(x);
  Cholesky f = factor(upper ? adjoint(x) : x);
  Value l = lower_half(f.lower);
  return {reshape(upper ? adjoint(l) : l, type.dims), reshape(f.info, info.dims())};
}

// x of l l^H x = b
Value solve_with(Value l, Value b) {
  return solve_triangle(adjoint(l), solve_triangle(l, b, {true}), {false});
}

Value lower_of(Value factor, bool upper) { return upper ? adjoint(factor) : factor; }

Results cholesky_inverse(Call& c) {
  Value x = matrices(c, "self");
  if (x.elements() == 0) return x;
  x = as_batch(x);
  Value identity = broadcast_to(eye(c.b, x.dtype(), x.size(1), x.size(2)), x.dims());
  return reshape(solve_with(lower_of(x, c.flag("upper")), identity), c.out().dims);
}

// _cholesky_solve_helper(self, A, upper): the batches are equal already.
Results cholesky_solve(Call& c) {
  Value b = matrices(c, "self");
  if (b.elements() == 0) return b;
  Value factor = as_batch(matrices(c, "A"));
  return reshape(solve_with(lower_of(factor, c.flag("upper")), as_batch(b)), c.out().dims);
}

}  // namespace

void linalg_cholesky(Table& t) {
  t.op("linalg_cholesky_ex cholesky", cholesky);
  t.op("cholesky_inverse", cholesky_inverse);
  t.op("_cholesky_solve_helper", cholesky_solve);
}

}  // namespace tpu::ops
