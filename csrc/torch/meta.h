// What PyTorch says an operator's results will be: its Meta kernel, run on a miss only.
#pragma once

#include <vector>

#include "torch/frame.h"

namespace tpu::torch_shim {

/// The results of the functional overload for these arguments, in order (a list's tensors one by one).
/// nullopt when the operator has no Meta kernel. Argument errors leave as PyTorch raises them.
std::optional<std::vector<Expected>> run_meta(const OpPlan& plan, const c10::Stack& stack);

/// What the written arguments of an in-place or out= overload become, in the order of plan.targets: an out
/// tensor of another shape takes the results' shape and strides. nullopt when the overload has no Meta kernel
/// of its own. Argument errors, and the warning of a resize, leave as PyTorch gives them.
std::optional<std::vector<Expected>> run_writing_meta(const OpPlan& plan, const c10::Stack& stack);

}  // namespace tpu::torch_shim
