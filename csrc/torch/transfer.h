// Tensors between host and device.
#pragma once

#include <ATen/core/Tensor.h>

namespace tpu::torch_shim {

/// A CPU tensor with the values of a tpu tensor (contiguous). Waits; throws the errors of the work that made
/// it, and bad indices.
at::Tensor download(const at::Tensor& t);
/// The value of a one-element s64 tensor.
int64_t read_count(const at::Tensor& t);

}  // namespace tpu::torch_shim
