// out= forms that no entry serves.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace tpu::torch_shim {

/// Runs an out= form by its functional sibling, whose results are copied to the out arguments (resized where
/// their sizes differ). False, with the stack as it was, when the operator is no out= form or has no sibling
/// that runs without it.
bool run_out_form(const c10::OperatorHandle& op, c10::Stack* stack);

}  // namespace tpu::torch_shim
