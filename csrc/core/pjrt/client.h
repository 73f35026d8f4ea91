// A PJRT client and its devices.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/pjrt/named_value.h"
#include "core/pjrt/plugin.h"

namespace tpu::pjrt {

class Buffer;
class Executable;

using Dims = std::vector<int64_t>;

/// How the host memory given to Client::upload may be used.
enum class HostUse {
  CopyNow,   // copied before the call returns: the caller may overwrite it at once
  ZeroCopy,  // may be aliased until `release` is called: the caller keeps it alive and unchanged
};

struct MemoryStats {
  int64_t bytes_in_use = 0;
  std::optional<int64_t> bytes_limit, peak_bytes_in_use, largest_free_block;
};

/// Compile settings that become part of the cache key.
struct CompileOptions {
  int num_replicas = 1;
  int num_partitions = 1;
  bool portable = true;  // one executable for every device of the client (single-device programs only)
  std::vector<int64_t> device_ids;          // the assignment when not portable, replica-major
  std::map<std::string, Option> overrides;  // XLA debug options by name, e.g. xla_cpu_enable_fast_min_max
  /// Serialized xla.CompileOptionsProto.
  std::string serialize() const;
};

class Client : public std::enable_shared_from_this<Client> {
 public:
  /// Error(Unavailable) with the plugin's own text and what to do (e.g. another process holds the TPU).
  static std::shared_ptr<Client> create(std::shared_ptr<Plugin> plugin,
                                        const std::map<std::string, Option>& options = {});
  ~Client();

  const Plugin& plugin() const { return *plugin_; }
  PJRT_Client* raw() const { return client_; }
  std::string platform_name() const;  // "cpu", "tpu"
  std::string platform_version() const;
  std::string device_kind(int device) const;         // e.g. "TPU v6 lite", "cpu"
  std::string device_description(int device) const;  // the plugin's debug text
  int64_t device_id(int device) const;               // the global id
  /// True where device memory is host memory (XLA's CPU device): Buffer::host_address works.
  bool host_memory() const { return host_memory_; }
  /// Number of addressable devices; `device` everywhere in the core is an index below it.
  int device_count() const { return static_cast<int>(devices_.size()); }
  /// Error(InvalidArgument) for an index outside [0, device_count()).
  PJRT_Device* device(int index) const;
  /// nullopt when the plugin keeps no statistics.
  std::optional<MemoryStats> memory_stats(int device) const;

  /// Compiles StableHLO text (or bytecode). Error carries the compiler's text.
  std::shared_ptr<Executable> compile(const std::string& program, const CompileOptions& options);
  /// Loads what Executable::serialize gave; Error when the bytes are not of this plugin.
  std::shared_ptr<Executable> deserialize(const std::string& bytes);

  /// Copies dense row-major host data to the device. `release(context)` runs exactly once, on any thread,
  /// when `data` is no longer needed: with CopyNow and when this call throws before it returns, with ZeroCopy
  /// when the buffer lets go of it.
  std::unique_ptr<Buffer> upload(const void* data, DType dtype, std::span<const int64_t> dims, int device,
                                 HostUse use = HostUse::CopyNow, void (*release)(void*) = nullptr,
                                 void* context = nullptr);

 private:
  Client(std::shared_ptr<Plugin> plugin, PJRT_Client* client);
  PJRT_DeviceDescription* description(int device) const;
  std::shared_ptr<Plugin> plugin_;
  PJRT_Client* client_;
  bool host_memory_ = false;
  std::vector<PJRT_Device*> devices_;
};

// ---- of devices and programs, with a client or ahead of time
std::string kind_of(const Plugin& plugin, PJRT_DeviceDescription* device);
int64_t id_of(const Plugin& plugin, PJRT_DeviceDescription* device);
/// StableHLO text or bytecode for a compile call; refers to `program`.
PJRT_Program mlir_program(const std::string& program);

PJRT_Buffer_Type to_pjrt(DType dtype);
/// Error(Unimplemented) for a type the core does not know.
DType from_pjrt(PJRT_Buffer_Type type);

}  // namespace tpu::pjrt
