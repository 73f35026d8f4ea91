#include "core/base/log.h"

#include <cstdio>
#include <memory>
#include <mutex>

#include "core/base/env.h"

namespace tpu {
namespace {

struct Counters {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<std::atomic<int64_t>>> by_name;
};

// Never destroyed: threads of a plugin may still count while the process ends.
Counters& all() {
  static auto* counters = new Counters;
  return *counters;
}

}  // namespace

bool logs(const char* topic) {
  static const std::string topics = "," + env::get("TORCH_TPU_LOG") + ",";
  return topics.find(",all,") != std::string::npos ||
         topics.find("," + std::string(topic) + ",") != std::string::npos;
}

void notice(const std::string& message) { std::fprintf(stderr, "[torch_tpu] %s\n", message.c_str()); }

void log(const char* topic, const std::string& message) {
  if (logs(topic)) notice(std::string(topic) + ": " + message);
}

std::atomic<int64_t>& counter(const std::string& name) {
  Counters& c = all();
  std::lock_guard lock(c.mutex);
  auto& slot = c.by_name[name];
  if (!slot) slot = std::make_unique<std::atomic<int64_t>>(0);
  return *slot;
}

std::map<std::string, int64_t> counters() {
  Counters& c = all();
  std::lock_guard lock(c.mutex);
  std::map<std::string, int64_t> out;
  for (const auto& [name, value] : c.by_name) out[name] = value->load();
  return out;
}

}  // namespace tpu
