// What a device's memory holds, for the allocator's statistics and for Python.
#pragma once

#include <cstdint>
#include <utility>

#include "core/runtime/device.h"

namespace tpu::torch_shim {

/// Free and total bytes of a device (the host's memory where the device lives in it). Starts the client.
std::pair<int64_t, int64_t> free_and_total(int device);
/// Arrays in use on a device; all zero before the client has started.
runtime::MemoryUse memory_use(int device);

}  // namespace tpu::torch_shim
