// Turns the core's exceptions into the ones PyTorch translates to Python.
#pragma once

#include <c10/util/Exception.h>

#include <new>
#include <utility>

#include "core/base/error.h"

namespace tpu::torch_shim {

/// Throws the c10 exception whose Python class CPU torch would raise for this error.
[[noreturn]] void rethrow(const Error& error);

/// Runs `body`; a core Error leaves as a c10 one.
template <typename Body>
decltype(auto) guarded(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& e) {
    rethrow(e);
  } catch (const std::bad_alloc&) {
    rethrow(Error(Code::OutOfMemory, "", "out of host memory"));
  }
}

}  // namespace tpu::torch_shim
