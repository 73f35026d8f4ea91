// The current device of each thread, and how many devices there are before and after the client starts.
#pragma once

#include <functional>

#include "core/runtime/device.h"

namespace tpu::torch_shim {

/// Sets how devices are counted without starting the client: 0 none, -1 unknown.
void set_device_probe(std::function<int()> probe);
/// True when there is a device to use. Never throws, never starts the client.
bool available();
/// The number of devices. Starts the client only when the probe cannot tell. Throws what starting throws.
int device_count();

/// This thread's device. Starts nothing.
int current_device();
/// Error(InvalidArgument) for an index that does not exist.
void set_current_device(int index);
/// The same without the check.
void set_current_device_unchecked(int index) noexcept;
/// `index`, or the current device for -1.
int resolve_device(int index);

/// The device, starting the client; core errors leave as c10 ones.
runtime::Device& device_at(int index);

}  // namespace tpu::torch_shim
