// Linear algebra: the errors that depend on values. They wait for the device, as they do on CPU and CUDA.
#pragma once

#include <ATen/core/stack.h>

#include "torch/schema.h"

namespace tpu::torch_shim {

/// Runs an operator with an argument `check_errors`: when that is set, the last result (`info`) is read, and
/// an error it tells of raised (torch.linalg.LinAlgError).
void run_checked(const OpPlan& plan, c10::Stack* stack);

// ---- preparations of calls (see Prepare in engine.h)
/// _linalg_svd: the errors of a driver, and of numbers that are not finite.
void check_svd(const OpPlan& plan, c10::Stack& stack);
/// linalg_eig and _linalg_eigh: the errors of numbers that are not finite; eigenvectors of Hermitian matrices
/// are NaN.
void check_eig(const OpPlan& plan, c10::Stack& stack);
void check_eigh(const OpPlan& plan, c10::Stack& stack);
/// cholesky_inverse: the error of a zero on the diagonal.
void check_cholesky_inverse(const OpPlan& plan, c10::Stack& stack);

}  // namespace tpu::torch_shim
