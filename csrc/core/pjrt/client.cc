#include "core/pjrt/client.h"

#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/pjrt/buffer.h"
#include "core/pjrt/event.h"
#include "core/pjrt/executable.h"

namespace tpu::pjrt {
namespace {

// Runs the caller's release when an upload ends early, by return or by throw.
class Release {
 public:
  Release(void (*release)(void*), void* context) : release_(release), context_(context) {}
  ~Release() {
    if (release_) release_(context_);
  }
  Release(const Release&) = delete;
  Release& operator=(const Release&) = delete;
  explicit operator bool() const { return release_ != nullptr; }
  /// Hands the duty on to `event`.
  void after(const Event& event) {
    event.on_ready([release = release_, context = context_] { release(context); });
    release_ = nullptr;
  }

 private:
  void (*release_)(void*);
  void* context_;
};

}  // namespace

std::shared_ptr<Client> Client::create(std::shared_ptr<Plugin> plugin,
                                       const std::map<std::string, Option>& options) {
  const std::vector<PJRT_NamedValue> values = to_pjrt(options);
  auto args = make_args<PJRT_Client_Create_Args>(PJRT_Client_Create_Args_STRUCT_SIZE);
  args.create_options = values.data();
  args.num_options = values.size();
  try {
    plugin->check(plugin->api()->PJRT_Client_Create(&args), "client creation");
  } catch (const Error& error) {
    std::string said = error.what();
    while (said.ends_with('.') || said.ends_with('\n')) said.pop_back();
    throw Error(
        Code::Unavailable, "",
        text("the PJRT plugin '", plugin->path(), "' found no usable device: ", said,
             ". Check that the machine has the device and that no other process holds it (a TPU serves one "
             "process at a time), or set TORCH_TPU_PLATFORM=cpu to run on XLA's CPU device."));
  }
  std::shared_ptr<Client> client(new Client(std::move(plugin), args.client));
  auto devices =
      make_args<PJRT_Client_AddressableDevices_Args>(PJRT_Client_AddressableDevices_Args_STRUCT_SIZE);
  devices.client = client->client_;
  client->plugin_->check(client->plugin_->api()->PJRT_Client_AddressableDevices(&devices), "device list");
  client->devices_.assign(devices.addressable_devices,
                          devices.addressable_devices + devices.num_addressable_devices);
  client->host_memory_ = client->platform_name() == "cpu";
  return client;
}

Client::Client(std::shared_ptr<Plugin> plugin, PJRT_Client* client)
    : plugin_(std::move(plugin)), client_(client) {}

Client::~Client() {
  if (!plugins_usable()) return;
  auto args = make_args<PJRT_Client_Destroy_Args>(PJRT_Client_Destroy_Args_STRUCT_SIZE);
  args.client = client_;
  plugin_->api()->PJRT_Client_Destroy(&args);
}

std::string Client::platform_name() const {
  auto args = make_args<PJRT_Client_PlatformName_Args>(PJRT_Client_PlatformName_Args_STRUCT_SIZE);
  args.client = client_;
  plugin_->check(plugin_->api()->PJRT_Client_PlatformName(&args), "platform name");
  return std::string(args.platform_name, args.platform_name_size);
}

std::string Client::platform_version() const {
  auto args = make_args<PJRT_Client_PlatformVersion_Args>(PJRT_Client_PlatformVersion_Args_STRUCT_SIZE);
  args.client = client_;
  plugin_->check(plugin_->api()->PJRT_Client_PlatformVersion(&args), "platform version");
  return std::string(args.platform_version, args.platform_version_size);
}

PJRT_DeviceDescription* Client::description(int index) const {
  auto args = make_args<PJRT_Device_GetDescription_Args>(PJRT_Device_GetDescription_Args_STRUCT_SIZE);
  args.device = device(index);
  plugin_->check(plugin_->api()->PJRT_Device_GetDescription(&args), "device description");
  return args.device_description;
}

std::string Client::device_kind(int device) const { return kind_of(*plugin_, description(device)); }

std::string Client::device_description(int device) const {
  auto args =
      make_args<PJRT_DeviceDescription_DebugString_Args>(PJRT_DeviceDescription_DebugString_Args_STRUCT_SIZE);
  args.device_description = description(device);
  plugin_->check(plugin_->api()->PJRT_DeviceDescription_DebugString(&args), "device description");
  return std::string(args.debug_string, args.debug_string_size);
}

int64_t Client::device_id(int device) const { return id_of(*plugin_, description(device)); }

PJRT_Device* Client::device(int index) const {
  if (index < 0 || index >= device_count())
    throw Error(Code::InvalidArgument, "",
                text("there is no device ", index, ": this process has ", device_count(), " device(s)"));
  return devices_[index];
}

std::optional<MemoryStats> Client::memory_stats(int index) const {
  auto args = make_args<PJRT_Device_MemoryStats_Args>(PJRT_Device_MemoryStats_Args_STRUCT_SIZE);
  args.device = device(index);
  try {
    plugin_->check(plugin_->api()->PJRT_Device_MemoryStats(&args), "memory statistics");
  } catch (const Error& error) {
    if (error.code == Code::Unimplemented) return std::nullopt;
    throw;
  }
  MemoryStats stats;
  stats.bytes_in_use = args.bytes_in_use;
  if (args.bytes_limit_is_set) stats.bytes_limit = args.bytes_limit;
  if (args.peak_bytes_in_use_is_set) stats.peak_bytes_in_use = args.peak_bytes_in_use;
  if (args.largest_free_block_bytes_is_set) stats.largest_free_block = args.largest_free_block_bytes;
  return stats;
}

std::shared_ptr<Executable> Client::compile(const std::string& program, const CompileOptions& options) {
  PJRT_Program code = mlir_program(program);
  const std::string settings = options.serialize();
  auto args = make_args<PJRT_Client_Compile_Args>(PJRT_Client_Compile_Args_STRUCT_SIZE);
  args.client = client_;
  args.program = &code;
  args.compile_options = settings.data();
  args.compile_options_size = settings.size();
  plugin_->check(plugin_->api()->PJRT_Client_Compile(&args), "compile");
  return std::make_shared<Executable>(shared_from_this(), args.executable);
}

std::shared_ptr<Executable> Client::deserialize(const std::string& bytes) {
  auto args =
      make_args<PJRT_Executable_DeserializeAndLoad_Args>(PJRT_Executable_DeserializeAndLoad_Args_STRUCT_SIZE);
  args.client = client_;
  args.serialized_executable = bytes.data();
  args.serialized_executable_size = bytes.size();
  plugin_->check(plugin_->api()->PJRT_Executable_DeserializeAndLoad(&args), "deserialize");
  return std::make_shared<Executable>(shared_from_this(), args.loaded_executable);
}

std::unique_ptr<Buffer> Client::upload(const void* data, DType dtype, std::span<const int64_t> dims,
                                       int index, HostUse use, void (*release)(void*), void* context) {
  Release duty(release, context);
  static const std::max_align_t kNothing{};
  auto args =
      make_args<PJRT_Client_BufferFromHostBuffer_Args>(PJRT_Client_BufferFromHostBuffer_Args_STRUCT_SIZE);
  args.client = client_;
  args.data = data ? data : &kNothing;  // an empty array may come without memory; plugins want an address
  args.type = to_pjrt(dtype);
  args.dims = dims.data();
  args.num_dims = dims.size();
  args.host_buffer_semantics = use == HostUse::CopyNow ? PJRT_HostBufferSemantics_kImmutableOnlyDuringCall
                                                       : PJRT_HostBufferSemantics_kImmutableZeroCopy;
  args.device = device(index);
  plugin_->check(plugin_->api()->PJRT_Client_BufferFromHostBuffer(&args), "copy to the device");
  const Event done(plugin_.get(), args.done_with_host_buffer);
  auto buffer =
      std::make_unique<Buffer>(shared_from_this(), args.buffer, dtype, Dims(dims.begin(), dims.end()), index);
  if (use == HostUse::ZeroCopy && duty) duty.after(done);
  return buffer;
}

std::string kind_of(const Plugin& plugin, PJRT_DeviceDescription* device) {
  auto args = make_args<PJRT_DeviceDescription_Kind_Args>(PJRT_DeviceDescription_Kind_Args_STRUCT_SIZE);
  args.device_description = device;
  plugin.check(plugin.api()->PJRT_DeviceDescription_Kind(&args), "device kind");
  return std::string(args.device_kind, args.device_kind_size);
}

int64_t id_of(const Plugin& plugin, PJRT_DeviceDescription* device) {
  auto args = make_args<PJRT_DeviceDescription_Id_Args>(PJRT_DeviceDescription_Id_Args_STRUCT_SIZE);
  args.device_description = device;
  plugin.check(plugin.api()->PJRT_DeviceDescription_Id(&args), "device id");
  return args.id;
}

PJRT_Program mlir_program(const std::string& program) {
  static constexpr std::string_view kFormat = "mlir";
  auto code = make_args<PJRT_Program>(PJRT_Program_STRUCT_SIZE);
  code.code = const_cast<char*>(program.data());
  code.code_size = program.size();
  code.format = kFormat.data();
  code.format_size = kFormat.size();
  return code;
}

namespace {

// In the order of DType.
constexpr PJRT_Buffer_Type kTypes[] = {
    PJRT_Buffer_Type_PRED,  PJRT_Buffer_Type_S8,  PJRT_Buffer_Type_S16,  PJRT_Buffer_Type_S32,
    PJRT_Buffer_Type_S64,   PJRT_Buffer_Type_U8,  PJRT_Buffer_Type_U16,  PJRT_Buffer_Type_U32,
    PJRT_Buffer_Type_U64,   PJRT_Buffer_Type_F16, PJRT_Buffer_Type_BF16, PJRT_Buffer_Type_F32,
    PJRT_Buffer_Type_F64,   PJRT_Buffer_Type_C64, PJRT_Buffer_Type_C128, PJRT_Buffer_Type_F8E4M3FN,
    PJRT_Buffer_Type_F8E5M2};

}  // namespace

PJRT_Buffer_Type to_pjrt(DType dtype) { return kTypes[static_cast<int>(dtype)]; }

DType from_pjrt(PJRT_Buffer_Type type) {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (kTypes[i] == type) return static_cast<DType>(i);
  throw Error(Code::Unimplemented, "",
              text("PJRT element type number ", static_cast<int>(type), " has no PyTorch dtype"));
}

}  // namespace tpu::pjrt
