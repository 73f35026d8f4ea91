#include "core/pjrt/executable.h"

#include <utility>

#include "core/base/error.h"
#include "core/pjrt/small_array.h"

namespace tpu::pjrt {

Executable::Executable(std::shared_ptr<Client> client, PJRT_LoadedExecutable* executable)
    : client_(std::move(client)), executable_(executable) {
  try {
    describe();
  } catch (...) {
    destroy();
    throw;
  }
}

Executable::~Executable() { destroy(); }

void Executable::destroy() noexcept {
  if (!plugins_usable()) return;
  const PJRT_Api* api = client_->plugin().api();
  auto program = make_args<PJRT_Executable_Destroy_Args>(PJRT_Executable_Destroy_Args_STRUCT_SIZE);
  program.executable = program_;
  if (program_) api->PJRT_Executable_Destroy(&program);
  auto loaded = make_args<PJRT_LoadedExecutable_Destroy_Args>(PJRT_LoadedExecutable_Destroy_Args_STRUCT_SIZE);
  loaded.executable = executable_;
  api->PJRT_LoadedExecutable_Destroy(&loaded);
}

void Executable::describe() {
  const Plugin& plugin = client_->plugin();
  const PJRT_Api* api = plugin.api();
  auto program = make_args<PJRT_LoadedExecutable_GetExecutable_Args>(
      PJRT_LoadedExecutable_GetExecutable_Args_STRUCT_SIZE);
  program.loaded_executable = executable_;
  plugin.check(api->PJRT_LoadedExecutable_GetExecutable(&program), "load");
  program_ = program.executable;

  auto count = make_args<PJRT_Executable_NumOutputs_Args>(PJRT_Executable_NumOutputs_Args_STRUCT_SIZE);
  count.executable = program_;
  plugin.check(api->PJRT_Executable_NumOutputs(&count), "load");
  num_outputs_ = count.num_outputs;

  if (!TPU_PJRT_HAS(plugin, PJRT_Executable_OutputElementTypes) ||
      !TPU_PJRT_HAS(plugin, PJRT_Executable_OutputDimensions))
    return;
  auto types =
      make_args<PJRT_Executable_OutputElementTypes_Args>(PJRT_Executable_OutputElementTypes_Args_STRUCT_SIZE);
  types.executable = program_;
  auto dims =
      make_args<PJRT_Executable_OutputDimensions_Args>(PJRT_Executable_OutputDimensions_Args_STRUCT_SIZE);
  dims.executable = program_;
  try {
    plugin.check(api->PJRT_Executable_OutputElementTypes(&types), "load");
    plugin.check(api->PJRT_Executable_OutputDimensions(&dims), "load");
  } catch (const Error& error) {
    if (error.code == Code::Unimplemented) return;
    throw;
  }
  const int64_t* next = dims.dims;
  for (size_t i = 0; i < num_outputs_; ++i) {
    outputs_.push_back({from_pjrt(types.output_types[i]), Dims(next, next + dims.dim_sizes[i])});
    next += dims.dim_sizes[i];
  }
}

namespace {

DType dtype_of(const Plugin& plugin, PJRT_Buffer* buffer) {
  auto args = make_args<PJRT_Buffer_ElementType_Args>(PJRT_Buffer_ElementType_Args_STRUCT_SIZE);
  args.buffer = buffer;
  plugin.check(plugin.api()->PJRT_Buffer_ElementType(&args), "element type");
  return from_pjrt(args.type);
}

Dims dims_of(const Plugin& plugin, PJRT_Buffer* buffer) {
  auto args = make_args<PJRT_Buffer_Dimensions_Args>(PJRT_Buffer_Dimensions_Args_STRUCT_SIZE);
  args.buffer = buffer;
  plugin.check(plugin.api()->PJRT_Buffer_Dimensions(&args), "dimensions");
  return Dims(args.dims, args.dims + args.num_dims);
}

}  // namespace

std::vector<std::unique_ptr<Buffer>> Executable::execute(std::span<Buffer* const> arguments,
                                                         int device) const {
  std::vector<std::unique_ptr<Buffer>> outputs;
  execute(arguments, device, {}, outputs);
  return outputs;
}

Event Executable::execute(std::span<Buffer* const> arguments, int device, std::span<const int64_t> keep,
                          std::vector<std::unique_ptr<Buffer>>& outputs) const {
  outputs.clear();
  outputs.reserve(num_outputs_);
  SmallArray<PJRT_Buffer*, 48> in(arguments.size()), out(num_outputs_);
  for (size_t i = 0; i < arguments.size(); ++i) in[i] = arguments[i]->raw();
  PJRT_Buffer* const* in_list = in.data();
  PJRT_Buffer** const out_list = out.data();
  PJRT_Event* done = nullptr;

  auto options = make_args<PJRT_ExecuteOptions>(PJRT_ExecuteOptions_STRUCT_SIZE);
  options.non_donatable_input_indices = keep.data();
  options.num_non_donatable_input_indices = keep.size();
  auto args = make_args<PJRT_LoadedExecutable_Execute_Args>(PJRT_LoadedExecutable_Execute_Args_STRUCT_SIZE);
  args.executable = executable_;
  args.options = &options;
  args.argument_lists = &in_list;
  args.num_devices = 1;
  args.num_args = arguments.size();
  args.output_lists = &out_list;
  args.device_complete_events = &done;
  args.execute_device = client_->device(device);
  const Plugin& plugin = client_->plugin();
  plugin.check(plugin.api()->PJRT_LoadedExecutable_Execute(&args), "execute");

  Event event(&plugin, done);
  for (size_t i = 0; i < num_outputs_; ++i) {
    if (!outputs_.empty())
      outputs.push_back(
          std::make_unique<Buffer>(client_, out[i], outputs_[i].dtype, outputs_[i].dims, device));
    else
      outputs.push_back(std::make_unique<Buffer>(client_, out[i], dtype_of(plugin, out[i]),
                                                 dims_of(plugin, out[i]), device));
  }
  return event;
}

std::string Executable::serialize() const {
  auto args = make_args<PJRT_Executable_Serialize_Args>(PJRT_Executable_Serialize_Args_STRUCT_SIZE);
  args.executable = program_;
  const Plugin& plugin = client_->plugin();
  plugin.check(plugin.api()->PJRT_Executable_Serialize(&args), "serialize");
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

std::optional<ProgramStats> Executable::stats() const {
  const Plugin& plugin = client_->plugin();
  if (!TPU_PJRT_HAS(plugin, PJRT_Executable_GetCompiledMemoryStats)) return std::nullopt;
  auto args = make_args<PJRT_Executable_GetCompiledMemoryStats_Args>(
      PJRT_Executable_GetCompiledMemoryStats_Args_STRUCT_SIZE);
  args.executable = program_;
  try {
    plugin.check(plugin.api()->PJRT_Executable_GetCompiledMemoryStats(&args), "program statistics");
  } catch (const Error& error) {
    if (error.code == Code::Unimplemented) return std::nullopt;
    throw;
  }
  return ProgramStats{args.generated_code_size_in_bytes, args.argument_size_in_bytes,
                      args.output_size_in_bytes, args.alias_size_in_bytes, args.temp_size_in_bytes};
}

std::string Executable::fingerprint() const {
  const Plugin& plugin = client_->plugin();
  try {
    if (TPU_PJRT_HAS(plugin, PJRT_Executable_Fingerprint)) {
      auto args = make_args<PJRT_Executable_Fingerprint_Args>(PJRT_Executable_Fingerprint_Args_STRUCT_SIZE);
      args.executable = program_;
      plugin.check(plugin.api()->PJRT_Executable_Fingerprint(&args), "fingerprint");
      return std::string(args.executable_fingerprint, args.executable_fingerprint_size);
    }
    auto args =
        make_args<PJRT_LoadedExecutable_Fingerprint_Args>(PJRT_LoadedExecutable_Fingerprint_Args_STRUCT_SIZE);
    args.executable = executable_;
    plugin.check(plugin.api()->PJRT_LoadedExecutable_Fingerprint(&args), "fingerprint");
    return std::string(args.executable_fingerprint, args.executable_fingerprint_size);
  } catch (const Error& error) {
    if (error.code == Code::Unimplemented) return "";
    throw;
  }
}

}  // namespace tpu::pjrt
