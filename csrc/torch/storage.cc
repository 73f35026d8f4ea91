#include "torch/storage.h"

#include <ATen/ATen.h>

#include <atomic>

#include "core/runtime/runtime.h"
#include "torch/convert.h"
#include "torch/errors.h"

namespace tpu::torch_shim {
namespace {

// Addresses only tell storages apart: each gets a range of its own, far from any real mapping.
void* new_address(size_t bytes) {
  static std::atomic<uint64_t> next{uint64_t{1} << 48};
  return reinterpret_cast<void*>(next.fetch_add((bytes + 511) / 512 * 512 + 512, std::memory_order_relaxed));
}

at::Tensor wrap(Cell* cell, c10::ScalarType dtype, size_t bytes) {
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, new_data_ptr(cell, bytes), allocator(), /*resizable=*/true);
  return at::detail::make_tensor_base<c10::TensorImpl>(std::move(storage),
                                                       c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                                       c10::scalarTypeToTypeMeta(dtype));
}

}  // namespace

void delete_cell(void* context) { delete static_cast<Cell*>(context); }

void throw_no_cell() {
  TORCH_CHECK(false,
              "this storage was made from a raw address of the tpu device (a slice of a storage, from_blob "
              "or DLPack), which leads "
              "to no memory there: use tensors and views of them, or copy through the CPU");
}

c10::DataPtr new_data_ptr(Cell* cell, size_t bytes) {
  return {new_address(bytes), cell, &delete_cell,
          c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(cell->device))};
}

at::Tensor new_tensor(int device, c10::ScalarType dtype, c10::IntArrayRef sizes, runtime::ArrayPtr array) {
  auto* cell = new Cell{device, {to_core(dtype), dims_of(sizes)}, std::move(array)};
  at::Tensor t = wrap(cell, dtype, static_cast<size_t>(cell->type.elements()) * c10::elementSize(dtype));
  t.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return t;
}

at::Tensor new_tensor(int device, c10::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                      runtime::ArrayPtr array) {
  const hlo::Dims s = dims_of(sizes);
  hlo::Dims dims;
  for (int64_t d : view::memory_order(s, dims_of(strides))) dims.push_back(s[d]);
  auto* cell = new Cell{device, {to_core(dtype), std::move(dims)}, std::move(array)};
  at::Tensor t = wrap(cell, dtype, static_cast<size_t>(cell->type.elements()) * c10::elementSize(dtype));
  t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return t;
}

view::Layout layout_of(const at::TensorBase& t) {
  const Cell* cell = cell_of(t);
  return {cell->type.dtype,   cell->type.dims,      to_core(t.scalar_type()),
          dims_of(t.sizes()), dims_of(t.strides()), t.storage_offset()};
}

}  // namespace tpu::torch_shim
