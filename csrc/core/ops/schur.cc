#include "core/ops/schur.h"

#include "core/ops/math.h"

namespace tpu::ops {

using namespace hlo;

namespace {

double epsilon(Value x) { return real_of(x.dtype()) == DType::F64 ? 0x1p-52 : 0x1p-23; }

// |re| + |im|: as good as the absolute value for telling what is small.
Value size_of_number(Value x) { return abs(real(x)) + abs(imag(x)); }

/// The rotation [c s; -conj(s) c] with s complex and c real that turns (x, y) into (r, 0).
struct Rotation {
  Value c, s;
};
Rotation rotation(Value x, Value y) {
  Value larger = abs(x), smaller = abs(y), scale = larger + smaller;
  Value safe = select(scale > 0.0, scale, like(scale, 1));
  Value p = larger / safe, q = smaller / safe;
  Value norm = sqrt(p * p + q * q), some = norm > 0.0;
  norm = safe * select(some, norm, like(norm, 1));
  Value phase =
      select(larger > 0.0, x / cast_like(select(larger > 0.0, larger, like(larger, 1)), x), like(x, 1));
  return {select(some, larger / norm, like(norm, 1)), phase * conjugate(y) / cast_like(norm, x)};
}

// The active part of a matrix: rows and columns low .. high (S32 [batch, 1, 1]). What is below high has
// converged.
struct Active {
  Value low, high;
};

// Subdiagonal elements that are small beside their neighbours on the diagonal count as zero.
Active active_part(Value h, Value high) {
  const int64_t batch = h.size(0), n = h.size(1);
  Builder& b = h.builder();
  Value below = size_of_number(diagonal(slice(h, {0, 1, 0}, {batch, n, n - 1})));  // [batch, n - 1, 1]
  Value on = size_of_number(diagonal(h));
  Value neighbours = slice_dim(on, 1, 0, n - 1) + slice_dim(on, 1, 1, n);
  neighbours = select(neighbours > 0.0, neighbours, largest(h));
  Value coupled = below > neighbours * epsilon(h);
  Value row = row_index(b, n - 1) + 1.0, none = like(row, 0);
  const auto last = [&](Value where) {
    return unsqueeze(reduce(select(where, row, none), none, {1}, maximum), 1);
  };
  Value new_high = last(coupled & (row <= high));
  return {last(logical_not(coupled) & (row <= new_high)), new_high};
}

// The eigenvalue of the last two rows that is nearer to the last element (Wilkinson's shift). After ten steps
// without convergence another number is tried.
Value shift_for(Value h, Value high, Value steps) {
  Value before = maximum(high - 1.0, like(high, 0));
  Value rows = rows_in_order(h, concatenate({before, high}, 1));
  Value block = turned(rows_in_order(turned(rows), concatenate({before, high}, 1)));
  const auto at = [&](int64_t i, int64_t j) {
    return slice(block, {0, i, j}, {block.size(0), i + 1, j + 1});
  };
  Value a = at(0, 0), d = at(1, 1), product = at(0, 1) * at(1, 0);
  Value half = (a - d) * 0.5, root = sqrt(half * half + product);
  Value plus = half + root, minus = half - root;
  Value divisor = select(abs(plus) >= abs(minus), plus, minus);
  Value some = abs(divisor) > 0.0;
  Value shift = select(some, d - product / select(some, divisor, like(d, 1)), d);
  Value stuck = (steps > 0.0) & equal(remainder(steps, like(steps, 10)), like(steps, 0));
  return select(stuck, d + cast_like(abs(at(1, 0)) * 0.75, d), shift);
}

// Rows k, k + 1 of h from the left, then columns k, k + 1 from the right; rows k, k + 1 of z^T. Matrices
// whose active part does not reach k stay as they are.
Values chase(Value k, const Values& state, const Values& in) {
  Value h = state[0], zt = state[1], low = in[0], high = in[1], shift = in[2];
  const int64_t n = h.size(1);
  Builder& b = k.builder();
  Value first = equal(low, k), inside = (low <= k) & (high > k);
  Value pair = slice_at(h, 1, k, 2);
  const auto row = [](Value x, int64_t i) { return slice_dim(x, 1, i, i + 1); };
  Value here = slice_at(pair, 2, k, 1), left = slice_at(pair, 2, maximum(k - 1.0, like(k, 0)), 1);
  const Rotation r =
      rotation(select(first, row(here, 0) - shift, row(left, 0)), select(first, row(here, 1), row(left, 1)));
  Value c = cast_like(select(inside, r.c, like(r.c, 1)), h), s = select(inside, r.s, like(r.s, 0));

  Value upper = c * row(pair, 0) + s * row(pair, 1), lower = c * row(pair, 1) - conjugate(s) * row(pair, 0);
  lower = select(inside & (column_index(b, n) < k), like(lower, 0), lower);
  h = write_at(h, concatenate({upper, lower}, 1), 1, k);
  Value columns = slice_at(h, 2, k, 2), p = slice_dim(columns, 2, 0, 1), q = slice_dim(columns, 2, 1, 2);
  h = write_at(h, concatenate({c * p + conjugate(s) * q, c * q - s * p}, 2), 2, k);
  Value vectors = slice_at(zt, 1, k, 2);
  p = row(vectors, 0), q = row(vectors, 1);
  return {h, write_at(zt, concatenate({c * p + conjugate(s) * q, c * q - s * p}, 1), 1, k)};
}

}  // namespace

Schur schur_form(Value h) {
  Builder& b = h.builder();
  const int64_t batch = h.size(0), n = h.size(1);
  Value z = broadcast_to(eye(b, h.dtype(), n, n), h.dims());
  Value zero = full(b, 0, {DType::S32, {batch, 1, 1}});
  if (n == 1) return {h, z, equal(zero, zero)};
  const auto most = static_cast<double>(30 * std::max<int64_t>(n, 10));
  Values out = while_loop(
      {h, z, full(b, static_cast<double>(n - 1), zero.type()), zero, b.constant(0, DType::S32)},
      [&](const Values& v) {
        Value open = reduce_max(v[2], {0, 1, 2}) > 0.0;
        return open & (v[4] < most);
      },
      [&](const Values& v) -> Values {
        const Active part = active_part(v[0], v[2]);
        Value steps = select(part.high < v[2], like(v[3], 0), v[3]);
        Value shift = shift_for(v[0], part.high, steps);
        // A matrix that has converged has no part in a sweep.
        Value from = select(part.high > 0.0, part.low, like(part.low, static_cast<double>(n)));
        Values next = repeat(reduce_min(from, {0, 1, 2}), reduce_max(part.high, {0, 1, 2}), {v[0], v[1]},
                             {part.low, part.high, shift}, chase);
        return {next[0], next[1], part.high, steps + 1.0, v[4] + 1.0};
      });
  return {out[0], swap_dims(out[1], 1, 2), equal(out[2], zero)};
}

Value triangular_eigenvectors(Value t) {
  Builder& b = t.builder();
  const int64_t n = t.size(1);
  const DType r = real_of(t.dtype());
  Value on = diagonal(t);
  Value least = maximum(largest(t) * epsilon(t), full(b, r == DType::F64 ? 1e-290 : 1e-30, {r, {1, 1, 1}}));
  const double most = r == DType::F64 ? 1e140 : 1e15;
  // From the last row up: row i of x solves (t - t_jj) x = 0 for each column j > i.
  return repeat(
      n, {full_like(t, 0)}, {t, on, least}, [&](Value step, const Values& state, const Values& in) -> Values {
        Builder& b = step.builder();
        Value i = static_cast<double>(n - 1) - step, column = column_index(b, n);
        Value row = keep(column > i, slice_at(in[0], 1, i, 1));
        Value gap = slice_at(in[1], 1, i, 1) - turned(in[1]);
        gap = select(abs(gap) < in[2], cast_like(in[2], gap), gap);
        Value x = keep(column > i, negate(times(row, state[0]) / gap));
        x = select(equal(column, i), like(x, 1), x);
        // A column that grows too large is made smaller. That is rare, so it is a loop of no or one round.
        return {while_loop(
            {write_at(state[0], x, 1, i), x},
            [&](const Values& v) { return reduce_max(abs(v[1]), {0, 1, 2}) > most; },
            [&](const Values& v) -> Values {
              Value size = abs(v[1]), factor = cast_like(select(size > most, size, like(size, 1)), v[1]);
              return {v[0] / factor, v[1] / factor};
            })[0]};
      })[0];
}

}  // namespace tpu::ops
