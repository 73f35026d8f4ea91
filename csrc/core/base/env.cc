#include "core/base/env.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"

namespace tpu::env {
namespace {

constexpr Variable kVariables[] = {
    {"TORCH_TPU_PLATFORM", "",
     "tpu or cpu: which device to use; empty picks a TPU if there is one, else XLA's CPU device"},
    {"TORCH_TPU_PJRT_PLUGIN", "", "path of any PJRT plugin (.so) to load; wins over TORCH_TPU_PLATFORM"},
    {"TORCH_TPU_CPU_DEVICES", "1", "number of virtual devices of XLA's CPU plugin"},
    {"TORCH_TPU_CACHE", "on", "on, readonly or off: the compilation cache on disk"},
    {"TORCH_TPU_CACHE_DIR", "", "folder of the compilation cache; empty is ~/.cache/torch_tpu"},
    {"TORCH_TPU_CACHE_MB", "2048",
     "size cap of the compilation cache on disk, in MB; least recently used entries go first"},
    {"TORCH_TPU_CACHE_ENTRIES", "8192",
     "how many compiled programs stay in memory; least recently used go first"},
    {"TORCH_TPU_FALLBACK", "warn",
     "warn, quiet or error: what to do when an operator can only run on the host"},
    {"TORCH_TPU_BOUNDS_CHECK", "on",
     "on or off: check indices, and values such as probabilities, and raise what is wrong when a result is "
     "read"},
    {"TORCH_TPU_LOG", "",
     "comma-separated topics to log to stderr: compiles, cache, dispatch, fallback, runtime, all"},
};

}  // namespace

std::span<const Variable> variables() { return kVariables; }

std::string get(const char* name) {
  for (const Variable& v : kVariables) {
    if (std::strcmp(v.name, name) != 0) continue;
    const char* value = std::getenv(name);
    return value && *value ? value : v.fallback;
  }
  throw Error(Code::Internal, "env", text(name, " is not in the registry of environment variables"));
}

int64_t get_int(const char* name) {
  const std::string value = get(name);
  int64_t number = 0;
  auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (fault != std::errc() || end != value.data() + value.size())
    throw Error(Code::Value, "", text(name, "=", value, " is not a whole number"));
  return number;
}

}  // namespace tpu::env
