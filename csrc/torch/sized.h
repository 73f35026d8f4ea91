// Operators whose result's size comes from the values of their arguments: the device computes everything at
// its largest size, and the host reads how much of it counts.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "torch/schema.h"

namespace tpu::torch_shim {

/// The first `count` rows of a padded result, as a tensor of its own. Through the host, since every count
/// would be a new program.
at::Tensor first_rows(const at::Tensor& padded, int64_t count);
/// torch.nonzero.
at::Tensor true_positions(const at::Tensor& self);

// ---- preparations of calls (see Prepare in engine.h)
/// A bool (or byte) mask among `indices` stands for the positions of its true elements, one index a dimension
/// of the mask. A mask that index_put can write through as it is stays.
void expand_masks(const OpPlan& plan, c10::Stack& stack);
/// Gives repeat_interleave's missing `output_size` the sum of its repeats. RuntimeError for a negative one.
void count_repeats(const OpPlan& plan, c10::Stack& stack);

}  // namespace tpu::torch_shim
