// A slice of accelerators by name, without the hardware: what programs are compiled for ahead of time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/pjrt/client.h"
#include "core/pjrt/compiled.h"

namespace tpu::pjrt {

class Topology {
 public:
  /// `name` is the plugin's: "v6e:2x2x1" for libtpu. Error carries the plugin's text, for a name it does not
  /// know or when it has no topologies (Unimplemented).
  static std::unique_ptr<Topology> create(std::shared_ptr<Plugin> plugin, const std::string& name,
                                          const std::map<std::string, Option>& options = {});
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  std::string platform_name() const;  // "tpu"
  std::string platform_version() const;
  /// E.g. "device_memory_bytes_limit", "wrap", "twist".
  std::map<std::string, Attribute> attributes() const;

  int device_count() const { return static_cast<int>(devices_.size()); }
  /// The functions of a device throw Error(InvalidArgument) for an index outside [0, device_count()).
  std::string device_kind(int device) const;  // e.g. "TPU v6 lite"
  int64_t device_id(int device) const;
  /// E.g. "coords", "core_on_chip", "device_memory_bytes_limit".
  std::map<std::string, Attribute> device_attributes(int device) const;

  /// Compiles StableHLO text (or bytecode). Error carries the compiler's text. The compiler may also end the
  /// process: who does not trust the program compiles in another one.
  Compiled compile(const std::string& program, const CompileOptions& options) const;

 private:
  Topology(std::shared_ptr<Plugin> plugin, PJRT_TopologyDescription* topology);
  PJRT_DeviceDescription* description(int device) const;

  std::shared_ptr<Plugin> plugin_;
  PJRT_TopologyDescription* topology_;
  std::vector<PJRT_DeviceDescription*> devices_;  // owned by the topology
};

}  // namespace tpu::pjrt
