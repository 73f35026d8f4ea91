#include "torch/transfer.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_copy_from.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <torch/library.h>

#include "core/runtime/runtime.h"
#include "torch/convert.h"
#include "torch/device.h"
#include "torch/engine.h"
#include "torch/errors.h"
#include "torch/storage.h"

namespace tpu::torch_shim {
namespace {

using runtime::Device;

// Below this a whole storage is fetched to read a part of it: cheaper than a program that cuts the part out.
constexpr int64_t kFetchWhole = 1 << 16;

at::Tensor host_view(void* data, const at::Tensor& like) {
  return at::from_blob(
      data, like.sizes(), like.strides(), like.storage_offset(), [](void*) {},
      like.options().device(c10::kCPU));
}

void copy_on_device(const at::Tensor& src, const at::Tensor& dst) {
  run_internal("copy", {"self!", "src"}, {dst, src});
}

// The tensor fills its storage without gaps, so an upload may replace the storage's array.
bool fills_storage(const at::Tensor& t) {
  return t.storage_offset() == 0 && static_cast<size_t>(t.numel()) * t.itemsize() == t.storage().nbytes() &&
         view::is_dense(dims_of(t.sizes()), dims_of(t.strides()));
}

void upload(const at::Tensor& src, const at::Tensor& dst) {
  Device& device = device_at(dst.device().index());
  if (!fills_storage(dst) || src.numel() != dst.numel()) {
    at::Tensor part = new_tensor(device.index(), src.scalar_type(), src.sizes());
    upload(src, part);
    copy_on_device(part, dst);
    return;
  }
  const hlo::Dims order = view::memory_order(dims_of(dst.sizes()), dims_of(dst.strides()));
  at::Tensor host = src.to(dst.scalar_type()).expand(dst.sizes()).permute(order).contiguous();
  Cell* cell = cell_of(dst);
  hlo::Type type{to_core(dst.scalar_type()), dims_of(host.sizes())};
  cell->array = device.upload(host.const_data_ptr(), type);
  cell->type = std::move(type);
}

void between_devices(const at::Tensor& src, const at::Tensor& dst) {
  at::Tensor dense = src;
  if (!layout_of(src).is_whole()) {
    dense = new_tensor(src.device().index(), src.scalar_type(), src.sizes());
    copy_on_device(src, dense);
  }
  const int to = dst.device().index();
  Device& target = device_at(to);
  auto array = std::make_shared<runtime::Array>(cell_of(dense)->materialize()->buffer().copy_to(to), target);
  copy_on_device(new_tensor(to, src.scalar_type(), src.sizes(), std::move(array)), dst);
}

// The same memory without its conjugate and negative bits.
at::Tensor without_bits(const at::Tensor& t) {
  const at::Tensor plain = t.is_conj() ? at::_conj(t) : t;
  return plain.is_neg() ? at::_neg_view(plain) : plain;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  if (self.is_conj() || self.is_neg() || dst.is_conj() || dst.is_neg()) {
    const at::Tensor to = without_bits(dst);
    copy_from(without_bits(self), to, non_blocking);
    if (self.is_conj() != dst.is_conj()) to.conj_physical_();
    if (self.is_neg() != dst.is_neg()) to.neg_();
    return dst;
  }
  return guarded([&] {
    if (dst.numel() == 0) return dst;
    if (self.is_privateuseone() && dst.is_privateuseone()) {
      if (self.device() == dst.device())
        copy_on_device(self, dst);
      else
        between_devices(self.sizes() == dst.sizes() ? self : self.expand(dst.sizes()), dst);
    } else if (self.is_privateuseone()) {
      dst.copy_(download(self));
    } else {
      TORCH_CHECK(self.is_cpu(), "cannot copy from ", self.device(), " to ", dst.device(),
                  ": go through the CPU");
      upload(self, dst);
    }
    return dst;
  });
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  // An `out` of the right size keeps its strides.
  if (self.sizes() != dst.sizes()) dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) { return at::_local_scalar_dense(download(self)); }

}  // namespace

at::Tensor download(const at::Tensor& t) {
  return guarded([&] {
    runtime::Runtime& rt = runtime::Runtime::get();
    Device& device = rt.device(t.device().index());
    Cell* cell = cell_of(t);
    const auto options = t.options().device(c10::kCPU);
    if (t.numel() == 0) return at::empty(t.sizes(), options);
    if (!cell->array) return at::empty(t.sizes(), options).zero_();
    device.check_faults();
    const pjrt::Buffer& buffer = cell->array->buffer();
    if (const void* address = buffer.host_address()) {
      buffer.wait();
      return host_view(const_cast<void*>(address), t).clone(c10::MemoryFormat::Contiguous);
    }
    if (fills_storage(t) || buffer.bytes() <= kFetchWhole) {
      at::Tensor bytes = at::empty({buffer.bytes()}, options.dtype(c10::kByte));
      buffer.download(bytes.mutable_data_ptr());
      return host_view(bytes.mutable_data_ptr(), t).clone(c10::MemoryFormat::Contiguous);
    }
    at::Tensor dense = new_tensor(device.index(), t.scalar_type(), t.sizes());
    copy_on_device(t, dense);
    at::Tensor out = at::empty(t.sizes(), options);
    cell_of(dense)->array->buffer().download(out.mutable_data_ptr());
    return out;
  });
}

int64_t read_count(const at::Tensor& t) { return at::_local_scalar_dense(download(t)).toLong(); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", local_scalar_dense);
}

// PyTorch's fallbacks for these keys clone their argument, which would copy again without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

}  // namespace tpu::torch_shim
