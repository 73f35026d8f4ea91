// What PyTorch asks of an accelerator besides its guard.
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include <algorithm>
#include <vector>

#include "core/runtime/runtime.h"
#include "torch/device.h"
#include "torch/errors.h"
#include "torch/generator.h"
#include "torch/pinned.h"
#include "torch/storage.h"

namespace tpu::torch_shim {
namespace {

/// The first bytes of an array as an array of `bytes` bytes, zeros after its end.
runtime::ArrayPtr resized(const runtime::ArrayPtr& old, int64_t bytes) {
  std::vector<char> host(static_cast<size_t>(std::max(old->buffer().bytes(), bytes)));
  old->buffer().download(host.data());
  return old->device().upload(host.data(), {DType::U8, {bytes}});
}

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return available(); }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return runtime::Runtime::started(); }
  void init() const override { device_at(-1); }

  c10::DeviceIndex deviceCount() const override {
    return guarded([] { return static_cast<c10::DeviceIndex>(device_count()); });
  }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    guarded([&] { set_current_device(index); });
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(current_device());
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceIndex before = getCurrentDevice();
    setCurrentDevice(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? getCurrentDevice() : exchangeDevice(index);
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return guarded([&]() -> const at::Generator& { return default_generator(index); });
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }

  at::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  bool isPinnedPtr(const void* address) const override { return is_pinned(address); }
  c10::Device getDeviceFromPtr(void*) const override {
    TORCH_CHECK(
        false,
        "memory of the tpu device has no addresses, so no device can be found from one: use tensor.device");
  }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
    TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
    if (bytes == impl->nbytes()) return;
    const Cell* old = cell_of(impl);
    const int64_t length = static_cast<int64_t>(bytes);
    // Contents are kept; where there are none, or none will be left, memory is taken when it is needed.
    auto fresh = std::make_unique<Cell>(Cell{old->device, {DType::U8, {length}}, nullptr});
    if (old->array && bytes > 0) fresh->array = guarded([&] { return resized(old->array, length); });
    // A larger storage needs a larger range of addresses.
    impl->set_data_ptr_noswap(new_data_ptr(fresh.release(), bytes));
    impl->set_nbytes(bytes);
  }
};

const bool registered = (at::RegisterPrivateUse1HooksInterface(new Hooks), true);

}  // namespace
}  // namespace tpu::torch_shim
