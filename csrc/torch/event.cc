#include "torch/event.h"

#include <c10/util/Exception.h>

#include <thread>

#include "core/runtime/runtime.h"
#include "torch/device.h"
#include "torch/errors.h"

namespace tpu::torch_shim {

void Event::Arrival::one_done() {
  // The time is stored before the count reaches zero: whoever sees zero may read it. Callbacks of several
  // computations may race for it; they differ by less than the clock is worth.
  time.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  missing.fetch_sub(1, std::memory_order_release);
}

void Event::record() {
  auto moment = std::make_shared<Moment>();
  if (runtime::Runtime::started()) moment->work = device_at(device_).in_flight();
  if (timed_) {
    moment->arrival = std::make_shared<Arrival>();
    moment->arrival->missing = static_cast<int64_t>(moment->work.size()) + 1;
    for (const runtime::Flight& e : moment->work)
      e->on_ready([arrival = moment->arrival] { arrival->one_done(); });
    moment->arrival->one_done();
  }
  moment_ = std::move(moment);
}

bool Event::query() const {
  if (!moment_) return true;
  for (const runtime::Flight& e : moment_->work)
    if (!e->is_ready()) return false;
  return true;
}

void Event::synchronize() const {
  const auto moment = moment_;
  if (!moment) return;
  for (const runtime::Flight& e : moment->work) e->wait();
  // PJRT wakes waiters and runs callbacks in no fixed order.
  if (moment->arrival)
    while (moment->arrival->missing.load(std::memory_order_acquire) > 0) std::this_thread::yield();
}

double Event::elapsed_ms(const Event& later) const {
  TORCH_CHECK(timed_ && later.timed_, "Both events must be created with argument 'enable_timing=True'.");
  TORCH_CHECK(moment_ && later.moment_, "Both events must be recorded before calculating elapsed time.");
  TORCH_CHECK(moment_->arrival->missing.load(std::memory_order_acquire) == 0 &&
                  later.moment_->arrival->missing.load(std::memory_order_acquire) == 0,
              "Both events must be completed before calculating elapsed time.");
  const Clock::duration passed(later.moment_->arrival->time.load() - moment_->arrival->time.load());
  return std::chrono::duration<double, std::milli>(passed).count();
}

}  // namespace tpu::torch_shim
