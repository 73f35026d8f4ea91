// What the loss families share.
#pragma once

#include "core/ops/table.h"

namespace tpu::ops {

// The values of the argument `reduction`.
constexpr int64_t kNone = 0, kMean = 1, kSum = 2;

/// The losses x as they are, averaged or summed, as the argument `reduction` says.
Value reduce_loss(Call& c, Value x);
/// The gradient each of `count` losses gets from that of the reduced one.
Value mean_share(Call& c, Value grad, int64_t count);

void class_losses(Table& t);  // loss_class.cc: targets are class numbers
void ctc_loss(Table& t);      // loss_ctc.cc

}  // namespace tpu::ops
