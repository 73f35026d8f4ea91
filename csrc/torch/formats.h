// Memory formats of results that CPU torch promises and Meta kernels do not say.
#pragma once

#include <c10/core/MemoryFormat.h>

#include <optional>

#include "torch/schema.h"

namespace tpu::torch_shim {

/// The memory format of the first result of a call; nullopt where its Meta kernel knows.
std::optional<c10::MemoryFormat> promised_format(const OpPlan& plan, const c10::Stack& stack);

}  // namespace tpu::torch_shim
