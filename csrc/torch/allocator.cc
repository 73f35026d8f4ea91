// The device's allocator: it hands out cells that take memory when they are written or read, and reports
// memory in use.
#include <ATen/core/Tensor.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "core/base/error.h"
#include "core/runtime/runtime.h"
#include "torch/device.h"
#include "torch/errors.h"
#include "torch/memory.h"
#include "torch/storage.h"

namespace tpu::torch_shim {

std::pair<int64_t, int64_t> free_and_total(int device) {
  runtime::Device& d = device_at(device);
  return guarded([&] { return d.free_and_total(); });
}

runtime::MemoryUse memory_use(int device) {
  return runtime::Runtime::started() ? device_at(device).memory() : runtime::MemoryUse{};
}

namespace {

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    return new_data_ptr(new Cell{current_device(), {DType::U8, {static_cast<int64_t>(bytes)}}, nullptr},
                        bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;
  }  // an address alone does not lead to its cell
  void copy_data(void*, const void*, size_t) const override {
    TORCH_CHECK(false, "memory of the tpu device has no address to copy from: copy tensors instead");
  }

  bool initialized() override { return runtime::Runtime::started(); }
  // Arrays go back to the plugin's own pool as soon as nothing uses them: no cache is held here.
  void emptyCache(c10::MempoolId_t) override {}

  // An array lives until every computation that reads it is done, whichever stream it was issued on.
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    TORCH_CHECK(stream.device_type() == c10::DeviceType::PrivateUse1,
                "record_stream needs a tpu stream, not one of ", stream.device());
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    using c10::CachingAllocator::Stat;
    c10::CachingDeviceAllocator::DeviceStats stats;
    const runtime::MemoryUse use = memory_use(device);
    const Stat bytes{use.allocated, use.peak, use.total_allocated, use.total_freed};
    const Stat count{use.live, use.peak_live, use.allocations, use.frees};
    for (auto* s :
         {&stats.allocated_bytes, &stats.active_bytes, &stats.requested_bytes, &stats.reserved_bytes})
      (*s)[0] = bytes;
    for (auto* s : {&stats.allocation, &stats.active, &stats.segment}) (*s)[0] = count;
    stats.num_device_alloc = use.allocations;
    stats.num_device_free = use.frees;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    if (runtime::Runtime::started()) device_at(device).reset_accumulated();
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    if (runtime::Runtime::started()) device_at(device).reset_peak();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override { return free_and_total(device); }
};

}  // namespace

c10::Allocator* allocator() {
  static auto* instance = new Allocator;  // never destroyed: tensors may outlive static destructors
  return instance;
}

namespace {
const bool registered = (c10::SetAllocator(c10::DeviceType::PrivateUse1, allocator()), true);
}

}  // namespace tpu::torch_shim
