// Which scaled_dot_product_attention runs: our one-program forward and backward where they apply, PyTorch's
// composite elsewhere.
#include <ATen/SDPBackend.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>

namespace tpu::torch_shim {
namespace {

int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const std::optional<at::Tensor>& mask, double /*dropout*/, bool /*is_causal*/,
               std::optional<double> /*scale*/, bool /*enable_gqa*/) {
  const bool fits = query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && query.size(0) == key.size(0) &&
                    key.size(0) == value.size(0) && key.size(1) == value.size(1) &&
                    key.size(2) == value.size(2) && key.size(1) > 0 && query.size(1) % key.size(1) == 0 &&
                    query.is_floating_point() && query.numel() > 0 && key.numel() > 0 && value.numel() > 0 &&
                    query.scalar_type() == key.scalar_type() && query.scalar_type() == value.scalar_type() &&
                    !(mask && mask->defined() && mask->requires_grad());
  return static_cast<int64_t>(fits ? at::SDPBackend::overrideable : at::SDPBackend::math);
}

}  // namespace
}  // namespace tpu::torch_shim

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &tpu::torch_shim::choose)
}  // namespace at::native
