#include "core/ops/householder.h"

#include "core/ops/math.h"

namespace tpu::ops {

using namespace hlo;

Reflection reflection(Value column, Value at) {
  Builder& b = column.builder();
  Value rows = row_index(b, column.size(1));
  Value alpha = slice_at(column, 1, at, 1), below = keep(rows > at, column);
  // Scaled, so that squares neither overflow nor vanish. Sums are products: XLA's CPU device makes less of
  // those.
  Value size = convert(abs(below), below.dtype());
  Value scale = abs(alpha) + real(adjoint_times(full_like(size, 1), size));
  scale = select(scale > 0.0, scale, like(scale, 1));
  Value scaled = below / cast_like(scale, below), first = abs(alpha) / scale;
  Value rest = real(adjoint_times(scaled, scaled));
  Value norm = scale * sqrt(first * first + rest);
  Value none = equal(rest, like(rest, 0)) & equal(imag(alpha), like(rest, 0));
  Value beta = select(none, real(alpha), negate(copy_sign(norm, real(alpha))));
  Value one = full_like(beta, 1), safe = select(none, one, beta);
  Value tau = select(none, like(alpha, 0), (cast_like(safe, alpha) - alpha) / cast_like(safe, alpha));
  Value pivot = select(none, like(alpha, 1), alpha - cast_like(beta, alpha));
  Value v = select(equal(rows, at), like(below, 1), below / pivot);
  return {v, tau, beta};
}

Reflections reflections_below(Value factored, Value tau) {
  const int64_t m = factored.size(1), k = tau.size(1);
  Builder& b = factored.builder();
  Value v = slice_dim(factored, 2, 0, k);
  return {keep(below_diagonal(b, m, k), v) + eye(b, v.dtype(), m, k), tau};
}

// T^-1 = 1 / tau on the diagonal and V^H V above it; so T solves a unit triangular system that has no
// division.
Value triangle_of(Reflections h) {
  Builder& b = h.v.builder();
  const int64_t batch = h.v.size(0), k = h.v.size(2);
  Value above = keep(above_diagonal(b, k, k), adjoint_times(h.v, h.v));
  Value diagonal = broadcast_to(eye(b, h.v.dtype(), k, k), {batch, k, k}) * h.tau;
  return solve_triangle(h.tau * above, diagonal, {false, true});
}

namespace {

// (I - v t v^H) x
Value apply_block(Value v, Value t, Value x) { return x - times(v, times(t, adjoint_times(v, x))); }

}  // namespace

Value apply(Reflections h, Value x, bool adjoint_product) {
  const int64_t k = h.v.size(2);
  if (k == 0 || x.elements() == 0) return x;
  const Blocks blocks = blocks_of(k);
  const auto turn = [adjoint_product](Value t) { return adjoint_product ? adjoint(t) : t; };
  if (blocks.count == 1) return apply_block(h.v, turn(triangle_of(h)), x);
  // Padding: reflections with tau = 0.
  h = {extend(h.v, 2, blocks.total()), extend(h.tau, 1, blocks.total())};
  return repeat(
      blocks.count, {x}, {h.v, h.tau}, [&](Value i, const Values& state, const Values& in) -> Values {
        Value block = adjoint_product ? i : static_cast<double>(blocks.count - 1) - i;
        Value at = block * static_cast<double>(blocks.size);
        const Reflections part{slice_at(in[0], 2, at, blocks.size), slice_at(in[1], 1, at, blocks.size)};
        return {apply_block(part.v, turn(triangle_of(part)), state[0])};
      })[0];
}

namespace {

// Columns `first`, .. of the matrix, all rows of them.
Qr factor_panel(Value panel, Value first) {
  const int64_t batch = panel.size(0), m = panel.size(1), size = panel.size(2);
  Builder& b = panel.builder();
  Values out = repeat(size, {panel, full(b, 0, {panel.dtype(), {batch, size, 1}})}, {first},
                      [&](Value j, const Values& state, const Values& in) -> Values {
                        Builder& b = j.builder();
                        Value x = state[0], at = in[0] + j;
                        const Reflection h = reflection(slice_at(x, 2, j, 1), at);
                        Value rows = row_index(b, m), columns = column_index(b, size);
                        Value reduced = x - conjugate(h.tau) * h.v * adjoint_times(h.v, x);
                        Value column =
                            select(rows > at, h.v, select(equal(rows, at), cast_like(h.beta, x), x));
                        x = select(columns > j, reduced, select(equal(columns, j), column, x));
                        return {x, write_at(state[1], h.tau, 1, j)};
                      });
  return {out[0], out[1]};
}

// The reflections of a panel that starts at column (and row) `first`.
Reflections reflections_of(Qr panel, Value first) {
  Builder& b = first.builder();
  const int64_t m = panel.factored.size(1), size = panel.factored.size(2);
  Value row = row_index(b, m) - first, column = column_index(b, size);
  Value v = select(equal(row, column), like(panel.factored, 1), keep(row > column, panel.factored));
  return {v, panel.tau};
}

}  // namespace

Qr factor_qr(Value a) {
  Builder& b = a.builder();
  const int64_t batch = a.size(0), m = a.size(1), n = a.size(2), k = std::min(m, n);
  const Blocks blocks = blocks_of(k);
  const int64_t size = blocks.size, total = blocks.total();
  // The last panel may reach over the edges; there it finds zeros, and reflects nothing.
  const int64_t rows = std::max(m, total), columns = std::max(n, total);
  a = extend(extend(a, 1, rows), 2, columns);
  Values out = repeat(blocks.count, {a, full(b, 0, {a.dtype(), {batch, total, 1}})}, {},
                      [&](Value i, const Values& state, const Values&) -> Values {
                        Builder& b = i.builder();
                        Value x = state[0], at = i * static_cast<double>(size);
                        const Qr panel = factor_panel(slice_at(x, 2, at, size), at);
                        if (columns > size) {
                          const Reflections h = reflections_of(panel, at);
                          Value right = column_index(b, columns) >= at + static_cast<double>(size);
                          x = select(right, apply_block(h.v, adjoint(triangle_of(h)), x), x);
                        }
                        return {write_at(x, panel.factored, 2, at), write_at(state[1], panel.tau, 1, at)};
                      });
  return {slice(out[0], {0, 0, 0}, {batch, m, n}), slice_dim(out[1], 1, 0, k)};
}

Hessenberg reduce_hessenberg(Value a) {
  Builder& b = a.builder();
  const DType t = a.dtype();
  const int64_t batch = a.size(0), n = a.size(1), k = n - 1;
  if (k == 0) return {a, {full(b, 0, {t, {batch, n, 0}}), full(b, 0, {t, {batch, 0, 1}})}};
  const Blocks blocks = blocks_of(k);
  const int64_t size = blocks.size, total = blocks.total(), rows = std::max(n, total);
  a = extend(extend(a, 1, rows), 2, rows);
  // In a panel the matrix is (I - V T V^H)^H (A - Y V^H), Y = A V T: each step reads the matrix of the
  // panel's start once.
  const Body step = [&](Value j, const Values& state, const Values& in) -> Values {
    Builder& b = j.builder();
    Value v = state[0], y = state[1], tau = state[2], triangle = state[3], beta = state[4];
    Value matrix = in[0], at = in[1] + j;
    Value column = slice_at(matrix, 2, at, 1) - times_adjoint(y, slice_at(v, 1, at, 1));
    column = column - times(v, adjoint_times(triangle, adjoint_times(v, column)));
    column = keep(row_index(b, rows) > at, column);
    const Reflection h = reflection(column, at + 1.0);
    Value overlap = adjoint_times(v, h.v);
    Value product = h.tau * (times(matrix, h.v) - times(y, overlap));
    Value corner = select(equal(row_index(b, size), j), h.tau, negate(h.tau * times(triangle, overlap)));
    return {write_at(v, h.v, 2, j), write_at(y, product, 2, j), write_at(tau, h.tau, 1, j),
            write_at(triangle, corner, 2, j), write_at(beta, h.beta, 1, j)};
  };
  Values out = repeat(
      blocks.count,
      {a, full(b, 0, {t, {batch, rows, total}}), full(b, 0, {t, {batch, total, 1}}),
       full(b, 0, {real_of(t), {batch, total, 1}})},
      {}, [&](Value i, const Values& state, const Values&) -> Values {
        Builder& b = i.builder();
        Value at = i * static_cast<double>(size), x = state[0];
        Value none = full(b, 0, {t, {batch, rows, size}}), no_tau = full(b, 0, {t, {batch, size, 1}});
        Values panel = repeat(size, {none, none, no_tau, full(b, 0, {t, {batch, size, size}}), real(no_tau)},
                              {x, at}, step);
        Value v = panel[0];
        x = x - times_adjoint(panel[1], v);
        x = x - times(v, adjoint_times(panel[3], adjoint_times(v, x)));
        return {x, write_at(state[1], v, 2, at), write_at(state[2], panel[2], 1, at),
                write_at(state[3], panel[4], 1, at)};
      });
  Value below = turned(slice_dim(out[3], 1, 0, k));  // the subdiagonal as a row: column j has it at row j + 1
  below = convert(pad(below, like(below, 0), {0, 0, 0}, {0, 0, 1}), t);
  Value h = slice(out[0], {0, 0, 0}, {batch, n, n});
  h = select(below_diagonal(b, n, n), keep(logical_not(below_diagonal(b, n, n, 1)), below), h);
  return {h, {slice(out[1], {0, 0, 0}, {batch, n, k}), slice_dim(out[2], 1, 0, k)}};
}

Bidiagonal reduce_bidiagonal(Value a) {
  Builder& b = a.builder();
  const DType t = a.dtype(), r = real_of(t);
  const int64_t batch = a.size(0), n = a.size(1);
  const Blocks blocks = blocks_of(n);
  const int64_t size = blocks.size, total = blocks.total();
  a = extend(extend(a, 1, total), 2, total);
  // In a panel the matrix is A - V Y^H - X U^H.
  const Body step = [&](Value j, const Values& state, const Values& in) -> Values {
    Value v = state[0], y = state[1], x = state[2], u = state[3], matrix = in[0], at = in[1] + j;
    Value index = row_index(j.builder(), total);
    Value column = slice_at(matrix, 2, at, 1) - times_adjoint(v, slice_at(y, 1, at, 1)) -
                   times_adjoint(x, slice_at(u, 1, at, 1));
    const Reflection left = reflection(keep(index >= at, column), at);
    Value back = adjoint_times(matrix, left.v) - times(y, adjoint_times(v, left.v)) -
                 times(u, adjoint_times(x, left.v));
    v = write_at(v, left.v, 2, j), y = write_at(y, left.tau * back, 2, j);
    Value row = adjoint(slice_at(matrix, 1, at, 1)) - times_adjoint(y, slice_at(v, 1, at, 1)) -
                times_adjoint(u, slice_at(x, 1, at, 1));
    const Reflection right = reflection(keep(index > at, row), at + 1.0);
    Value forth =
        times(matrix, right.v) - times(v, adjoint_times(y, right.v)) - times(x, adjoint_times(u, right.v));
    return {v,
            y,
            write_at(x, right.tau * forth, 2, j),
            write_at(u, right.v, 2, j),
            write_at(state[4], left.tau, 1, j),
            write_at(state[5], right.tau, 1, j),
            write_at(state[6], left.beta, 1, j),
            write_at(state[7], right.beta, 1, j)};
  };
  const Type square{t, {batch, total, total}}, vector{t, {batch, total, 1}}, reals{r, {batch, total, 1}};
  Values out = repeat(blocks.count,
                      {a, full(b, 0, square), full(b, 0, square), full(b, 0, vector), full(b, 0, vector),
                       full(b, 0, reals), full(b, 0, reals)},
                      {}, [&](Value i, const Values& state, const Values&) -> Values {
                        Builder& b = i.builder();
                        Value at = i * static_cast<double>(size);
                        Value none = full(b, 0, {t, {batch, total, size}}),
                              no_tau = full(b, 0, {t, {batch, size, 1}});
                        Value no_beta = full(b, 0, {r, {batch, size, 1}});
                        Values p = repeat(size, {none, none, none, none, no_tau, no_tau, no_beta, no_beta},
                                          {state[0], at}, step);
                        Values next{state[0] - times_adjoint(p[0], p[1]) - times_adjoint(p[2], p[3]),
                                    write_at(state[1], p[0], 2, at), write_at(state[2], p[3], 2, at)};
                        for (size_t part = 4; part < p.size(); part++)
                          next.push_back(write_at(state[part - 1], p[part], 1, at));
                        return next;
                      });
  const auto reflections = [&](Value v, Value tau) -> Reflections {
    return {slice(v, {0, 0, 0}, {batch, n, n}), slice_dim(tau, 1, 0, n)};
  };
  return {slice_dim(out[5], 1, 0, n), slice_dim(out[6], 1, 0, n - 1), reflections(out[1], out[3]),
          reflections(out[2], out[4])};
}

}  // namespace tpu::ops
