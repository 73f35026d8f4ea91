// The type of a StableHLO tensor: element type and static dimensions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"

namespace tpu::hlo {

using Dims = std::vector<int64_t>;

struct Type {
  DType dtype = DType::F32;
  Dims dims;

  int rank() const { return static_cast<int>(dims.size()); }
  int64_t elements() const;
  /// MLIR spelling, e.g. "tensor<2x3xf32>".
  std::string str() const;
  bool operator==(const Type&) const = default;
};

/// Product of the dimensions (1 for none).
int64_t product(std::span<const int64_t> dims);
/// "[2, 3]", for messages.
std::string str(std::span<const int64_t> dims);
/// "array<i64: 2, 3>", the attribute form.
std::string i64_array(std::span<const int64_t> values);
/// Row-major strides of a dense array.
Dims row_major(std::span<const int64_t> dims);

}  // namespace tpu::hlo
