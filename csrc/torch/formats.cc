#include "torch/formats.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <string_view>
#include <vector>

namespace tpu::torch_shim {
namespace {

/// Positions of the arguments, the first of which that is channels last makes the result so.
const std::map<std::string_view, std::vector<size_t>>& followed() {
  static const std::map<std::string_view, std::vector<size_t>> all = {
      {"aten::convolution_overrideable", {0, 1}},
      {"aten::max_unpool2d", {0}},
      {"aten::native_group_norm", {0}},
      {"aten::pixel_shuffle", {0}},
      {"aten::reflection_pad2d", {0}},
      {"aten::reflection_pad3d", {0}},
      {"aten::replication_pad2d", {0}},
      {"aten::replication_pad3d", {0}},
      {"aten::roll", {0}},
  };
  return all;
}

}  // namespace

std::optional<c10::MemoryFormat> promised_format(const OpPlan& plan, const c10::Stack& stack) {
  const size_t base = stack.size() - plan.arguments.size();
  if (plan.name == "aten::_scaled_dot_product_fused_attention_overrideable") {
    // CPU torch's fused kernel takes rows without gaps only; the other one's result is contiguous.
    const at::Tensor& query = stack[base].toTensor();
    if (query.stride(-1) != 1) return c10::MemoryFormat::Contiguous;
    return std::nullopt;
  }
  const auto at = followed().find(plan.name);
  if (at == followed().end()) return std::nullopt;
  for (const size_t i : at->second) {
    const c10::MemoryFormat format = stack[base + i].toTensor().suggest_memory_format();
    if (format != c10::MemoryFormat::Contiguous) return format;
  }
  return std::nullopt;
}

}  // namespace tpu::torch_shim
