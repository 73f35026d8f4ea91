// Prefix scans in linear work, without reduce_window (quadratic on XLA's CPU device).
#pragma once

#include <functional>

#include "core/ops/call.h"

namespace tpu::ops {

/// Inclusive scan along `dim` by an associative combine(earlier, later) of equal shapes; any extent.
Value scan_along(Value x, int dim, const std::function<Value(Value, Value)>& combine);

}  // namespace tpu::ops
