// What compiling ahead of time needs from Python: topologies, compiled programs, recordings.
#pragma once

#include <pybind11/pybind11.h>

namespace tpu::torch_shim {

/// Adds Topology, Compiled, Recording and table to the module.
void bind_aot(pybind11::module_& m);

}  // namespace tpu::torch_shim
