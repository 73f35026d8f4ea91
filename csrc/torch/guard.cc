// How PyTorch switches devices and streams and uses events of the tpu device.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "torch/convert.h"
#include "torch/device.h"
#include "torch/errors.h"
#include "torch/event.h"
#include "torch/stream.h"

namespace tpu::torch_shim {
namespace {

constexpr c10::DeviceType kDevice = c10::DeviceType::PrivateUse1;

c10::Device tpu_device(int index) { return {kDevice, static_cast<c10::DeviceIndex>(index)}; }

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kDevice; }

  c10::Device exchangeDevice(c10::Device d) const override {
    const int before = current_device();
    setDevice(d);
    return tpu_device(before);
  }
  c10::Device getDevice() const override { return tpu_device(current_device()); }
  void setDevice(c10::Device d) const override {
    TORCH_CHECK(d.type() == kDevice, "expected a tpu device, got ", d);
    if (d.has_index()) guarded([&] { set_current_device(d.index()); });
  }
  void uncheckedSetDevice(c10::Device d) const noexcept override { set_current_device_unchecked(d.index()); }
  c10::DeviceIndex deviceCount() const noexcept override {
    try {
      return static_cast<c10::DeviceIndex>(device_count());
    } catch (const std::exception&) {
      return 0;
    }
  }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability can;
    auto& types = can.capability_data.supported_scalar_types;
    types.has_ComplexHalf = types.has_QInt8 = types.has_QUInt8 = types.has_QInt32 = types.has_QUInt4x2 =
        types.has_QUInt2x4 = 0;
    return can;
  }

  c10::Stream getStream(c10::Device d) const override { return current_stream(resolve_device(d.index())); }
  c10::Stream getDefaultStream(c10::Device d) const override {
    return default_stream(resolve_device(d.index()));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool) const override {
    return new_stream(resolve_device(d.index()));
  }
  c10::Stream getNewStream(c10::Device d, int) const override {
    return new_stream(resolve_device(d.index()));
  }
  c10::Stream exchangeStream(c10::Stream s) const override { return exchange_stream(s); }
  bool queryStream(const c10::Stream& s) const override { return device_idle(s.device_index()); }
  void synchronizeStream(const c10::Stream& s) const override { synchronize_device(s.device_index()); }
  void synchronizeDevice(c10::DeviceIndex index) const override { synchronize_device(resolve_device(index)); }
  // Memory is returned only after the last computation that reads it, so there is nothing to remember.
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex device,
              c10::EventFlag flag) const override {
    TORCH_CHECK(device == -1 || device == stream.device_index(), "Event device index ",
                static_cast<int>(device), " does not match recording stream's device index ",
                static_cast<int>(stream.device_index()), ".");
    if (!*event) *event = new Event(stream.device_index(), flag == c10::EventFlag::BACKEND_DEFAULT);
    guarded([&] { static_cast<Event*>(*event)->record(); });
  }
  // Later work of the same device runs after earlier work, and work of another device waits for the arrays it
  // reads: the order that the caller asks for holds already.
  void block(void*, const c10::Stream& stream) const override {
    TORCH_CHECK(stream.device_type() == kDevice, "a tpu event cannot be waited for by a stream of ",
                stream.device());
  }
  bool queryEvent(void* event) const override {
    return !event || guarded([&] { return static_cast<Event*>(event)->query(); });
  }
  void synchronizeEvent(void* event) const override {
    if (event) guarded([&] { static_cast<Event*>(event)->synchronize(); });
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* first, void* second, c10::DeviceIndex) const override {
    TORCH_CHECK(first && second, "Both events must be recorded before calculating elapsed time.");
    return guarded([&] { return static_cast<Event*>(first)->elapsed_ms(*static_cast<Event*>(second)); });
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace
}  // namespace tpu::torch_shim
