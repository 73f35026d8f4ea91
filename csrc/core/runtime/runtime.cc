#include "core/runtime/runtime.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/runtime/fork.h"

namespace tpu::runtime {
namespace {

constexpr size_t kSlowest = 10;  // compiles that are remembered by name

std::mutex start_mutex;
std::function<Choice()> chooser;
std::atomic<Runtime*> instance{nullptr};  // never destroyed: tensors may outlive static destructors

std::string env_or_empty(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// A digest of what the processor is and can do. A program for the host's CPU may use all of it, and would
// crash on another.
std::string host_cpu() {
  std::ifstream file("/proc/cpuinfo");
  std::string facts;
  for (std::string line; std::getline(file, line) && !line.empty();)  // the first of the processors
    for (const char* name : {"model name", "flags", "CPU implementer", "CPU part", "Features", "isa"})
      if (line.starts_with(name)) facts += line + "\n";
  return cache::digest({{"cpuinfo", facts}});
}

size_t program_capacity() {
  const int64_t entries = env::get_int("TORCH_TPU_CACHE_ENTRIES");
  if (entries < 0)
    throw Error(Code::Value, "",
                text("TORCH_TPU_CACHE_ENTRIES=", entries, ": expected a number of programs, 0 or more"));
  return static_cast<size_t>(entries);
}

// Bytes of the new arrays; those that take over an argument's memory are not counted.
int64_t result_bytes(const graph::Graph& graph, const graph::Lowered& plan) {
  int64_t bytes = 0;
  const auto add = [&](const hlo::Type& t) { bytes += t.elements() * size_of(t.dtype); };
  for (const hlo::Type& t : plan.outputs) add(t);
  for (size_t i = 0; i < plan.written.size(); i++)
    if (plan.donated[i] < 0) add(graph.cells[plan.written[i]]);
  return bytes;
}

}  // namespace

void Runtime::set_chooser(std::function<Choice()> f) {
  std::lock_guard lock(start_mutex);
  chooser = std::move(f);
}

Runtime& Runtime::get() {
  Runtime* r = instance.load(std::memory_order_acquire);
  if (!r) {
    std::unique_lock lock(start_mutex);
    r = instance.load(std::memory_order_acquire);
    if (!r) {
      if (!chooser) throw Error(Code::Unavailable, "", "no PJRT plugin was chosen: import torch_tpu first");
      // The chooser may call back into Python, which may wait for another thread that waits here.
      const auto choose = chooser;
      lock.unlock();
      const Choice choice = choose();
      lock.lock();
      r = instance.load(std::memory_order_acquire);
      if (!r) {
        r = new Runtime(choice);
        instance.store(r, std::memory_order_release);
      }
    }
  }
  check_not_forked();
  return *r;
}

bool Runtime::started() { return instance.load(std::memory_order_acquire) != nullptr; }

Runtime::Runtime(const Choice& choice)
    : disk_(cache::Disk::from_environment()), executables_(program_capacity()) {
  auto plugin = pjrt::Plugin::load(choice.plugin);
  client_ = pjrt::Client::create(plugin, choice.options);
  const std::string name = client_->platform_name();
  platform_ = name == "cpu" ? ops::Platform::Cpu : name == "tpu" ? ops::Platform::Tpu : ops::Platform::Other;
  target_ = platform_;
  // Without this XLA's CPU compiler drops the NaN of max(1, NaN), maximum and max pooling included.
  if (platform_ == ops::Platform::Cpu) options_.overrides["xla_cpu_enable_fast_min_max"] = false;
  for (int i = 0; i < client_->device_count(); i++) devices_.push_back(std::make_unique<Device>(client_, i));
  plugin_identity_ = text(name, " ", client_->platform_version(), " api ", plugin->api_major(), ".",
                          plugin->api_minor(), " ", plugin->attribute("xla_version"));
  if (client_->host_memory()) host_cpu_ = host_cpu();
  watch_forks();
  if (!choice.notice.empty()) notice(choice.notice);
  log("runtime", text("started ", choice.plugin, ": ", plugin_identity_, ", ", client_->device_count(), " x ",
                      client_->device_kind(0)));
}

Device& Runtime::device(int index) {
  if (index < 0 || index >= device_count())
    throw Error(Code::InvalidArgument, "",
                text("tpu:", index, " does not exist: there ",
                     device_count() == 1 ? "is 1 tpu device"
                                         : "are " + std::to_string(device_count()) + " tpu devices",
                     ", numbered from 0",
                     platform_ == ops::Platform::Cpu ? " (TORCH_TPU_CPU_DEVICES sets how many)" : ""));
  return *devices_[index];
}

std::shared_ptr<pjrt::Executable> Runtime::executable_for(const std::string& module, const std::string& why) {
  static auto& compiles = counter("compiles");
  static auto& compile_us = counter("compile_us");
  static auto& shared_hits = counter("module_hits");
  const std::string key = cache::digest({{"module", module},
                                         {"compile options", options_.serialize()},
                                         {"plugin", plugin_identity_},
                                         {"device kind", client_->device_kind(0)},
                                         {"host cpu", host_cpu_},
                                         {"XLA_FLAGS", env_or_empty("XLA_FLAGS")},
                                         {"LIBTPU_INIT_ARGS", env_or_empty("LIBTPU_INIT_ARGS")}});
  if (auto known = executables_.find(key)) {
    shared_hits++;
    return known;
  }
  if (auto bytes = disk_.load(key)) {
    try {
      auto executable = client_->deserialize(*bytes);
      log("cache", text("disk hit ", key.substr(0, 12), " for ", why));
      return executables_.insert(key, executable);
    } catch (const Error& e) {
      log("cache",
          text("the plugin refused entry ", key.substr(0, 12), " (", e.what(), "): compiling again"));
      disk_.remove(key);
    }
  }
  const auto start = std::chrono::steady_clock::now();
  auto executable = client_->compile(module, options_);
  const auto us =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count();
  compiles++;
  compile_us += us;
  note_compile(us, why);
  log("compiles", text(why, ": ", us / 1000, " ms, module ", key.substr(0, 12)));
  if (disk_.mode() == cache::Disk::Mode::On) {
    try {
      disk_.store(key, executable->compiled().serialize());
    } catch (const Error& e) {
      log("cache", text("cannot serialize ", key.substr(0, 12), ": ", e.what()));
    }
  }
  return executables_.insert(key, executable);
}

void Runtime::note_compile(int64_t us, const std::string& why) {
  std::lock_guard lock(slowest_mutex_);
  const auto at = std::upper_bound(slowest_.begin(), slowest_.end(), us,
                                   [](int64_t t, const auto& known) { return t > known.first; });
  slowest_.emplace(at, us, why);
  if (slowest_.size() > kSlowest) slowest_.pop_back();
}

std::vector<std::pair<int64_t, std::string>> Runtime::slowest_compiles() {
  std::lock_guard lock(slowest_mutex_);
  return slowest_;
}

std::shared_ptr<const Program> Runtime::compile(const graph::Graph& graph, const graph::Settings& settings,
                                                const std::string& why) {
  if (recording_) return record(graph, settings, why);
  auto program = std::make_shared<Program>();
  program->plan = graph::lower(graph, settings);
  if (logs("modules")) log("modules", why + "\n" + program->plan.module);
  try {
    program->executable = executable_for(program->plan.module, why);
  } catch (const Error& e) {
    throw Error(e.code, "", text(e.what(), "\nwhile compiling ", why));
  }
  program->bytes = result_bytes(graph, program->plan);
  program->plan.module.clear();
  program->plan.module.shrink_to_fit();
  if (!program->plan.extra.checks.empty())
    program->checks = std::make_shared<const std::vector<ops::Parameters::Check>>(program->plan.extra.checks);
  return program;
}

std::shared_ptr<const Program> Runtime::record(const graph::Graph& graph, const graph::Settings& settings,
                                               const std::string& why) {
  auto program = std::make_shared<Program>();
  Recorded made{why, graph, ""};
  try {
    program->plan = graph::lower(graph, settings);
    made.module.swap(program->plan.module);
  } catch (const Error& e) {
    made.error = e;
  }
  const std::optional<Error> failed = made.error;
  {
    std::lock_guard lock(recording_mutex_);
    recorded_.push_back(std::move(made));
  }
  if (failed) throw *failed;
  return program;
}

void Runtime::start_recording(ops::Platform target) {
  std::lock_guard lock(recording_mutex_);
  if (recording_) throw Error(Code::InvalidArgument, "", "programs are being recorded already");
  recorded_.clear();
  target_ = target;
  recording_ = true;
}

std::vector<Recorded> Runtime::finish_recording() {
  std::lock_guard lock(recording_mutex_);
  recording_ = false;
  target_ = platform_;
  return std::exchange(recorded_, {});
}

const ArrayPtr& Cell::materialize() {
  if (!array) array = Runtime::get().device(device).zeros(type);
  return array;
}

}  // namespace tpu::runtime
