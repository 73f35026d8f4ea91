#include "core/runtime/device.h"

#include "core/base/error.h"
#include "core/runtime/fork.h"

namespace tpu::runtime {
namespace {

void raise(std::atomic<int64_t>& peak, int64_t now) {
  int64_t before = peak.load(std::memory_order_relaxed);
  while (now > before && !peak.compare_exchange_weak(before, now)) {
  }
}

}  // namespace

Array::Array(std::unique_ptr<pjrt::Buffer> buffer, Device& device)
    : buffer_(std::move(buffer)), device_(device), bytes_(buffer_->bytes()) {
  device_.took(bytes_);
}

Array::~Array() {
  // A forked child has no runtime threads: freeing there could wait for ever, so it is left to the parent.
  if (forked()) {
    (void)buffer_.release();
    return;
  }
  device_.freed(bytes_);
}

Device::Device(std::shared_ptr<pjrt::Client> client, int index) : client_(std::move(client)), index_(index) {}

ArrayPtr Device::upload(const void* data, const hlo::Type& type) {
  return std::make_shared<Array>(client_->upload(data, type.dtype, type.dims, index_), *this);
}

ArrayPtr Device::scalar(const std::array<uint64_t, 2>& bits, DType dtype) {
  uint64_t hash = (bits[0] ^ (bits[1] * 3) ^ static_cast<uint64_t>(dtype) << 56) * 0x9e3779b97f4a7c15ull;
  CachedScalar& slot = scalars_[hash >> 55];
  std::lock_guard lock(mutex_);
  if (slot.array && slot.dtype == dtype && slot.bits == bits) return slot.array;
  slot = {bits, dtype, std::make_shared<Array>(client_->upload(bits.data(), dtype, {}, index_), *this)};
  return slot.array;
}

void Device::launched(const ArrayPtr& result, ArrayPtr faults,
                      std::shared_ptr<const std::vector<ops::Parameters::Check>> checks) {
  ArrayPtr oldest;
  bool full = false;
  {
    std::scoped_lock lock(enqueue_, mutex_);
    std::weak_ptr<Array>& slot = flights_[next_flight_++ % kInFlight];
    oldest = slot.lock();
    slot = result;
    if (faults) {
      faults_.push_back({std::move(faults), std::move(checks)});
      full = faults_.size() >= kFaults;
    }
  }
  // Backpressure: the host never runs more than kInFlight launches ahead of a result that is still wanted.
  if (oldest) oldest->buffer().wait();
  if (full) check_faults();
}

std::vector<ArrayPtr> Device::in_flight() {
  std::vector<ArrayPtr> out;
  std::scoped_lock lock(enqueue_, mutex_);
  for (std::weak_ptr<Array>& w : flights_) {
    ArrayPtr a = w.lock();
    if (a && !a->buffer().ready().is_ready())
      out.push_back(std::move(a));
    else
      w.reset();
  }
  return out;
}

void Device::synchronize() {
  for (const ArrayPtr& a : in_flight()) a->buffer().wait();
  check_faults();
}

void Device::check_faults() {
  std::vector<Fault> faults;
  {
    std::lock_guard lock(mutex_);
    if (faults_.empty()) return;
    faults.swap(faults_);
  }
  for (const Fault& f : faults) {
    std::vector<int64_t> found(f.checks->size());
    f.found->buffer().download(found.data());
    for (size_t i = 0; i < found.size(); i++) {
      if (found[i] == ops::kNoFault) continue;
      const auto& check = (*f.checks)[i];
      throw Error(Code::Index, check.op,
                  text("index ", found[i], " is out of bounds for dimension ", check.dim, " with size ", check.size));
    }
  }
}

void Device::took(int64_t bytes) {
  raise(peak_, allocated_ += bytes);
  raise(peak_live_, ++live_);
  allocations_++, total_allocated_ += bytes;
}
void Device::freed(int64_t bytes) {
  allocated_ -= bytes, live_--;
  frees_++, total_freed_ += bytes;
}

MemoryUse Device::memory() const {
  return {allocated_, peak_, total_allocated_, total_freed_, live_, peak_live_, allocations_, frees_};
}
void Device::reset_peak() { peak_ = allocated_.load(), peak_live_ = live_.load(); }
void Device::reset_accumulated() { allocations_ = frees_ = total_allocated_ = total_freed_ = 0; }

}  // namespace tpu::runtime
