// One device: its memory statistics, random stream, work in flight and reports of bad indices.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/ops/lowering.h"
#include "core/pjrt/executable.h"
#include "core/runtime/array.h"
#include "core/runtime/generator.h"

namespace tpu::runtime {

struct MemoryUse {
  int64_t allocated = 0, peak = 0, total_allocated = 0, total_freed = 0;  // bytes
  int64_t live = 0, peak_live = 0, allocations = 0, frees = 0;            // arrays
};

/// A launch on its way. It fires when the launch is done, and carries its error, whether or not its results
/// are still wanted.
using Flight = std::shared_ptr<const pjrt::Event>;

class Device {
 public:
  Device(std::shared_ptr<pjrt::Client> client, int index);

  pjrt::Client& client() const { return *client_; }
  int index() const { return index_; }
  Generator& generator() { return generator_; }

  /// Copies host data (dense, row-major) to a new array; the host memory may be reused at once.
  ArrayPtr upload(const void* data, const hlo::Type& type);
  ArrayPtr zeros(const hlo::Type& type);
  /// A 0-d array of this value, from a small cache. `bits` are the value's first size_of(dtype) bytes.
  ArrayPtr scalar(const std::array<uint64_t, 2>& bits, DType dtype);

  /// Waits for everything launched so far, then throws the first error of it, or else Error(Index) for a bad
  /// index.
  void synchronize();
  /// Throws Error(Index) when a launch so far met an index out of range. Waits for these launches only.
  void check_faults();
  /// Remembers a launch: when it is done, and its vector of faults if it has one.
  void launched(pjrt::Event done, ArrayPtr faults,
                std::shared_ptr<const std::vector<ops::Parameters::Check>> checks);
  /// The launches that are not known to have finished.
  std::vector<Flight> in_flight();
  /// Held by a launch from choosing what it donates until the cells have their new arrays.
  std::mutex& enqueue() { return enqueue_; }

  MemoryUse memory() const;
  /// Bytes free and in all: the plugin's figures, else the host's. Error(Unavailable) where neither is known.
  std::pair<int64_t, int64_t> free_and_total() const;
  /// Throws Error(OutOfMemory) when a large array has no room where the host's memory is the device's: the
  /// kernel would promise the memory and then kill the process. Free for small ones, which are not checked.
  void need(int64_t bytes);
  /// The error for an allocation that failed: bytes wanted, free and held.
  Error out_of_memory(int64_t bytes) const;
  void reset_peak();
  void reset_accumulated();
  void took(int64_t bytes);
  void freed(int64_t bytes);

 private:
  struct Fault {
    ArrayPtr found;
    std::shared_ptr<const std::vector<ops::Parameters::Check>> checks;
  };
  struct CachedScalar {
    std::array<uint64_t, 2> bits{};
    DType dtype = DType::Bool;
    ArrayPtr array;
  };
  static constexpr size_t kInFlight = 256, kScalars = 512, kFaults = 128;
  static constexpr int64_t kLarge = int64_t{1} << 28;

  std::shared_ptr<pjrt::Client> client_;
  int index_;
  Generator generator_;
  std::mutex enqueue_;
  std::mutex mutex_;  // guards the four below
  std::array<Flight, kInFlight> flights_;
  size_t next_flight_ = 0;
  std::vector<Fault> faults_;
  std::array<CachedScalar, kScalars> scalars_;
  std::atomic<int64_t> allocated_{0}, peak_{0}, total_allocated_{0}, total_freed_{0};
  std::atomic<int64_t> live_{0}, peak_live_{0}, allocations_{0}, frees_{0};
};

}  // namespace tpu::runtime
