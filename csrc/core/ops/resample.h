// The parts of the resampling family.
#pragma once

#include "core/ops/table.h"

namespace tpu::ops {

void grid_sampler(Table& t);  // grid_sampler.cc
void unfold(Table& t);        // unfold.cc: im2col, col2im, pixel and channel shuffles

}  // namespace tpu::ops
