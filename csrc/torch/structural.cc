// Allocation, views and storage: the operators that move no data on the device.
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "torch/convert.h"
#include "torch/device.h"
#include "torch/errors.h"
#include "torch/storage.h"

namespace tpu::torch_shim {
namespace {

using c10::IntArrayRef;

int device_of(std::optional<c10::Device> device) {
  return guarded([&] {
    const int index = device && device->has_index() ? device->index() : -1;
    if (index >= 0) device_at(index);
    return resolve_device(index);
  });
}

void check_options(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(!layout || *layout == c10::kStrided, "the tpu device has strided tensors only, not ", *layout);
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

void check_sizes(IntArrayRef sizes) {
  for (int64_t s : sizes)
    TORCH_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ", sizes);
}

at::Tensor empty(IntArrayRef sizes, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin_memory,
                 std::optional<c10::MemoryFormat> format) {
  check_options(layout, pin_memory);
  check_sizes(sizes);
  const c10::ScalarType type = c10::dtype_or_default(dtype);
  at::detail::computeStorageNbytesContiguous(sizes, c10::elementSize(type));  // refuses a size that overflows
  at::Tensor t = new_tensor(device_of(device), type, sizes);
  if (format && *format != c10::MemoryFormat::Contiguous && *format != c10::MemoryFormat::Preserve)
    return new_tensor(t.device().index(), t.scalar_type(), sizes,
                      *format == c10::MemoryFormat::ChannelsLast ? c10::get_channels_last_strides_2d(sizes)
                                                                 : c10::get_channels_last_strides_3d(sizes));
  return t;
}

at::Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  check_sizes(sizes);
  TORCH_CHECK(sizes.size() == strides.size(), "empty_strided: ", sizes.size(), " sizes but ", strides.size(),
              " strides");
  const c10::ScalarType type = c10::dtype_or_default(dtype);
  if (view::is_dense(dims_of(sizes), dims_of(strides)))
    return new_tensor(device_of(device), type, sizes, strides);
  // Gaps or overlap: a flat storage of the extent, seen through the strides.
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(type));
  at::Tensor flat =
      new_tensor(device_of(device), type, {static_cast<int64_t>(bytes / c10::elementSize(type))});
  flat.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return flat;
}

at::Tensor as_strided(const at::Tensor& self, IntArrayRef sizes, IntArrayRef strides,
                      std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, sizes, strides, offset);
}

const at::Tensor& resize_(const at::Tensor& self, IntArrayRef sizes,
                          std::optional<c10::MemoryFormat> format) {
  check_sizes(sizes);
  const bool preserved = format && *format == c10::MemoryFormat::Preserve;
  TORCH_CHECK(!preserved, "Unsupported memory format Preserve");
  auto* impl = self.unsafeGetTensorImpl();
  if (impl->sizes() == sizes && (!format || self.suggest_memory_format() == *format)) return self;
  const size_t bytes =
      (static_cast<size_t>(hlo::product(sizes)) + static_cast<size_t>(self.storage_offset())) *
      self.itemsize();
  if (hlo::product(sizes) > 0 && bytes > self.storage().nbytes())
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(self.storage(), bytes);
  impl->set_sizes_contiguous(sizes);
  if (format) impl->empty_tensor_restride(*format);
  return self;
}

at::Tensor& set_storage_at(at::Tensor& self, c10::Storage source, int64_t offset, IntArrayRef sizes,
                           IntArrayRef strides) {
  at::native::checkSetStorage(self, source, offset, sizes, strides);
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  if (strides.empty() && !sizes.empty())
    impl->set_sizes_contiguous(sizes);
  else
    impl->set_sizes_and_strides(sizes, strides);
  const size_t bytes = at::detail::computeStorageNbytes(sizes, self.strides(), self.itemsize(), offset);
  if (hlo::product(sizes) > 0 && bytes > source.nbytes())
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(source, bytes);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, c10::Storage source) {
  const int64_t n = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_storage_at(self, std::move(source), 0, {n}, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return set_storage_at(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor& set_nothing(at::Tensor& self) {
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, allocator(), /*resizable=*/true);
  return set_storage_at(self, std::move(storage), 0, {0}, {});
}

bool is_set_to(const at::Tensor& self, const at::Tensor& other) {
  return self.storage().unsafeGetStorageImpl() == other.storage().unsafeGetStorageImpl() &&
         self.storage_offset() == other.storage_offset() && self.sizes() == other.sizes() &&
         self.strides() == other.strides();
}

// A module moved by .to("tpu") keeps its Parameter objects (so tied weights stay tied and optimizers keep
// their references).
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  const auto dense = [](const at::Tensor& t) {
    return t.layout() == c10::kStrided && (t.is_cpu() || t.is_privateuseone()) &&
           !t.unsafeGetTensorImpl()->is_python_dispatch();
  };
  return (dense(self) && dense(from)) || self.key_set() == from.key_set();
}

void record_stream(at::Tensor&, c10::Stream) {
  // PJRT keeps a buffer alive until the work that uses it is done.
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("as_strided", as_strided);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("unfold", at::native::unfold);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("resize_", resize_);
  m.impl("set_.source_Storage_storage_offset", set_storage_at);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("set_", set_nothing);
  m.impl("is_set_to", is_set_to);
  m.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
  m.impl("record_stream", record_stream);
}

}  // namespace
}  // namespace tpu::torch_shim
