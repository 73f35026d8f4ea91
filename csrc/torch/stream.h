// Streams. A device has one in-order queue, so streams are names: whatever they are used for, the order of
// the program holds.
#pragma once

#include <c10/core/Stream.h>

namespace tpu::torch_shim {

/// This thread's stream on a device: the default one unless set.
c10::Stream current_stream(int device);
c10::Stream default_stream(int device);
/// A stream of an id of its own.
c10::Stream new_stream(int device);
/// Makes it this thread's stream on its device and returns the one before.
c10::Stream exchange_stream(c10::Stream stream);

/// True when the device has finished everything issued so far. Starts nothing.
bool device_idle(int device);
/// Waits for it, then reports errors and bad indices. Starts nothing.
void synchronize_device(int device);

}  // namespace tpu::torch_shim
