// Eigenvalues and eigenvectors of real symmetric tridiagonal matrices.
#pragma once

#include "core/ops/linalg.h"

namespace tpu::ops {

struct Eigen {
  Value values;   // [batch, n, 1], ascending
  Value vectors;  // [batch, n, n], a column each
};
/// Eigenvalues [batch, n, 1] in ascending order, the columns of `vectors` [batch, m, n] with them.
Eigen in_order(Value values, Value vectors);
/// `diagonal` [batch, n, 1], `beside` [batch, n - 1, 1]. A matrix with numbers that are not finite gives NaN.
/// Divide and conquer: Cuppen (1981), with the eigenvectors of Gu and Eisenstat (1994).
Eigen solve_tridiagonal(Value diagonal, Value beside);

}  // namespace tpu::ops
