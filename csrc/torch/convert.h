// Between PyTorch's types and the core's.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "core/base/dtype.h"
#include "core/hlo/type.h"

namespace tpu::torch_shim {

/// The core's dtype; throws NotImplementedError for a type no device array can hold (quantised, bits, ...).
DType to_core(c10::ScalarType type);
c10::ScalarType to_torch(DType type);

template <typename Ints>
hlo::Dims dims_of(const Ints& list) {
  return hlo::Dims(list.begin(), list.end());
}

}  // namespace tpu::torch_shim
