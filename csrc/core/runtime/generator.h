// The random stream of a device: a seed and a counter, so that numbers depend on nothing but these two.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

namespace tpu::runtime {

class Generator {
 public:
  struct State {
    uint64_t seed = kDefaultSeed, offset = 0;
  };
  static constexpr uint64_t kDefaultSeed = 67280421310721;  // PyTorch's default seed on every device

  State state() const {
    std::lock_guard lock(mutex_);
    return state_;
  }
  void set_state(State state) {
    std::lock_guard lock(mutex_);
    state_ = state;
  }
  /// The state before, after moving `count` numbers on.
  State advance(int64_t count) {
    std::lock_guard lock(mutex_);
    State before = state_;
    state_.offset += static_cast<uint64_t>(count);
    return before;
  }

 private:
  mutable std::mutex mutex_;
  State state_;
};

}  // namespace tpu::runtime
