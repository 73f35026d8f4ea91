// PJRT stages copies by itself, so page-locking host memory would gain nothing. This allocator remembers its
// blocks, for is_pinned() and the statistics; a copy from one has been taken before the call returns, so it
// may be reused at once.
#include "torch/pinned.h"

#include <ATen/core/CachingHostAllocator.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace tpu::torch_shim {
namespace {

class Pinned final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }

  bool contains(const void* address) {
    std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) return false;
    const auto& [start, size] = *--after;
    return address < static_cast<const char*>(start) + size;
  }
  void free(void* address) {
    {
      std::lock_guard lock(mutex_);
      auto block = blocks_.find(address);
      for (auto* s : {&stats_.active_bytes, &stats_.allocated_bytes}) s->decrease(block->second);
      for (auto* s : {&stats_.active_requests, &stats_.allocations}) s->decrease(1);
      stats_.num_host_free++;
      blocks_.erase(block);
    }
    std::free(address);
  }

  bool record_event(void* address, void*, c10::Stream) override { return contains(address); }
  void empty_cache() override {}  // freed blocks are given back at once
  at::HostStats get_stats() override {
    std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_accumulated_stats() override {
    std::lock_guard lock(mutex_);
    for (auto* s : counted()) s->reset_accumulated();
    stats_.num_host_alloc = stats_.num_host_free = 0;
  }
  void reset_peak_stats() override {
    std::lock_guard lock(mutex_);
    for (auto* s : counted()) s->reset_peak();
  }

 private:
  std::array<c10::CachingAllocator::Stat*, 4> counted() {
    return {&stats_.active_bytes, &stats_.allocated_bytes, &stats_.active_requests, &stats_.allocations};
  }

  std::mutex mutex_;
  std::map<const void*, size_t> blocks_;
  at::HostStats stats_;
};

Pinned& instance() {
  static auto* allocator = new Pinned;  // never destroyed: tensors may outlive static destructors
  return *allocator;
}

void free_pinned(void* address) { instance().free(address); }

c10::DataPtr Pinned::allocate(size_t bytes) {
  constexpr size_t kAlignment = 64;
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded == 0) return {nullptr, nullptr, &free_pinned, c10::DeviceType::CPU};
  void* address = std::aligned_alloc(kAlignment, rounded);
  TORCH_CHECK_WITH(OutOfMemoryError, address, "pinned memory: the host has no ", bytes, " bytes free");
  std::lock_guard lock(mutex_);
  blocks_[address] = rounded;
  for (auto* s : {&stats_.active_bytes, &stats_.allocated_bytes}) s->increase(rounded);
  for (auto* s : {&stats_.active_requests, &stats_.allocations}) s->increase(1);
  stats_.num_host_alloc++;
  return {address, address, &free_pinned, c10::DeviceType::CPU};
}

c10::DeleterFnPtr Pinned::raw_deleter() const { return &free_pinned; }

REGISTER_HOST_ALLOCATOR(at::kPrivateUse1, &instance())

}  // namespace

c10::Allocator* pinned_allocator() { return &instance(); }
bool is_pinned(const void* address) { return instance().contains(address); }

}  // namespace tpu::torch_shim
