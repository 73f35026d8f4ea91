// The process's one runtime: the client, its devices, and programs from memory, from disk or from the
// compiler.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cache/disk.h"
#include "core/cache/lru.h"
#include "core/runtime/program.h"

namespace tpu::runtime {

/// Which plugin to start, decided by the embedder.
struct Choice {
  std::string platform;  // "tpu", "cpu" or "custom"
  std::string plugin;    // path
  std::map<std::string, pjrt::Option> options;
  std::string notice;  // one line for the user, or ""
};

/// A program of a recording.
struct Recorded {
  std::string why;  // as Runtime::compile was told
  graph::Graph graph;
  std::string module;               // "" when its lowering failed
  std::optional<Error> error = {};  // of the lowering
};

class Runtime {
 public:
  /// Sets how the plugin is chosen; must be called before the first get(). It may throw.
  static void set_chooser(std::function<Choice()> chooser);
  /// Starts the client on the first call. Throws Error(Unavailable) when there is none to start, each time
  /// anew, and in a forked child of a process that had started it.
  static Runtime& get();
  static bool started();

  pjrt::Client& client() { return *client_; }
  int device_count() const { return static_cast<int>(devices_.size()); }
  /// Error(InvalidArgument) for an index that does not exist.
  Device& device(int index);
  /// What programs are lowered for: the client's platform, or that of the recording.
  ops::Platform platform() const { return target_.load(std::memory_order_relaxed); }
  cache::Disk& disk() { return disk_; }
  /// Forgets the programs in memory that nobody holds.
  void forget_programs() { executables_.clear(); }
  /// The compiles of this process that took longest, longest first: microseconds, and what they were for.
  std::vector<std::pair<int64_t, std::string>> slowest_compiles();

  /// A program for the graph. Takes it from the disk cache when it is there. `why` is logged with a compile.
  std::shared_ptr<const Program> compile(const graph::Graph& graph, const graph::Settings& settings,
                                         const std::string& why);

  /// From now on programs are lowered for `target` and kept instead of compiled: a launch makes arrays of
  /// zeros. What is compiled already is in the callers' caches: they forget it before and after. Error
  /// (InvalidArgument) when a recording is under way.
  void start_recording(ops::Platform target);
  /// Ends the recording; its programs in the order of their first calls.
  std::vector<Recorded> finish_recording();

 private:
  Runtime(const Choice& choice);
  std::shared_ptr<const Program> record(const graph::Graph& graph, const graph::Settings& settings,
                                        const std::string& why);
  std::shared_ptr<pjrt::Executable> executable_for(const std::string& module, const std::string& why);
  void note_compile(int64_t us, const std::string& why);

  std::shared_ptr<pjrt::Client> client_;
  std::vector<std::unique_ptr<Device>> devices_;
  ops::Platform platform_;
  std::atomic<ops::Platform> target_;
  std::atomic<bool> recording_{false};
  std::mutex recording_mutex_;  // guards the next one
  std::vector<Recorded> recorded_;
  pjrt::CompileOptions options_;
  std::string plugin_identity_, host_cpu_;
  cache::Disk disk_;
  cache::Lru<pjrt::Executable> executables_;  // by digest: graphs with different keys may have one module
  std::mutex slowest_mutex_;
  std::vector<std::pair<int64_t, std::string>> slowest_;
};

}  // namespace tpu::runtime
