// How a strided view lies in the dense array of its storage, as StableHLO: slice, reshape, transpose and
// broadcast where the strides allow it, gather and scatter for every other (overlapping, unaligned)
// as_strided.
#pragma once

#include "core/hlo/functions.h"

namespace tpu::view {

using hlo::Dims;

/// What a tensor needs of its storage: the storage's dense array (dims, dtype) and the tensor's place in it.
struct Layout {
  DType cell_dtype;  // of the array on the device
  Dims cell_dims;
  DType dtype;  // of the tensor; another than the cell's after view(dtype), view_as_real, view_as_complex
  Dims sizes, strides;  // in elements of `dtype`
  int64_t offset = 0;

  /// The tensor is the whole array as it is.
  bool is_whole() const;
};

/// The tensor's value. `cell` has the layout's cell type.
hlo::Value read(hlo::Value cell, const Layout& layout);
/// The cell after the tensor's elements were replaced by `update` (the tensor's type).
hlo::Value write(hlo::Value cell, hlo::Value update, const Layout& layout);
/// True when a write replaces every element, so that the old array is not needed.
bool covers(const Layout& layout);

/// The order in which a result with these strides lies in memory: dims sorted by stride, largest first
/// (stable). A tensor whose strides are dense in that order is stored as the transposed array.
Dims memory_order(const Dims& sizes, const Dims& strides);
/// True when sizes and strides fill a block without gaps or overlap.
bool is_dense(const Dims& sizes, const Dims& strides);

}  // namespace tpu::view
