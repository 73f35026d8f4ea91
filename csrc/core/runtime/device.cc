#include "core/runtime/device.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <limits>
#include <new>

#include "core/runtime/fork.h"

namespace tpu::runtime {
namespace {

void raise(std::atomic<int64_t>& peak, int64_t now) {
  int64_t before = peak.load(std::memory_order_relaxed);
  while (now > before && !peak.compare_exchange_weak(before, now)) {
  }
}

// Available and in all; zeros where /proc/meminfo cannot be read.
std::pair<int64_t, int64_t> host_memory() {
  std::ifstream file("/proc/meminfo");
  int64_t total = 0, available = 0;
  std::string name, unit;
  for (int64_t kib; file >> name >> kib && std::getline(file, unit);) {
    if (name == "MemTotal:") total = kib * 1024;
    if (name == "MemAvailable:") available = kib * 1024;
  }
  return {available, total};
}

std::string gib(int64_t bytes) {
  std::ostringstream out;
  out.precision(2);
  out << std::fixed << static_cast<double>(bytes) / (1 << 30) << " GiB (" << bytes << " bytes)";
  return out.str();
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
  const int64_t bytes = type.elements() * size_of(type.dtype);
  need(bytes);
  try {
    return std::make_shared<Array>(client_->upload(data, type.dtype, type.dims, index_), *this);
  } catch (const Error& e) {
    if (e.code == Code::OutOfMemory) throw out_of_memory(bytes);
    throw;
  } catch (const std::bad_alloc&) {
    throw out_of_memory(bytes);
  }
}

ArrayPtr Device::zeros(const hlo::Type& type) {
  const int64_t bytes = type.elements() * size_of(type.dtype);
  // Not a vector: pages that the system has zeroed need not be written.
  const std::unique_ptr<void, void (*)(void*)> host(
      std::calloc(static_cast<size_t>(std::max<int64_t>(bytes, 1)), 1), std::free);
  if (!host) throw out_of_memory(bytes);
  return upload(host.get(), type);
}

ArrayPtr Device::scalar(const std::array<uint64_t, 2>& bits, DType dtype) {
  uint64_t hash = (bits[0] ^ (bits[1] * 3) ^ static_cast<uint64_t>(dtype) << 56) * 0x9e3779b97f4a7c15ull;
  CachedScalar& slot = scalars_[hash >> 55];
  std::lock_guard lock(mutex_);
  if (slot.array && slot.dtype == dtype && slot.bits == bits) return slot.array;
  slot = {bits, dtype, std::make_shared<Array>(client_->upload(bits.data(), dtype, {}, index_), *this)};
  return slot.array;
}

void Device::launched(pjrt::Event done, ArrayPtr faults,
                      std::shared_ptr<const std::vector<ops::Parameters::Check>> checks) {
  Flight oldest = std::make_shared<const pjrt::Event>(std::move(done));
  bool full = false;
  {
    std::lock_guard lock(mutex_);
    oldest.swap(flights_[next_flight_++ % kInFlight]);
    if (faults) {
      faults_.push_back({std::move(faults), std::move(checks)});
      full = faults_.size() >= kFaults;
    }
  }
  // Backpressure: the host never runs more than kInFlight launches ahead.
  if (oldest) oldest->wait();
  if (full) check_faults();
}

std::vector<Flight> Device::in_flight() {
  std::vector<Flight> out;
  std::lock_guard lock(mutex_);
  // Those that are done stay in their place: they may carry an error.
  for (const Flight& flight : flights_)
    if (flight && !flight->is_ready()) out.push_back(flight);
  return out;
}

void Device::synchronize() {
  std::array<Flight, kInFlight> flights;
  {
    std::lock_guard lock(mutex_);
    flights.swap(flights_);
    // From the oldest on, so that the error reported is that of the first launch that failed.
    std::rotate(flights.begin(), flights.begin() + static_cast<int64_t>(next_flight_ % kInFlight),
                flights.end());
  }
  std::exception_ptr first;
  for (const Flight& flight : flights) {
    try {
      if (flight) flight->wait();
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
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
      std::string message = check.message;
      if (const size_t at = message.find('#'); at != std::string::npos)
        message.replace(at, 1, std::to_string(found[i]));
      throw Error(check.code, check.op, message);
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

std::pair<int64_t, int64_t> Device::free_and_total() const {
  const auto stats = client_->memory_stats(index_);
  if (stats && stats->bytes_limit) return {*stats->bytes_limit - stats->bytes_in_use, *stats->bytes_limit};
  const auto host = host_memory();
  if (host.second == 0)
    throw Error(Code::Unavailable, "",
                "the size of the device's memory is unknown: neither the plugin nor /proc/meminfo tells it");
  return host;
}

void Device::need(int64_t bytes) {
  if (bytes < kLarge || !client_->host_memory()) return;
  const auto available = [] {
    const auto [free, total] = host_memory();
    return total ? free : std::numeric_limits<int64_t>::max();
  };
  if (bytes <= available()) return;
  for (const Flight& flight : in_flight()) flight->wait();  // what they read may be let go of then
  if (bytes > available()) throw out_of_memory(bytes);
}

Error Device::out_of_memory(int64_t bytes) const {
  std::string state;
  try {
    const auto [free, total] = free_and_total();
    state = text(gib(free), " of ", gib(total), " are free. ");
  } catch (const Error&) {  // unknown: the rest is worth saying all the same
  }
  return Error(Code::OutOfMemory, "",
               text("out of memory on tpu:", index_, ": tried to allocate ", gib(bytes), "; ", state,
                    "This process holds ", gib(allocated_), " in ", live_,
                    " arrays. Use smaller batches or tensors, or drop what is not needed."));
}

void Device::reset_peak() { peak_ = allocated_.load(), peak_live_ = live_.load(); }
void Device::reset_accumulated() { allocations_ = frees_ = total_allocated_ = total_freed_ = 0; }

}  // namespace tpu::runtime
