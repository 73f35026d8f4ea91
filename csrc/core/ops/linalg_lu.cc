// LU with partial pivoting: panels of columns, then one product a panel for what is right of it.
#include "core/ops/linalg.h"
#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// |re| + |im|, by which LAPACK chooses the pivots of complex matrices.
Value magnitude(Value x) { return is_complex(x.dtype()) ? abs(real(x)) + abs(imag(x)) : abs(x); }

// Rows `i` and `j` of x exchanged; `i` is the same for the batch, `j` is S32 [batch, 1, 1].
Value exchange(Value x, Value i, Value j) {
  Value rows = row_index(x.builder(), x.size(1));
  Value first = slice_at(x, 1, i, 1), second = rows_in_order(x, j);
  return select(equal(rows, i), second, select(equal(rows, j), first, x));
}

// Columns `first`, .. of the matrix, all rows of them. Columns from `limit` on are none of the matrix.
Lu factor_panel(Value panel, Value first, Value info, int64_t limit, bool pivot) {
  const int64_t batch = panel.size(0), m = panel.size(1), size = panel.size(2);
  Builder& b = panel.builder();
  Values out = repeat(
      size, {panel, full(b, 0, {DType::S32, {batch, size, 1}}), iota(b, DType::S32, {batch, m, 1}, 1), info},
      {first}, [&](Value j, const Values& state, const Values& in) -> Values {
        Builder& b = j.builder();
        Value x = state[0], at = in[0] + j, inside = at < static_cast<double>(limit);
        Value rows = row_index(b, m), columns = column_index(b, size);
        Value best = broadcast_to(at, {batch, 1, 1});
        if (pivot) {
          Value size = magnitude(slice_at(x, 2, j, 1));
          Value where = arg_reduce(select(rows >= at, size, like(size, -1)), 1, true, DType::S32).second;
          best = select(inside, reshape(where, {batch, 1, 1}), best);
        }
        x = exchange(x, at, best);
        Value top = slice_at(x, 1, at, 1), value = slice_at(top, 2, j, 1);
        Value none = equal(value, like(value, 0));
        Value info = select(none & inside & equal(state[3], like(state[3], 0)), at + 1.0, state[3]);
        Value column = slice_at(x, 2, j, 1) / select(none, like(value, 1), value);
        Value below = (rows > at) & inside;
        Value reduced = select(equal(columns, j), column, select(columns > j, x - column * top, x));
        return {select(below, reduced, x), write_at(state[1], best, 1, j), exchange(state[2], at, best),
                info};
      });
  return {out[0], out[1], out[2], out[3]};
}

}  // namespace

Lu factor_lu(Value a, bool pivot) {
  Builder& b = a.builder();
  const int64_t batch = a.size(0), m = a.size(1), n = a.size(2), k = std::min(m, n);
  const Blocks blocks = blocks_of(k);
  const int64_t size = blocks.size, total = blocks.total();
  Value info = full(b, 0, {DType::S32, {batch, 1, 1}});
  // The last panel may reach over the edges.
  const int64_t rows = std::max(m, total), columns = std::max(n, total);
  a = extend(extend(a, 1, rows), 2, columns);
  Values out =
      repeat(blocks.count,
             {a, full(b, 0, {DType::S32, {batch, total, 1}}), iota(b, DType::S32, {batch, rows, 1}, 1), info},
             {}, [&](Value i, const Values& state, const Values&) -> Values {
               Builder& b = i.builder();
               Value at = i * static_cast<double>(size), end = at + static_cast<double>(size);
               Lu panel = factor_panel(slice_at(state[0], 2, at, size), at, state[3], k, pivot);
               Value x = pivot ? rows_in_order(state[0], panel.order) : state[0];
               Value order = pivot ? rows_in_order(state[2], panel.order) : state[2];
               if (columns > size) {
                 Value right = column_index(b, columns) >= end;
                 Value corner = slice_at(panel.lu, 1, at, size), top = slice_at(x, 1, at, size);
                 Value u = keep(right, solve_triangle(corner, top, {true, true}));
                 Value l = keep(row_index(b, rows) >= end, panel.lu);
                 x = write_at(x - times(l, u), select(right, u, top), 1, at);
               }
               x = write_at(x, panel.lu, 2, at);
               return {x, write_at(state[1], panel.pivots, 1, at), order, panel.info};
             });
  return {slice(out[0], {0, 0, 0}, {batch, m, n}), slice_dim(out[1], 1, 0, k), slice_dim(out[2], 1, 0, m),
          out[3]};
}

Value solve_lu(Value lu, Value order, Value b, bool adjoint_system) {
  if (!adjoint_system)
    return solve_triangle(lu, solve_triangle(lu, rows_in_order(b, order), {true, true}), {false});
  Value transposed = adjoint(lu);
  Value x = solve_triangle(transposed, solve_triangle(transposed, b, {true}), {false, true});
  return rows_in_order(x, inverse_order(order));
}

namespace {

// The row order that exchanging row i with row pivots[i] (from 0, [batch, k, 1]) for i = 0, 1, .. leads to.
Value order_of(Value pivots, int64_t m) {
  Builder& b = pivots.builder();
  return repeat(pivots.size(1), {iota(b, DType::S32, {pivots.size(0), m, 1}, 1)}, {pivots},
                [](Value i, const Values& state, const Values& in) -> Values {
                  return {exchange(state[0], i, slice_at(in[0], 1, i, 1))};
                })[0];
}

// [batch, m, m] with p x = the rows of x in the inverse order, so that a = p l u for a[order] = l u.
Value permutation(Value order, DType dtype) {
  return convert(equal(row_index(order.builder(), order.size(1)), turned(order)), dtype);
}

Value lower_factor(Value lu) {
  const int64_t m = lu.size(1), n = lu.size(2), k = std::min(m, n);
  Value l = slice_dim(lu, 2, 0, k);
  return keep(below_diagonal(lu.builder(), m, k), l) + eye(lu.builder(), lu.dtype(), m, k);
}
Value upper_factor(Value lu) {
  const int64_t m = lu.size(1), n = lu.size(2), k = std::min(m, n);
  Value u = slice_dim(lu, 1, 0, k);
  return keep(logical_not(below_diagonal(lu.builder(), k, n)), u);
}

// linalg_lu_factor_ex(A, *, pivot, check_errors) -> LU, pivots, info
Results lu_factor(Call& c) {
  Value a = matrices(c, "A");
  if (a.elements() == 0) return {a, full(c.b, 0, c.out(1)), full(c.b, 0, c.out(2))};
  const Lu f = factor_lu(as_batch(a), c.flag("pivot"));
  return {reshape(f.lu, c.out(0).dims), reshape(f.pivots + 1.0, c.out(1).dims),
          reshape(f.info, c.out(2).dims)};
}

// linalg_lu(A, *, pivot) -> P, L, U
Results lu(Call& c) {
  Value a = matrices(c, "A");
  const bool pivot = c.flag("pivot");
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  Value p, l, u;
  a = as_batch(a);
  if (a.elements() == 0) {
    p = broadcast_to(eye(c.b, a.dtype(), m, m), {a.size(0), m, m});
    l = broadcast_to(eye(c.b, a.dtype(), m, k), {a.size(0), m, k});
    u = broadcast_to(full(c.b, 0, {a.dtype(), {}}), {a.size(0), k, n});
  } else {
    const Lu f = factor_lu(a, pivot);
    p = permutation(f.order, a.dtype()), l = lower_factor(f.lu), u = upper_factor(f.lu);
  }
  return {pivot ? reshape(p, c.out(0).dims) : full(c.b, 0, c.out(0)), reshape(l, c.out(1).dims),
          reshape(u, c.out(2).dims)};
}

// lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots) -> P, L, U, empty when not asked for
Results lu_unpack(Call& c) {
  Value lu = matrices(c, "LU_data");
  const int64_t m = lu.size(-2);
  Value p = full(c.b, 0, c.out(0)), l = full(c.b, 0, c.out(1)), u = full(c.b, 0, c.out(2));
  if (c.flag("unpack_data")) {
    l = reshape(lower_factor(as_batch(lu)), c.out(1).dims);
    u = reshape(upper_factor(as_batch(lu)), c.out(2).dims);
  }
  if (c.flag("unpack_pivots") && p.elements() > 0) {
    Value pivots = c.tensor("LU_pivots", DType::S32);
    const int64_t batch = hlo::product(batch_of(lu.dims())), k = pivots.size(-1);
    pivots = reshape(pivots, {batch, k, 1}) - 1.0;
    p = reshape(permutation(order_of(pivots, m), lu.dtype()), c.out(0).dims);
  }
  return {p, l, u};
}

// linalg_lu_solve(LU, pivots, B, *, left, adjoint): op(A) X = B or X op(A) = B
Results lu_solve(Call& c) {
  Value lu = matrices(c, "LU"), b = matrices(c, "B");
  if (c.out().elements() == 0) return full(c.b, 0, c.out());
  const bool left = c.flag("left");
  Value pivots = c.tensor("pivots", DType::S32);
  const int64_t n = lu.size(-1);
  // Batches of factors and right-hand sides broadcast.
  const Dims batch = batch_of(c.out().dims);
  lu = as_batch(with_batch(lu, batch)), b = as_batch(with_batch(b, batch));
  pivots = reshape(with_batch(pivots, batch, 1), {lu.size(0), n, 1}) - 1.0;
  Value order = order_of(pivots, n);
  const bool adjoint_system = c.flag("adjoint") == left;  // X A = B is A^H X^H = B^H
  if (!left) b = adjoint(b);
  Value x = solve_lu(lu, order, b, adjoint_system);
  return reshape(left ? x : adjoint(x), c.out().dims);
}

// linalg_inv_ex(A, *, check_errors) -> inverse, info
Results inverse(Call& c) {
  Value a = matrices(c, "A");
  if (a.elements() == 0) return {a, full(c.b, 0, c.out(1))};
  a = as_batch(a);
  const Lu f = factor_lu(a);
  Value x = solve_lu(f.lu, f.order, broadcast_to(eye(c.b, a.dtype(), a.size(1), a.size(2)), a.dims()), false);
  return {reshape(x, c.out(0).dims), reshape(f.info, c.out(1).dims)};
}

}  // namespace

void linalg_lu(Table& t) {
  t.op("linalg_lu_factor_ex", lu_factor);
  t.op("linalg_lu", lu);
  t.op("lu_unpack", lu_unpack);
  t.op("linalg_lu_solve", lu_solve);
  t.op("linalg_inv_ex", inverse);
}

}  // namespace tpu::ops
