// Events: a point in a device's work, and the time when it was reached.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "core/runtime/device.h"

namespace tpu::torch_shim {

class Event {
 public:
  Event(int device, bool timed) : device_(device), timed_(timed) {}

  int device() const { return device_; }
  bool timed() const { return timed_; }
  /// Captures what is in flight on the device now; an earlier recording is forgotten.
  void record();
  bool recorded() const { return moment_ != nullptr; }
  /// True when all of it is done, and when nothing was recorded.
  bool query() const;
  /// Waits for all of it; throws the error of a computation that failed.
  void synchronize() const;
  /// Milliseconds from this event to a later one. Throws when either is unrecorded, untimed or not reached
  /// yet.
  double elapsed_ms(const Event& later) const;

 private:
  using Clock = std::chrono::steady_clock;
  /// Apart from the PJRT events, so that a callback may be the last to let go of it.
  struct Arrival {
    std::atomic<int64_t> missing;
    std::atomic<Clock::rep> time{0};
    void one_done();
  };
  struct Moment {
    std::vector<runtime::Flight> work;
    std::shared_ptr<Arrival> arrival;
  };

  int device_;
  bool timed_;
  std::shared_ptr<const Moment> moment_;
};

}  // namespace tpu::torch_shim
