#include "torch/device.h"

#include <atomic>
#include <mutex>

#include "core/base/error.h"
#include "core/runtime/fork.h"
#include "core/runtime/runtime.h"
#include "torch/errors.h"

namespace tpu::torch_shim {
namespace {

std::mutex probe_mutex;
std::function<int()> probe;
std::atomic<int> known_count{-1};  // of the started client; a forked child reads it too
thread_local int current = 0;

int probed_count() {
  std::function<int()> ask;
  {
    std::lock_guard lock(probe_mutex);
    ask = probe;
  }
  return ask ? ask() : -1;
}

}  // namespace

void set_device_probe(std::function<int()> f) {
  std::lock_guard lock(probe_mutex);
  probe = std::move(f);
}

bool available() {
  try {
    return known_count > 0 || probed_count() != 0;
  } catch (const std::exception&) {
    return false;  // e.g. TORCH_TPU_PLATFORM=tpu without a TPU: using the device says why
  }
}

int device_count() {
  int n = known_count;
  if (n >= 0) return n;
  const bool usable = runtime::Runtime::started() && !runtime::forked();
  if (!usable && (n = probed_count()) >= 0) return n;
  n = runtime::Runtime::get().device_count();
  known_count = n;
  return n;
}

int current_device() { return current; }

void set_current_device(int index) {
  if (index == current) return;
  const int n = device_count();
  if (index < 0 || index >= n)
    throw Error(
        Code::InvalidArgument, "",
        text("invalid device ordinal: tpu:", index, " does not exist; there ", n == 1 ? "is " : "are ", n,
             n == 1 ? " tpu device" : " tpu devices", ", numbered from 0"));
  current = index;
}

void set_current_device_unchecked(int index) noexcept {
  if (index >= 0) current = index;
}

int resolve_device(int index) { return index < 0 ? current : index; }

runtime::Device& device_at(int index) {
  return guarded([&]() -> runtime::Device& {
    runtime::Runtime& r = runtime::Runtime::get();
    if (known_count < 0) known_count = r.device_count();
    return r.device(resolve_device(index));
  });
}

}  // namespace tpu::torch_shim
