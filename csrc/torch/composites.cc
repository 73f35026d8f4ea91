// Operators that PyTorch composes of others on CPU and CUDA but not on a device it does not know.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_ctc_loss.h>
#include <ATen/ops/_ctc_loss_backward.h>
#include <ATen/ops/_embedding_bag_dense_backward.h>
#include <ATen/ops/index_copy.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include "torch/transfer.h"

namespace tpu::torch_shim {
namespace {

at::Tensor embedding_bag_backward(const at::Tensor& grad, const at::Tensor& indices,
                                  const at::Tensor& offsets, const at::Tensor& offset2bag,
                                  const at::Tensor& bag_size, const at::Tensor& maximum_indices,
                                  c10::SymInt num_weights, bool scale_grad_by_freq, int64_t mode, bool sparse,
                                  const std::optional<at::Tensor>& per_sample_weights, int64_t padding_idx) {
  TORCH_CHECK_NOT_IMPLEMENTED(!sparse,
                              "embedding_bag: the tpu device has no sparse gradients; use sparse=False");
  return at::_embedding_bag_dense_backward_symint(grad, indices, offset2bag, bag_size, maximum_indices,
                                                  std::move(num_weights), scale_grad_by_freq, mode,
                                                  per_sample_weights, padding_idx);
}

// The rows named by `indices` whose norm is above max_norm are scaled down to it. A row that is named twice
// is written twice, with the same values.
at::Tensor& embedding_renorm_(at::Tensor& self, const at::Tensor& indices, double max_norm,
                              double norm_type) {
  TORCH_CHECK(self.dim() == 2, "embedding_renorm_: expected a matrix, got a tensor of shape ", self.sizes());
  const at::Tensor index = indices.reshape({-1});
  if (index.numel() == 0) return self;
  const at::Tensor rows = self.index_select(0, index);
  const at::Tensor norm = at::linalg_vector_norm(rows, norm_type, c10::IntArrayRef{1}, /*keepdim=*/true);
  const at::Tensor scale =
      at::where(norm > max_norm, max_norm * (norm + 1e-7).reciprocal(), at::ones_like(norm));
  return self.index_copy_(0, index, rows * scale);
}

// A copy of a part, not a view of it.
at::Tensor copied_part(const at::Tensor& self, int64_t dim, int64_t start, int64_t length) {
  TORCH_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  TORCH_CHECK(length >= 0, "narrow(): length must be non-negative.");
  TORCH_CHECK(dim < self.dim(), "narrow_copy(): expected dim < ", self.dim(), ", got ", dim);
  return self.narrow(dim, start, length).clone(c10::MemoryFormat::Contiguous);
}

at::Tensor& copied_part_out(const at::Tensor& self, int64_t dim, int64_t start, int64_t length,
                            at::Tensor& out) {
  const at::Tensor part = copied_part(self, dim, start, length);
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), "Expected out tensor to have dtype ",
              self.scalar_type(), ", but got ", out.scalar_type(), " instead");
  at::native::resize_output(out, part.sizes());
  return out.copy_(part);
}

void assert_async_msg(const at::Tensor& self, c10::string_view message) {
  TORCH_CHECK(self.is_nonzero(), message);
}
void assert_async(const at::Tensor& self) {
  assert_async_msg(self, "Expected Tensor with single nonzero value, but got zero");
}

std::vector<int64_t> numbers(const at::Tensor& t) {
  const at::Tensor host = (t.is_cpu() ? t : download(t)).to(at::kLong).contiguous();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}

// Lengths are part of the loss's program.
std::tuple<at::Tensor, at::Tensor> ctc_loss(const at::Tensor& log_probs, const at::Tensor& targets,
                                            const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                                            int64_t blank, bool zero_infinity) {
  return at::_ctc_loss(log_probs, targets, numbers(input_lengths), numbers(target_lengths), blank,
                       zero_infinity);
}
at::Tensor ctc_loss_backward(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                             const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                             const at::Tensor& neg_log_likelihood, const at::Tensor& log_alpha, int64_t blank,
                             bool zero_infinity) {
  return at::_ctc_loss_backward(grad, log_probs, targets, numbers(input_lengths), numbers(target_lengths),
                                neg_log_likelihood, log_alpha, blank, zero_infinity);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_embedding_bag_backward", embedding_bag_backward);
  m.impl("embedding_renorm_", embedding_renorm_);
  m.impl("narrow_copy", copied_part);
  m.impl("narrow_copy.out", copied_part_out);
  m.impl("_ctc_loss.Tensor", ctc_loss);
  m.impl("_ctc_loss_backward.Tensor", ctc_loss_backward);
  m.impl("_assert_async", assert_async);
  m.impl("_assert_async.msg", assert_async_msg);
}

}  // namespace
}  // namespace tpu::torch_shim
