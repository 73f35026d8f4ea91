// The complex Schur form and the eigenvectors of triangular matrices.
#pragma once

#include "core/ops/linalg.h"

namespace tpu::ops {

/// h = z t z^H with t upper triangular, its diagonal the eigenvalues.
struct Schur {
  Value t;          // complex [batch, n, n]; what is below the diagonal means nothing
  Value z;          // complex [batch, n, n]
  Value converged;  // bool [batch, 1, 1]
};
/// Of a complex Hessenberg matrix [batch, n, n] of finite numbers, by the QR algorithm with single shifts
/// (Francis 1961; Golub and Van Loan, Matrix Computations, section 7.5).
Schur schur_form(Value h);

/// The eigenvectors of an upper triangular matrix, as columns of an upper triangular one. Where eigenvalues
/// are equal up to rounding they are set apart by that much. Not normalised.
Value triangular_eigenvectors(Value t);

}  // namespace tpu::ops
