#include "core/pjrt/event.h"

#include <exception>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"

namespace tpu::pjrt {
namespace {

struct Callback {
  const Plugin* plugin;
  std::function<void()> then;
};

void fired(PJRT_Error* error, void* context) {
  std::unique_ptr<Callback> callback(static_cast<Callback*>(context));
  if (error) {
    auto args = make_args<PJRT_Error_Destroy_Args>(PJRT_Error_Destroy_Args_STRUCT_SIZE);
    args.error = error;
    callback->plugin->api()->PJRT_Error_Destroy(&args);
  }
  // An exception must not unwind into the plugin's frames.
  try {
    callback->then();
  } catch (const std::exception& fault) {
    notice(std::string("a callback of a device event failed: ") + fault.what());
  }
}

}  // namespace

Event::~Event() {
  if (!event_ || !plugins_usable()) return;
  auto args = make_args<PJRT_Event_Destroy_Args>(PJRT_Event_Destroy_Args_STRUCT_SIZE);
  args.event = event_;
  plugin_->api()->PJRT_Event_Destroy(&args);
}

Event::Event(Event&& other) noexcept : plugin_(other.plugin_), event_(std::exchange(other.event_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(plugin_, other.plugin_);
  std::swap(event_, other.event_);
  return *this;
}

bool Event::is_ready() const {
  if (!event_) return true;
  auto args = make_args<PJRT_Event_IsReady_Args>(PJRT_Event_IsReady_Args_STRUCT_SIZE);
  args.event = event_;
  plugin_->check(plugin_->api()->PJRT_Event_IsReady(&args), "event query");
  return args.is_ready;
}

void Event::wait() const {
  if (!event_) return;
  auto args = make_args<PJRT_Event_Await_Args>(PJRT_Event_Await_Args_STRUCT_SIZE);
  args.event = event_;
  plugin_->check(plugin_->api()->PJRT_Event_Await(&args), "computation");
}

void Event::on_ready(std::function<void()> then) const {
  if (!event_) return then();
  auto callback = std::make_unique<Callback>(Callback{plugin_, std::move(then)});
  auto args = make_args<PJRT_Event_OnReady_Args>(PJRT_Event_OnReady_Args_STRUCT_SIZE);
  args.event = event_;
  args.callback = fired;
  args.user_arg = callback.get();
  plugin_->check(plugin_->api()->PJRT_Event_OnReady(&args), "event callback");
  callback.release();
}

}  // namespace tpu::pjrt
