// A PJRT event: something on the device that will have happened.
#pragma once

#include <functional>
#include <memory>

#include "core/pjrt/plugin.h"

namespace tpu::pjrt {

class Event {
 public:
  Event() = default;  // an event that has already fired
  Event(const Plugin* plugin, PJRT_Event* event) : plugin_(plugin), event_(event) {}
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  bool is_ready() const;
  /// Waits; throws the error the event carries.
  void wait() const;
  /// Runs `then` once it has fired (at once if it has), on any thread; the error is swallowed: a later wait()
  /// throws it.
  void on_ready(std::function<void()> then) const;

 private:
  const Plugin* plugin_ = nullptr;
  PJRT_Event* event_ = nullptr;
};

}  // namespace tpu::pjrt
