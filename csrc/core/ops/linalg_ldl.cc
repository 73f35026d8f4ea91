// LDL factorisations with the symmetric pivoting of Bunch and Kaufman (1977), in LAPACK's form (sytf2 and
// hetf2 of the lower triangle): pivots count from 1; two equal negative ones mark a 2 x 2 block.
#include <cmath>

#include "core/ops/linalg.h"
#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

Value magnitude(Value x) { return is_complex(x.dtype()) ? abs(real(x)) + abs(imag(x)) : abs(x); }

// x with rows i and j (S32 [batch, 1, 1]) exchanged.
Value exchange_rows(Value x, Value i, Value j) {
  Value row = row_index(x.builder(), x.size(1));
  return select(equal(row, i), rows_in_order(x, j), select(equal(row, j), rows_in_order(x, i), x));
}

/// The inverse of a 2 x 2 block [a, conj(b); b, d] (conj for Hermitian ones only), element by element.
struct Block {
  Value first, below, last;
};
Block inverse_of(Value a, Value b, Value d, bool hermitian) {
  // Divided by b first, as its determinant may overflow.
  Value scale = hermitian ? cast_like(abs(b), b) : b;
  scale = select(equal(scale, like(scale, 0)), like(scale, 1), scale);
  Value p = a / scale, q = d / scale, off = b / scale;
  Value t = like(p, 1) / (scale * (p * q - off * (hermitian ? conjugate(off) : off)));
  return {q * t, negate(off) * t, p * t};
}

// One step for each matrix of the batch: a pivot of one or two columns at its own position k. `rest` is what
// is left of the matrix, both triangles; its rows and columns before k are not read any more.
Values step(const Values& state, bool hermitian) {
  Value rest = state[0], factor = state[1], pivots = state[2], k = state[3], info = state[4];
  const auto n = static_cast<double>(rest.size(1));
  Builder& b = rest.builder();
  Value row = row_index(b, rest.size(1)), column = column_index(b, rest.size(1));
  const auto turn = [hermitian](Value x) { return hermitian ? adjoint(x) : turned(x); };
  const auto column_at = [](Value x, Value i) { return turned(rows_in_order(turned(x), i)); };
  const auto element = [](Value x, Value i) { return rows_in_order(x, i); };  // of a column
  Value next = minimum(k + 1.0, like(k, n - 1));

  // The pivot: the diagonal element, the one in row `place`, or both rows together.
  const double alpha = (1 + std::sqrt(17.0)) / 8;
  const auto largest_of = [&](Value x, Value where) {
    auto [value, place] = arg_reduce(select(where, magnitude(x), like(real(x), 0)), 1, true, DType::S32);
    return std::pair(unsqueeze(value, 1), unsqueeze(place, 1));
  };
  Value first = column_at(rest, k);
  const auto diagonal_size = [&](Value x) { return hermitian ? abs(real(x)) : magnitude(x); };
  Value here = diagonal_size(element(first, k));
  auto [below, place] = largest_of(first, row > k);
  Value candidate = column_at(rest, place);
  Value beside = largest_of(candidate, (row >= k) & not_equal(row, place)).first;
  Value none = logical_not(maximum(here, below) > 0.0), active = k < n;
  Value stay = none | (here >= below * alpha) | (here >= below * alpha * (below / beside));
  Value alone = stay | (diagonal_size(element(candidate, place)) >= beside * alpha);
  Value two = logical_not(alone) & active;
  Value moved = select(two, next, k);         // the row that is exchanged
  Value target = select(stay, moved, place);  // with this one
  target = select(active, target, moved);
  info = select(none & active & equal(info, like(info, 0)), k + 1.0, info);

  rest = exchange_rows(rest, moved, target);
  rest = turned(exchange_rows(turned(rest), moved, target));

  // Columns k and, in a block of two, k + 1.
  Value w1 = column_at(rest, k), w2 = column_at(rest, next);
  Value a = element(w1, k), c = element(w1, next), d = element(w2, next);
  if (hermitian) a = as_real(a), d = as_real(d);
  Value safe = select(equal(a, like(a, 0)), like(a, 1), a);
  const Block inverse = inverse_of(a, c, d, hermitian);
  Value outside = row > moved;
  Value opposite = hermitian ? conjugate(inverse.below) : inverse.below;
  Value l1 = select(two, w1 * inverse.first + w2 * inverse.below, w1 / safe);
  Value l2 = keep(two & outside, w1 * opposite + w2 * inverse.last);
  l1 = keep(outside, l1);
  Value reduced = rest - keep(outside, w1) * turn(l1) - keep(outside & two, w2) * turn(l2);
  rest = select(active & logical_not(none), reduced, rest);

  Value at1 = equal(column, k) & active, at2 = equal(column, next) & two;
  Value diagonal1 = select(equal(row, k), a, keep(two & equal(row, next), c));
  l1 = keep(logical_not(none), l1);
  factor = select(at1, l1 + diagonal1, select(at2, l2 + keep(equal(row, next), d), factor));
  Value number = target + 1.0;
  pivots = select(equal(row, k) & active, select(two, negate(number), number), pivots);
  pivots = select(equal(row, next) & two, negate(number), pivots);
  return {rest, factor, pivots, select(active, k + select(two, like(k, 2), like(k, 1)), k), info};
}

// linalg_ldl_factor_ex(self, *, hermitian, check_errors) -> LD, pivots, info
Results ldl_factor(Call& c) {
  Value a = matrices(c, "self");
  if (a.elements() == 0) return {full(c.b, 0, c.out(0)), full(c.b, 0, c.out(1)), full(c.b, 0, c.out(2))};
  const bool hermitian = c.flag("hermitian") && is_complex(a.dtype());
  a = as_batch(a);
  const int64_t batch = a.size(0), n = a.size(1);
  Value lower = optimization_barrier(keep(below_diagonal(c.b, n, n), a));
  Value on = diagonal(a);
  Value zero = full(c.b, 0, {DType::S32, {batch, 1, 1}});
  a = lower + (hermitian ? adjoint(lower) : turned(lower)) +
      eye(c.b, a.dtype(), n, n) * (hermitian ? as_real(on) : on);
  Values out = while_loop(
      {a, full_like(a, 0), full(c.b, 0, {DType::S32, {batch, n, 1}}), zero, zero},
      [&](const Values& v) { return reduce_min(v[3], {0, 1, 2}) < static_cast<double>(n); },
      [&](const Values& v) { return step(v, hermitian); });
  return {reshape(out[1], c.out(0).dims), reshape(out[2], c.out(1).dims), reshape(out[4], c.out(2).dims)};
}

// linalg_ldl_solve(LD, pivots, B, *, hermitian)
Results ldl_solve(Call& c) {
  Value factor = matrices(c, "LD"), x = matrices(c, "B");
  if (c.out().elements() == 0) return full(c.b, 0, c.out());
  const bool hermitian = c.flag("hermitian") && is_complex(factor.dtype());
  const Dims batch = batch_of(c.out().dims);
  const int64_t n = factor.size(-1);
  factor = as_batch(with_batch(factor, batch)), x = as_batch(with_batch(x, batch));
  Value pivots = reshape(with_batch(c.tensor("pivots", DType::S32), batch, 1), {factor.size(0), n, 1});
  const auto count = static_cast<double>(n);

  // Forwards: interchanges and L. Of a block of two, the first row tells where the second goes.
  const auto swap_at = [count](Value x, Value i, Value pivot, Value first) {
    Value place = minimum(select(first, i + 1.0, i), like(i, count - 1));
    return exchange_rows(x, broadcast_to(place, pivot.dims()), pivot);
  };
  Value no = full(c.b, 0, {DType::Bool, {factor.size(0), 1, 1}});
  Values forth = repeat(n, {x, no, full(c.b, 0, {DType::Bool, pivots.dims()})}, {factor, pivots},
                        [&](Value i, const Values& state, const Values& in) -> Values {
                          Value pivot = slice_at(in[1], 1, i, 1), row = row_index(i.builder(), n);
                          Value first = (pivot < 0.0) & logical_not(state[1]),
                                second = (pivot < 0.0) & state[1];
                          Value place = abs(pivot) - 1.0;
                          Value x = select(second, state[0], swap_at(state[0], i, place, first));
                          Value l = keep(row > select(first, i + 1.0, i), slice_at(in[0], 2, i, 1));
                          return {x - l * slice_at(x, 1, i, 1), first, write_at(state[2], first, 1, i)};
                        });
  // D: ones and blocks of two, each row with its neighbour.
  Value first = forth[2], y = forth[0];
  const auto shifted = [&](Value v, int64_t up) {  // row i + up
    Dims low(3, 0), high(3, 0);
    low[1] = -up, high[1] = up;
    return pad(v, like(v, 0), low, high);
  };
  Value second = shifted(first, -1);
  Value d = diagonal(factor),
        off = diagonal(pad(slice_dim(factor, 1, 1, n), like(factor, 0), {0, 0, 0}, {0, 1, 0}));
  const Block inverse = inverse_of(d, off, shifted(d, 1), hermitian);
  Value opposite = hermitian ? conjugate(inverse.below) : inverse.below;
  Value upper = y * inverse.first + shifted(y, 1) * opposite;
  Value lower = shifted(inverse.below, -1) * shifted(y, -1) + shifted(inverse.last, -1) * y;
  y = select(first, upper, select(second, lower, y / d));
  // Backwards: L^T (or L^H) and the interchanges.
  Value solved = repeat(n, {y}, {factor, pivots, first, second},
                        [&](Value step, const Values& state, const Values& in) -> Values {
                          Value i = static_cast<double>(n - 1) - step;
                          Value first = slice_at(in[2], 1, i, 1), second = slice_at(in[3], 1, i, 1),
                                row = row_index(i.builder(), n);
                          Value l = keep(row > select(first, i + 1.0, i), slice_at(in[0], 2, i, 1));
                          Value x = state[0],
                                done = slice_at(x, 1, i, 1) - times(hermitian ? adjoint(l) : turned(l), x);
                          x = write_at(x, done, 1, i);
                          Value place = abs(slice_at(in[1], 1, i, 1)) - 1.0;
                          return {select(second, x, swap_at(x, i, place, first))};
                        })[0];
  return reshape(solved, c.out().dims);
}

}  // namespace

void linalg_ldl(Table& t) {
  t.op("linalg_ldl_factor_ex", ldl_factor);
  t.op("linalg_ldl_solve", ldl_solve);
}

}  // namespace tpu::ops
