// Operators that PyTorch composes of others on CPU and CUDA but not on a device it does not know.
#include <ATen/ops/_embedding_bag_dense_backward.h>
#include <torch/library.h>

namespace tpu::torch_shim {
namespace {

at::Tensor embedding_bag_backward(const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& offsets,
                                  const at::Tensor& offset2bag, const at::Tensor& bag_size,
                                  const at::Tensor& maximum_indices, c10::SymInt num_weights, bool scale_grad_by_freq,
                                  int64_t mode, bool sparse, const std::optional<at::Tensor>& per_sample_weights,
                                  int64_t padding_idx) {
  TORCH_CHECK_NOT_IMPLEMENTED(!sparse, "embedding_bag: the tpu device has no sparse gradients; use sparse=False");
  return at::_embedding_bag_dense_backward_symint(grad, indices, offset2bag, bag_size, maximum_indices,
                                                  std::move(num_weights), scale_grad_by_freq, mode, per_sample_weights,
                                                  padding_idx);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("_embedding_bag_backward", embedding_bag_backward); }

}  // namespace
}  // namespace tpu::torch_shim
