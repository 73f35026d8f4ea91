// What is checked on the host before a program is made for a call.
#pragma once

#include <ATen/core/stack.h>

#include "torch/schema.h"

namespace tpu::torch_shim {

/// RuntimeError, as on the CPU, for a written tensor whose elements share memory or that overlaps an argument
/// in part. It depends on nothing but the key, so it is for a miss only.
void check_overlaps(const OpPlan& plan, const c10::Stack& stack);

/// histc's range becomes a proper one: the data's own when min and max are equal. A preparation of a call
/// (see Prepare in engine.h). RuntimeError, as on the CPU, for a range that is none.
void complete_range(const OpPlan& plan, c10::Stack& stack);

/// The tensors of an argument: one, a list, or those of an optional list that are not None. Empty for others.
std::vector<at::Tensor> tensors_of(const c10::IValue& argument);

}  // namespace tpu::torch_shim
