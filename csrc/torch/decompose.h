// Operators without an entry that PyTorch can express by others: traced once a signature, compiled as one
// program.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <memory>

#include "torch/schema.h"

namespace tpu::torch_shim {

/// Gives the program of an operator for these arguments (its inputs are the tensors among them, in order), or
/// null.
using Decomposer =
    std::function<std::shared_ptr<const Body>(const c10::FunctionSchema&, const c10::Stack& arguments)>;
void set_decomposer(Decomposer decomposer);

/// Runs the operator from its decomposition, replacing the arguments on the stack by the results. False, with
/// the stack as it was, when there is none.
bool run_decomposed(const c10::OperatorHandle& op, c10::Stack* stack);

}  // namespace tpu::torch_shim
