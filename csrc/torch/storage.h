// Storages of the tpu device: their DataPtr's context is a Cell, their address is a number that is never
// dereferenced.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/core/Allocator.h>

#include "core/runtime/array.h"
#include "core/view/recipe.h"

namespace tpu::torch_shim {

using runtime::Cell;

/// The deleter of our DataPtrs. A storage with another one was made from a raw address and has no cell.
void delete_cell(void* context);
[[noreturn]] void throw_no_cell();

inline Cell* cell_of(const c10::StorageImpl* storage) {
  const c10::DataPtr& data = storage->data_ptr();
  if (data.get_deleter() != &delete_cell) throw_no_cell();
  return static_cast<Cell*>(data.get_context());
}
inline Cell* cell_of(const at::TensorBase& t) {
  return cell_of(t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
}

/// A DataPtr that owns a new cell, at an address range of its own.
c10::DataPtr new_data_ptr(Cell* cell, size_t bytes);
/// The allocator of the device (also its c10::DeviceAllocator).
c10::Allocator* allocator();

/// A tensor on a new storage whose array lies in the order of `strides` (which must be dense).
at::Tensor new_tensor(int device, c10::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                      runtime::ArrayPtr array = nullptr);
/// Contiguous.
at::Tensor new_tensor(int device, c10::ScalarType dtype, c10::IntArrayRef sizes,
                      runtime::ArrayPtr array = nullptr);
/// Where the tensor lies in its cell.
view::Layout layout_of(const at::TensorBase& t);

}  // namespace tpu::torch_shim
