// Random generators of the device as PyTorch sees them.
#pragma once

#include <ATen/core/Generator.h>

#include <optional>

#include "core/runtime/generator.h"

namespace tpu::torch_shim {

/// The stream a random operator draws from: that of the given generator, or the device's default one.
/// RuntimeError when the generator belongs to another kind of device.
runtime::Generator& generator_of(const std::optional<at::Generator>& generator, int device);
/// The default generator of a device. It exists before the client starts, so that seeding starts nothing.
const at::Generator& default_generator(int device);
/// A new one with the default seed.
at::Generator new_generator(int device);

}  // namespace tpu::torch_shim
