#include "torch/stream.h"

#include <atomic>
#include <map>

#include "core/runtime/runtime.h"
#include "torch/device.h"
#include "torch/errors.h"

namespace tpu::torch_shim {
namespace {

thread_local std::map<int, c10::StreamId> current;

c10::Stream stream_of(int device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE,
                     c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)), id);
}

}  // namespace

c10::Stream current_stream(int device) {
  const auto set = current.find(device);
  return stream_of(device, set == current.end() ? 0 : set->second);
}

c10::Stream default_stream(int device) { return stream_of(device, 0); }

c10::Stream new_stream(int device) {
  static std::atomic<c10::StreamId> last{0};
  return stream_of(device, ++last);
}

c10::Stream exchange_stream(c10::Stream stream) {
  const c10::Stream before = current_stream(stream.device_index());
  if (stream.id() == 0)
    current.erase(stream.device_index());
  else
    current[stream.device_index()] = stream.id();
  return before;
}

bool device_idle(int device) {
  return !runtime::Runtime::started() || guarded([&] { return device_at(device).in_flight().empty(); });
}

void synchronize_device(int device) {
  if (runtime::Runtime::started()) guarded([&] { device_at(device).synchronize(); });
}

}  // namespace tpu::torch_shim
