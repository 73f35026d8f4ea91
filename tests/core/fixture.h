// What tests on a device share: one client with two devices, and short ways to move vectors and compile
// programs.
#pragma once

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/pjrt/buffer.h"
#include "core/pjrt/client.h"
#include "core/pjrt/executable.h"

namespace tpu::testing {

/// The plugin under test, from TORCH_TPU_PJRT_PLUGIN; a test that asks for it fails when the variable is not
/// set.
inline std::shared_ptr<pjrt::Plugin> plugin() {
  const char* path = std::getenv("TORCH_TPU_PJRT_PLUGIN");
  if (!path || !*path)
    throw std::runtime_error(
        "set TORCH_TPU_PJRT_PLUGIN to the path of a PJRT plugin (ctest does it by itself)");
  return pjrt::Plugin::load(path);
}

/// Made once a process and never destroyed: two devices.
inline const std::shared_ptr<pjrt::Client>& client() {
  static auto* shared =
      new std::shared_ptr<pjrt::Client>(pjrt::Client::create(plugin(), {{"cpu_device_count", int64_t{2}}}));
  return *shared;
}

template <typename T>
std::unique_ptr<pjrt::Buffer> upload(const std::vector<T>& values, DType dtype, const pjrt::Dims& dims,
                                     int device = 0) {
  return client()->upload(values.data(), dtype, dims, device);
}

template <typename T>
std::vector<T> download(const pjrt::Buffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  buffer.download(values.data());
  return values;
}

/// Launches on one device; the outputs in program order.
inline std::vector<std::unique_ptr<pjrt::Buffer>> run(const pjrt::Executable& program,
                                                      const std::vector<pjrt::Buffer*>& arguments,
                                                      int device = 0) {
  return program.execute(arguments, device);
}

/// `body` is the inside of @main, in StableHLO's generic form; `signature` its arguments and results.
inline std::string module_text(const std::string& signature, const std::string& body) {
  return "module @m { func.func public @main" + signature + " { " + body + " } }";
}

}  // namespace tpu::testing
