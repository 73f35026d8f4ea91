// The C++ Meta kernels that PyTorch's own Python ones hide.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/operator_name.h>

namespace tpu::torch_shim {

/// The C++ kernel that gives the result types of this operator, or nullptr when there is only
/// a Python one.
const c10::KernelFunction* cpp_meta(const c10::OperatorName& name);

}  // namespace tpu::torch_shim
