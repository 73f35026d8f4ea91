// The runtime of the test process: the plugin under test with two devices, and a compilation cache of its
// own.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "core/base/error.h"
#include "core/graph/build.h"
#include "core/runtime/runtime.h"

namespace tpu::testing {

/// Its folder is removed when the process ends.
struct CacheFolder {
  std::string path;
  CacheFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "core_tests.XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    path = name;
  }
  ~CacheFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

inline runtime::Runtime& world() {
  static runtime::Runtime* const started = [] {
    // A test that starts processes of its own may name a folder for them.
    const char* shared = std::getenv("CORE_TESTS_CACHE");
    static CacheFolder folder;
    ::setenv("TORCH_TPU_CACHE_DIR", shared ? shared : folder.path.c_str(), 1);
    ::setenv("TORCH_TPU_CACHE", "on", 1);
    runtime::Runtime::set_chooser([] {
      return runtime::Choice{
          "cpu", std::getenv("TORCH_TPU_PJRT_PLUGIN"), {{"cpu_device_count", int64_t{2}}}, ""};
    });
    return &runtime::Runtime::get();
  }();
  return *started;
}

inline runtime::Cell cell(const Array& a, int device = 0) {
  return {device, {a.dtype, a.dims}, world().device(device).upload(a.bytes.data(), {a.dtype, a.dims})};
}

inline testing::Array fetch(const pjrt::Buffer& buffer) {
  return {buffer.dtype(), buffer.dims(), download<char>(buffer)};
}
inline testing::Array fetch(const runtime::ArrayPtr& array) { return fetch(array->buffer()); }

}  // namespace tpu::testing
