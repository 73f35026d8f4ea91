// One line a message on stderr, by topic (TORCH_TPU_LOG), and named counters that tests and tools read.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

namespace tpu {

/// True when TORCH_TPU_LOG names `topic` or "all". Read once a process.
bool logs(const char* topic);
/// Writes "[torch_tpu] message" to stderr, whatever TORCH_TPU_LOG says.
void notice(const std::string& message);
/// Writes it only when the topic is on.
void log(const char* topic, const std::string& message);

/// A named, process-wide counter. The reference stays valid; hold it in a static on a hot path.
std::atomic<int64_t>& counter(const std::string& name);
/// All counters by name.
std::map<std::string, int64_t> counters();

}  // namespace tpu
