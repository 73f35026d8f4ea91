// What PyTorch says an operator's results will be: its Meta kernel, run on a miss only.
#pragma once

#include <vector>

#include "torch/frame.h"

namespace tpu::torch_shim {

/// The results of the functional overload for these arguments, in order (a list's tensors one by one).
/// nullopt when the operator has no Meta kernel. Argument errors leave as PyTorch raises them.
std::optional<std::vector<Expected>> run_meta(const OpPlan& plan, const c10::Stack& stack);

}  // namespace tpu::torch_shim
