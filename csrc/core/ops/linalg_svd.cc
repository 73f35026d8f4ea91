// The singular value decomposition. First the right singular vectors v, then a v = u s by a QR factorisation:
// its columns are orthogonal up to rounding errors of a's size, so R is diagonal as well as a factorisation
// can tell, and u is orthogonal even where s is zero.
#include "core/ops/householder.h"
#include "core/ops/jacobi.h"
#include "core/ops/math.h"
#include "core/ops/table.h"
#include "core/ops/tridiagonal.h"

namespace tpu::ops {

using namespace hlo;

namespace {

/// Singular values [batch, n, 1], descending, and the right singular vectors [batch, n, n].
struct Right {
  Value values, vectors;
};

Value norms(Value columns) {
  Value re = real(columns), square = re * re;
  if (is_complex(columns.dtype())) square = square + imag(columns) * imag(columns);
  return turned(sqrt(times(full(re.builder(), 1, {re.dtype(), {re.size(0), 1, re.size(1)}}), square)));
}

Right descending(const Eigen& e) { return {reverse(e.values, {1}), reverse(e.vectors, {2})}; }

Right small(Value a) {
  const JacobiColumns j = jacobi_columns(a);
  return descending(in_order(norms(j.columns), j.vectors));
}

// The eigenvalues of [0 b^H; b 0] are the singular values of b and their negatives, its eigenvectors those of
// b on both sides. With rows and columns in turn from either half it is tridiagonal (Golub and Kahan), with
// zeros on its diagonal.
Right large(Value a) {
  Builder& b = a.builder();
  const int64_t batch = a.size(0), n = a.size(2);
  if (a.size(1) > n) {
    const Qr f = factor_qr(a);
    a = keep(logical_not(below_diagonal(b, n, n)), slice(f.factored, {0, 0, 0}, {batch, n, n}));
  }
  const Bidiagonal f = reduce_bidiagonal(a);
  const DType r = f.diagonal.dtype();
  Value above = extend(f.above, 1, n);
  Value beside = reshape(concatenate({f.diagonal, above}, 2), {batch, 2 * n, 1});
  const Eigen all = solve_tridiagonal(full(b, 0, {r, {batch, 2 * n, 1}}), slice_dim(beside, 1, 0, 2 * n - 1));
  const Right top = descending({slice_dim(all.values, 1, n, 2 * n), slice_dim(all.vectors, 2, n, 2 * n)});
  Value rows = reshape(top.vectors, {batch, n, 2, n});
  Value v = reshape(slice_dim(rows, 2, 0, 1), {batch, n, n});
  // Where a singular value is zero, the two halves of its vector are not of one length, and may vanish.
  Value length = turned(norms(v));
  const Qr orthogonal = factor_qr(v / select(length > 0.0, length, like(length, 1)));
  const Reflections q = reflections_below(orthogonal.factored, orthogonal.tau);
  Value signs = select(turned(diagonal(orthogonal.factored)) < 0.0, like(v, -1), full_like(length, 1));
  v = apply(q, broadcast_to(eye(b, r, n, n), {batch, n, n})) * signs;
  return {maximum(top.values, like(v, 0)), apply(f.p, convert(v, a.dtype()))};
}

struct Svd {
  Value u, s, v;
};

// For m >= n. u has n columns, or m.
Svd tall(Value a, bool full_u) {
  Builder& b = a.builder();
  const int64_t batch = a.size(0), m = a.size(1), n = a.size(2);
  Value finite = all_finite(a), nan = like(real(a), NAN);
  a = keep(finite, a);
  Value scale = safe_scale(a);
  a = a / cast_like(scale, a);
  const Right right = n <= kJacobiSize ? small(a) : large(a);
  const Qr f = factor_qr(times(a, right.vectors));
  const int64_t columns = full_u ? m : n;
  Value u = apply(reflections_below(f.factored, f.tau),
                  broadcast_to(eye(b, a.dtype(), m, columns), {batch, m, columns}));
  Value negative = turned(real(diagonal(f.factored))) < 0.0;
  negative = pad(negative, b.constant(0, DType::Bool), {0, 0, 0}, {0, 0, columns - n});
  u = select(negative, negate(u), u);
  Value undefined = convert(nan, a.dtype());
  return {select(finite, u, undefined), select(finite, right.values * scale, nan),
          select(finite, right.vectors, undefined)};
}

// _linalg_svd(A, full_matrices, compute_uv, *, driver) -> U, S, Vh
Results svd(Call& c) {
  Value a = as_batch(matrices(c, "A"));
  const bool full_matrices = c.flag("full_matrices"), vectors = c.flag("compute_uv");
  const int64_t m = a.size(1), n = a.size(2);
  if (a.elements() == 0) {
    Value u = full(c.b, 0, c.out(0)), v = full(c.b, 0, c.out(2));
    // The complete bases of spaces that have nothing to be mapped.
    const auto basis = [&](int64_t size, const Dims& dims) {
      return broadcast_to(reshape(eye(c.b, a.dtype(), size, size), {size, size}), dims);
    };
    if (vectors && full_matrices && m > 0) u = basis(m, c.out(0).dims);
    if (vectors && full_matrices && n > 0) v = basis(n, c.out(2).dims);
    return {u, full(c.b, 0, c.out(1)), v};
  }
  const bool wide = m < n;
  const Svd d = tall(wide ? adjoint(a) : a, full_matrices);
  Value s = reshape(d.s, c.out(1).dims);
  if (!vectors) return {full(c.b, 0, c.out(0)), s, full(c.b, 0, c.out(2))};
  return {reshape(wide ? d.v : d.u, c.out(0).dims), s, reshape(adjoint(wide ? d.u : d.v), c.out(2).dims)};
}

}  // namespace

void linalg_svd(Table& t) { t.op("_linalg_svd", svd); }

}  // namespace tpu::ops
