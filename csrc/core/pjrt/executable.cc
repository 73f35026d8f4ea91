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
  program_.reset();
  auto loaded = make_args<PJRT_LoadedExecutable_Destroy_Args>(PJRT_LoadedExecutable_Destroy_Args_STRUCT_SIZE);
  loaded.executable = executable_;
  api->PJRT_LoadedExecutable_Destroy(&loaded);
}

void Executable::describe() {
  const Plugin& plugin = client_->plugin();
  auto args = make_args<PJRT_LoadedExecutable_GetExecutable_Args>(
      PJRT_LoadedExecutable_GetExecutable_Args_STRUCT_SIZE);
  args.loaded_executable = executable_;
  plugin.check(plugin.api()->PJRT_LoadedExecutable_GetExecutable(&args), "load");
  program_.emplace(plugin, args.executable);
  num_outputs_ = static_cast<size_t>(program_->num_outputs());
  outputs_ = program_->outputs().value_or(std::vector<Compiled::Output>());
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

}  // namespace tpu::pjrt
