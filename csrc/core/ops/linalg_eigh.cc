// Eigenvalues and eigenvectors of Hermitian matrices: small ones by rotations, others over a tridiagonal
// form.
#include "core/ops/householder.h"
#include "core/ops/jacobi.h"
#include "core/ops/math.h"
#include "core/ops/table.h"
#include "core/ops/tridiagonal.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// The Hermitian matrix of which one triangle is read.
Value hermitian(Value a, bool lower) {
  const int64_t n = a.size(1);
  Builder& b = a.builder();
  Value diagonal = keep(equal(row_index(b, n), column_index(b, n)), real(a));
  // The barrier keeps the mask out of the transposed reads: XLA's CPU device would unroll their loop, for
  // minutes.
  Value half = optimization_barrier(keep(lower ? below_diagonal(b, n, n) : above_diagonal(b, n, n), a));
  return half + adjoint(half) + convert(diagonal, a.dtype());
}

Eigen solve(Value a) {
  const int64_t batch = a.size(0), n = a.size(1);
  if (n <= kJacobiSize) {
    Value finite = all_finite(a), nan = like(real(a), NAN);
    const JacobiEigen e = jacobi_eigen(a);
    const Eigen sorted = in_order(e.values, e.vectors);
    return {select(finite, sorted.values, nan), select(finite, sorted.vectors, convert(nan, a.dtype()))};
  }
  const Hessenberg h = reduce_hessenberg(a);
  const Eigen e =
      solve_tridiagonal(real(diagonal(h.h)), real(diagonal(slice(h.h, {0, 1, 0}, {batch, n, n - 1}))));
  return {e.values, apply(h.q, convert(e.vectors, a.dtype()))};
}

// _linalg_eigh(A, UPLO, compute_v) -> eigenvalues, eigenvectors
Results eigh(Call& c) {
  Value a = matrices(c, "A");
  if (a.elements() == 0) return {full(c.b, 0, c.out(0)), full(c.b, 0, c.out(1))};
  const std::string triangle = c.str("UPLO");
  a = hermitian(as_batch(a), triangle == "L" || triangle == "l");
  Value scale = safe_scale(a);
  const Eigen e = solve(a / cast_like(scale, a));
  Value vectors = c.flag("compute_v") ? reshape(e.vectors, c.out(1).dims) : full(c.b, 0, c.out(1));
  return {reshape(e.values * scale, c.out(0).dims), vectors};
}

}  // namespace

void linalg_eigh(Table& t) { t.op("_linalg_eigh", eigh); }

}  // namespace tpu::ops
