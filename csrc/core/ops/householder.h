// Householder reflections H = I - tau v v^H as LAPACK defines them, one by one and in blocks (the compact WY
// form of Schreiber and Van Loan: a product of reflections is I - V T V^H).
#pragma once

#include "core/ops/linalg.h"

namespace tpu::ops {

/// The reflection with H^H x = beta e, where x are the rows of a column from row `at` on.
struct Reflection {
  Value v;     // [batch, m, 1]: zero above row `at`, one there
  Value tau;   // [batch, 1, 1]
  Value beta;  // [batch, 1, 1], real; -sign(re x[at]) |x|
};
/// `at`: S32, the same for the batch. A column that is zero below `at` (and real there) gives tau = 0.
Reflection reflection(Value column, Value at);

/// The products of k reflections H1 H2 .. Hk: v [batch, m, k] holds them as columns, tau [batch, k, 1].
struct Reflections {
  Value v, tau;
};
/// The reflections below the diagonal of a factored matrix [batch, m, n], k of them.
Reflections reflections_below(Value factored, Value tau);
/// T [batch, k, k] of H1 .. Hk = I - V T V^H.
Value triangle_of(Reflections h);
/// (H1 .. Hk) x, or its adjoint times x.
Value apply(Reflections h, Value x, bool adjoint_product = false);

struct Qr {
  Value factored;  // [batch, m, n]: R, and the reflections below the diagonal
  Value tau;       // [batch, min(m, n), 1]
};
/// As LAPACK's geqrf.
Qr factor_qr(Value a);

/// Q^H a Q = h with h zero below its first subdiagonal, for square a [batch, n, n].
struct Hessenberg {
  Value h;        // the subdiagonal is real
  Reflections q;  // n - 1 of them, of rows 1, ..
};
Hessenberg reduce_hessenberg(Value a);

/// Q^H a P = b with b upper bidiagonal and real, for square a [batch, n, n].
struct Bidiagonal {
  Value diagonal, above;  // real [batch, n, 1] and [batch, n - 1, 1]
  Reflections q, p;       // n of them
};
Bidiagonal reduce_bidiagonal(Value a);

}  // namespace tpu::ops
