// Jacobi's method for small matrices: little code to compile, and all pairs of columns that have none in
// common are rotated at once.
#pragma once

#include "core/ops/linalg.h"

namespace tpu::ops {

/// Matrices of at most this size are worth it.
constexpr int64_t kJacobiSize = 32;

/// v^H a v is diagonal.
struct JacobiEigen {
  Value values;   // real [batch, n, 1], in no order
  Value vectors;  // [batch, n, n]
};
/// Two-sided rotations of a Hermitian matrix [batch, n, n].
JacobiEigen jacobi_eigen(Value a);

/// The columns of a v are orthogonal.
struct JacobiColumns {
  Value columns;  // a v: [batch, m, n]
  Value vectors;  // v: [batch, n, n]
};
/// One-sided rotations (Hestenes) of any matrix [batch, m, n].
JacobiColumns jacobi_columns(Value a);

}  // namespace tpu::ops
