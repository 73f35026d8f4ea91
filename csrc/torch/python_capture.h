// Graphs from Python: the class Capture and the hook that decomposes operators.
#pragma once

#include <pybind11/pybind11.h>

namespace tpu::torch_shim {

/// Adds Capture and set_decomposer to the module.
void bind_capture(pybind11::module_& m);

}  // namespace tpu::torch_shim
