#include "core/runtime/fork.h"

#include <pthread.h>

#include <atomic>

#include "core/base/error.h"

namespace tpu::runtime {
namespace {
std::atomic<bool> in_child{false};
}

void watch_forks() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { in_child = true; });
  (void)once;
}

bool forked() { return in_child.load(std::memory_order_relaxed); }

void check_not_forked() {
  if (!forked()) return;
  throw Error(Code::Unavailable, "",
              "Cannot use the tpu device in a forked subprocess: its runtime was started before the fork. "
              "Keep tensors on the "
              "CPU in worker processes, or use the 'spawn' start method of multiprocessing.");
}

}  // namespace tpu::runtime
