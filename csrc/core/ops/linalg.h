// Dense linear algebra: what its families share.
//
// Matrices are batched as [batch, rows, columns] (vectors as columns). Algorithms are loops over blocks of
// columns with masks instead of shrinking shapes, so that a program is as long for large matrices as for
// small ones, and every matrix of a batch takes the same steps.
#pragma once

#include "core/ops/call.h"

namespace tpu::ops {

class Table;

// ---- arguments
/// A tensor argument that holds matrices. Error(Unimplemented) for dtypes other than the
/// two real and the two complex ones linear algebra has.
Value matrices(Call& c, const char* name);

// ---- shapes
/// [.., m, n] as [batch, m, n].
Value as_batch(Value x);
/// The dimensions before the last `n`.
Dims batch_of(const Dims& dims, int n = 2);
/// x [.., m, n] (or [.., n], `matrix_dims` = 1) with its batch broadcast to this one.
Value with_batch(Value x, Dims batch, int matrix_dims = 2);
/// Zeros after the end of a dimension, up to `size`; x itself when it is as large already.
Value extend(Value x, int dim, int64_t size);
/// x[.., start:start+size, ..] for a start known at run time (S32, the same for the whole batch).
Value slice_at(Value x, int dim, Value start, int64_t size);
/// x with `part` written over it at `start`.
Value write_at(Value x, Value part, int dim, Value start);

/// n columns as `count` blocks of `size`, the last one perhaps not full.
struct Blocks {
  int64_t size, count;
  int64_t total() const { return size * count; }
};
/// One block as long as that is quick, then blocks of at most 32.
Blocks blocks_of(int64_t n);

// ---- masks: S32 positions that broadcast against [batch, m, n]
Value row_index(hlo::Builder& b, int64_t m);     // [1, m, 1]
Value column_index(hlo::Builder& b, int64_t n);  // [1, 1, n]
/// Bool [1, m, n]: row - column > offset, < offset, == offset.
Value below_diagonal(hlo::Builder& b, int64_t m, int64_t n, int64_t offset = 0);
Value above_diagonal(hlo::Builder& b, int64_t m, int64_t n, int64_t offset = 0);
/// A complex x without its imaginary part; a real x as it is.
Value as_real(Value x);
/// x where the condition holds, zero elsewhere.
Value keep(Value condition, Value x);
/// Ones on the diagonal: [1, m, n].
Value eye(hlo::Builder& b, DType dtype, int64_t m, int64_t n);
/// The diagonal as a column: [batch, min(m, n), 1].
Value diagonal(Value x);
/// [batch, n, 1] as a row [batch, 1, n] and back.
inline Value turned(Value x) { return swap_dims(x, 1, 2); }

// ---- products, in full precision whatever matrix products of the user's have
/// x y, x^H y and x y^H.
Value times(Value x, Value y);
Value adjoint_times(Value x, Value y);
Value times_adjoint(Value x, Value y);
Value adjoint(Value x);
/// The largest |element| of each matrix, [batch, 1, 1], real.
Value largest(Value x);
/// What a matrix has to be divided by so that sums of squares of its elements neither overflow nor vanish:
/// [batch, 1, 1], real; 1 for all but extreme ones.
Value safe_scale(Value x);
/// Bool [batch, 1, 1]: no element is infinite or NaN.
Value all_finite(Value x);
/// A real value in the dtype of x.
inline Value cast_like(Value real, Value x) { return convert(real, x.dtype()); }

// ---- loops
/// The state after body(i, state, constants) for i = 0, 1, .. count - 1 (S32).
using Body = std::function<Values(Value i, const Values& state, const Values& constants)>;
Values repeat(int64_t count, const Values& state, const Values& constants, const Body& body);
/// The same for i = start, .. end - 1, known at run time.
Values repeat(Value start, Value end, const Values& state, const Values& constants, const Body& body);

// ---- triangles (linalg_triangular.cc)
struct Triangle {
  bool lower = true, unit = false;
};
/// The solution x of a x = b. Only the triangle of `a` is read.
Value solve_triangle(Value a, Value b, Triangle t);

// ---- LU with row interchanges (linalg_lu.cc)
struct Lu {
  Value lu;      // [batch, m, n]: U, and L below the diagonal
  Value pivots;  // S32 [batch, k, 1] from 0: row i was exchanged with row pivots[i]
  Value order;   // S32 [batch, m, 1]: a[order] = L U
  Value info;    // S32 [batch, 1, 1]: 1 + the first column without a pivot, or 0
};
Lu factor_lu(Value a, bool pivot = true);
/// The solution x of a x = b, or of a^H x = b.
Value solve_lu(Value lu, Value order, Value b, bool adjoint_system);
/// The rows of x in the given order (S32 [batch, m, 1]), and back.
Value rows_in_order(Value x, Value order);
Value inverse_order(Value order);

// ---- entries, one function a file
void linalg_cholesky(Table& t);
void linalg_triangular(Table& t);
void linalg_eig(Table& t);
void linalg_eigh(Table& t);
void linalg_exp(Table& t);
void linalg_ldl(Table& t);
void linalg_lu(Table& t);
void linalg_qr(Table& t);
void linalg_svd(Table& t);

}  // namespace tpu::ops
