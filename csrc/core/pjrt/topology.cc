#include "core/pjrt/topology.h"

#include <utility>

#include "core/base/error.h"

namespace tpu::pjrt {

std::unique_ptr<Topology> Topology::create(std::shared_ptr<Plugin> plugin, const std::string& name,
                                           const std::map<std::string, Option>& options) {
  if (!TPU_PJRT_HAS(*plugin, PJRT_TopologyDescription_Create) || !TPU_PJRT_HAS(*plugin, PJRT_Compile))
    throw Error(Code::Unimplemented, "topology",
                text("the PJRT plugin '", plugin->path(), "' does not compile ahead of time"));
  const std::vector<PJRT_NamedValue> values = to_pjrt(options);
  auto args =
      make_args<PJRT_TopologyDescription_Create_Args>(PJRT_TopologyDescription_Create_Args_STRUCT_SIZE);
  args.topology_name = name.data();
  args.topology_name_size = name.size();
  args.create_options = values.data();
  args.num_options = values.size();
  plugin->check(plugin->api()->PJRT_TopologyDescription_Create(&args), "topology");
  std::unique_ptr<Topology> topology(new Topology(std::move(plugin), args.topology));
  auto devices = make_args<PJRT_TopologyDescription_GetDeviceDescriptions_Args>(
      PJRT_TopologyDescription_GetDeviceDescriptions_Args_STRUCT_SIZE);
  devices.topology = topology->topology_;
  const Plugin& owner = *topology->plugin_;
  owner.check(owner.api()->PJRT_TopologyDescription_GetDeviceDescriptions(&devices), "topology's devices");
  topology->devices_.assign(devices.descriptions, devices.descriptions + devices.num_descriptions);
  return topology;
}

Topology::Topology(std::shared_ptr<Plugin> plugin, PJRT_TopologyDescription* topology)
    : plugin_(std::move(plugin)), topology_(topology) {}

Topology::~Topology() {
  if (!plugins_usable()) return;
  auto args =
      make_args<PJRT_TopologyDescription_Destroy_Args>(PJRT_TopologyDescription_Destroy_Args_STRUCT_SIZE);
  args.topology = topology_;
  plugin_->api()->PJRT_TopologyDescription_Destroy(&args);
}

std::string Topology::platform_name() const {
  auto args = make_args<PJRT_TopologyDescription_PlatformName_Args>(
      PJRT_TopologyDescription_PlatformName_Args_STRUCT_SIZE);
  args.topology = topology_;
  plugin_->check(plugin_->api()->PJRT_TopologyDescription_PlatformName(&args), "platform name");
  return std::string(args.platform_name, args.platform_name_size);
}

std::string Topology::platform_version() const {
  auto args = make_args<PJRT_TopologyDescription_PlatformVersion_Args>(
      PJRT_TopologyDescription_PlatformVersion_Args_STRUCT_SIZE);
  args.topology = topology_;
  plugin_->check(plugin_->api()->PJRT_TopologyDescription_PlatformVersion(&args), "platform version");
  return std::string(args.platform_version, args.platform_version_size);
}

std::map<std::string, Attribute> Topology::attributes() const {
  if (!TPU_PJRT_HAS(*plugin_, PJRT_TopologyDescription_Attributes)) return {};
  auto args = make_args<PJRT_TopologyDescription_Attributes_Args>(
      PJRT_TopologyDescription_Attributes_Args_STRUCT_SIZE);
  args.topology = topology_;
  plugin_->check(plugin_->api()->PJRT_TopologyDescription_Attributes(&args), "topology's attributes");
  return from_pjrt(args.attributes, args.num_attributes);
}

PJRT_DeviceDescription* Topology::description(int device) const {
  if (device < 0 || device >= device_count())
    throw Error(Code::InvalidArgument, "",
                text("there is no device ", device, ": the topology has ", device_count(), " device(s)"));
  return devices_[device];
}

std::string Topology::device_kind(int device) const { return kind_of(*plugin_, description(device)); }

int64_t Topology::device_id(int device) const { return id_of(*plugin_, description(device)); }

std::map<std::string, Attribute> Topology::device_attributes(int device) const {
  auto args =
      make_args<PJRT_DeviceDescription_Attributes_Args>(PJRT_DeviceDescription_Attributes_Args_STRUCT_SIZE);
  args.device_description = description(device);
  plugin_->check(plugin_->api()->PJRT_DeviceDescription_Attributes(&args), "device's attributes");
  return from_pjrt(args.attributes, args.num_attributes);
}

Compiled Topology::compile(const std::string& program, const CompileOptions& options) const {
  PJRT_Program code = mlir_program(program);
  const std::string settings = options.serialize();
  auto args = make_args<PJRT_Compile_Args>(PJRT_Compile_Args_STRUCT_SIZE);
  args.topology = topology_;
  args.program = &code;
  args.compile_options = settings.data();
  args.compile_options_size = settings.size();
  plugin_->check(plugin_->api()->PJRT_Compile(&args), "compile");
  return Compiled(*plugin_, args.executable);
}

}  // namespace tpu::pjrt
