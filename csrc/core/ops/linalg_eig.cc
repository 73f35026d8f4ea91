// Eigenvalues and eigenvectors of general matrices: Hessenberg form, Schur form, eigenvectors of that.
#include <cmath>

#include "core/ops/householder.h"
#include "core/ops/math.h"
#include "core/ops/schur.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

Value square_norms(Value columns) {
  Value re = real(columns), im = imag(columns);
  return unsqueeze(reduce_sum(re * re + im * im, {1}), 1);
}

// Columns of length one whose largest element is real and positive, as LAPACK has them.
Value normalised(Value x) {
  Value size = abs(x);
  auto [peak, place] = arg_reduce(size, 1, true, DType::S32);
  peak = unsqueeze(peak, 1);
  Value chosen = equal(row_index(x.builder(), x.size(1)), unsqueeze(place, 1));
  Value top = unsqueeze(reduce_sum(keep(chosen, x), {1}), 1);
  Value safe = select(peak > 0.0, peak, like(peak, 1));
  x = x * (conjugate(top) / cast_like(safe, x)) / cast_like(safe * safe, x);
  Value norm = sqrt(square_norms(x));
  return x / cast_like(select(norm > 0.0, norm, like(norm, 1)), x);
}

// The eigenvalues of a real matrix are real or come in pairs. Each is compared with the conjugate of that
// which comes nearest to it, be it itself.
struct Partner {
  Value index;          // S32 [batch, n, 1]
  Value alone, paired;  // bool [batch, n, 1]
};
Partner partners(Value values) {
  const int64_t n = values.size(1);
  Builder& b = values.builder();
  Value distance = abs(values - turned(conjugate(values)));
  Value index = unsqueeze(arg_reduce(distance, 2, false, DType::S32).second, 2);
  Value own = row_index(b, n), back = rows_in_order(index, index);
  return {index, equal(index, own), equal(back, own) & not_equal(index, own)};
}

// linalg_eig(self) -> eigenvalues, eigenvectors; _linalg_eigvals(self) -> eigenvalues
Results eigenvalues(Call& c, bool with_vectors) {
  Value a = matrices(c, "self");
  const DType t = complex_of(a.dtype());
  if (a.elements() == 0) {
    Value none = full(c.b, 0, {t, c.out(0).dims});
    return with_vectors ? Results{none, full(c.b, 0, {t, a.dims()})} : Results{none};
  }
  const bool is_real = !is_complex(a.dtype());
  a = as_batch(a);
  Value finite = all_finite(a), nan = convert(like(real(a), NAN), t);
  a = keep(finite, a);
  Value scale = safe_scale(a);
  a = a / cast_like(scale, a);
  const Hessenberg h = reduce_hessenberg(a);
  const Schur s = schur_form(convert(h.h, t));
  Value values = diagonal(s.t), good = finite & s.converged;
  Value vectors;
  if (with_vectors) {
    vectors = times(s.z, triangular_eigenvectors(s.t));
    vectors = normalised(apply({convert(h.q.v, t), convert(h.q.tau, t)}, vectors));
  }
  if (is_real) {
    const Partner p = partners(values);
    Value other = conjugate(rows_in_order(values, p.index));
    values = select(p.alone, as_real(values), select(p.paired, (values + other) * 0.5, values));
    if (with_vectors) {
      // Of a pair the first one's vector counts.
      Value swapped = conjugate(swap_dims(rows_in_order(swap_dims(vectors, 1, 2), p.index), 1, 2));
      Value second = p.paired & (p.index < row_index(c.b, values.size(1)));
      vectors = select(turned(second), swapped, vectors);
      vectors = select(turned(p.alone), normalised(as_real(vectors)), vectors);
    }
  }
  values = select(good, values * convert(scale, t), nan);
  Results out{reshape(values, c.out(0).dims)};
  if (with_vectors) out.push_back(reshape(select(good, vectors, nan), c.out(1).dims));
  return out;
}

}  // namespace

void linalg_eig(Table& t) {
  t.op("linalg_eig", [](Call& c) { return eigenvalues(c, true); });
  t.op("_linalg_eigvals", [](Call& c) { return eigenvalues(c, false); });
}

}  // namespace tpu::ops
