#include "core/pjrt/compiled.h"

#include <utility>

#include "core/base/error.h"

namespace tpu::pjrt {
namespace {

/// Runs `ask`; false when the plugin says that it does not implement what was asked.
template <typename F>
bool implemented(const F& ask) {
  try {
    ask();
    return true;
  } catch (const Error& error) {
    if (error.code == Code::Unimplemented) return false;
    throw;
  }
}

}  // namespace

Compiled::Compiled(const Plugin& plugin, PJRT_Executable* program) : plugin_(&plugin), program_(program) {}

Compiled::Compiled(Compiled&& other) noexcept
    : plugin_(other.plugin_), program_(std::exchange(other.program_, nullptr)) {}

Compiled::~Compiled() {
  if (!program_ || !plugins_usable()) return;
  auto args = make_args<PJRT_Executable_Destroy_Args>(PJRT_Executable_Destroy_Args_STRUCT_SIZE);
  args.executable = program_;
  plugin_->api()->PJRT_Executable_Destroy(&args);
}

int Compiled::num_outputs() const {
  auto args = make_args<PJRT_Executable_NumOutputs_Args>(PJRT_Executable_NumOutputs_Args_STRUCT_SIZE);
  args.executable = program_;
  plugin_->check(plugin_->api()->PJRT_Executable_NumOutputs(&args), "number of outputs");
  return static_cast<int>(args.num_outputs);
}

std::optional<std::vector<Compiled::Output>> Compiled::outputs() const {
  if (!TPU_PJRT_HAS(*plugin_, PJRT_Executable_OutputElementTypes) ||
      !TPU_PJRT_HAS(*plugin_, PJRT_Executable_OutputDimensions))
    return std::nullopt;
  auto types =
      make_args<PJRT_Executable_OutputElementTypes_Args>(PJRT_Executable_OutputElementTypes_Args_STRUCT_SIZE);
  types.executable = program_;
  auto dims =
      make_args<PJRT_Executable_OutputDimensions_Args>(PJRT_Executable_OutputDimensions_Args_STRUCT_SIZE);
  dims.executable = program_;
  const PJRT_Api* api = plugin_->api();
  if (!implemented([&] {
        plugin_->check(api->PJRT_Executable_OutputElementTypes(&types), "output types");
        plugin_->check(api->PJRT_Executable_OutputDimensions(&dims), "output sizes");
      }))
    return std::nullopt;
  std::vector<Output> out;
  const int64_t* next = dims.dims;
  for (size_t i = 0; i < types.num_output_types; ++i) {
    out.push_back({from_pjrt(types.output_types[i]), Dims(next, next + dims.dim_sizes[i])});
    next += dims.dim_sizes[i];
  }
  return out;
}

std::string Compiled::serialize() const {
  auto args = make_args<PJRT_Executable_Serialize_Args>(PJRT_Executable_Serialize_Args_STRUCT_SIZE);
  args.executable = program_;
  plugin_->check(plugin_->api()->PJRT_Executable_Serialize(&args), "serialize");
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

std::optional<ProgramStats> Compiled::stats() const {
  if (!TPU_PJRT_HAS(*plugin_, PJRT_Executable_GetCompiledMemoryStats)) return std::nullopt;
  auto args = make_args<PJRT_Executable_GetCompiledMemoryStats_Args>(
      PJRT_Executable_GetCompiledMemoryStats_Args_STRUCT_SIZE);
  args.executable = program_;
  if (!implemented([&] {
        plugin_->check(plugin_->api()->PJRT_Executable_GetCompiledMemoryStats(&args), "program statistics");
      }))
    return std::nullopt;
  return ProgramStats{args.generated_code_size_in_bytes, args.argument_size_in_bytes,
                      args.output_size_in_bytes,         args.alias_size_in_bytes,
                      args.temp_size_in_bytes,           args.peak_memory_in_bytes};
}

std::map<std::string, double> Compiled::cost() const {
  std::map<std::string, double> out;
  if (!TPU_PJRT_HAS(*plugin_, PJRT_Executable_GetCostAnalysis)) return out;
  auto args =
      make_args<PJRT_Executable_GetCostAnalysis_Args>(PJRT_Executable_GetCostAnalysis_Args_STRUCT_SIZE);
  args.executable = program_;
  if (!implemented(
          [&] { plugin_->check(plugin_->api()->PJRT_Executable_GetCostAnalysis(&args), "cost analysis"); }))
    return out;
  for (const auto& [name, value] : from_pjrt(args.properties, args.num_properties)) {
    if (const auto* number = std::get_if<float>(&value)) out.emplace(name, *number);
    if (const auto* integer = std::get_if<int64_t>(&value)) out.emplace(name, static_cast<double>(*integer));
  }
  return out;
}

std::optional<std::string> Compiled::fingerprint() const {
  if (!TPU_PJRT_HAS(*plugin_, PJRT_Executable_Fingerprint)) return std::nullopt;
  auto args = make_args<PJRT_Executable_Fingerprint_Args>(PJRT_Executable_Fingerprint_Args_STRUCT_SIZE);
  args.executable = program_;
  if (!implemented(
          [&] { plugin_->check(plugin_->api()->PJRT_Executable_Fingerprint(&args), "fingerprint"); }))
    return std::nullopt;
  return std::string(args.executable_fingerprint, args.executable_fingerprint_size);
}

}  // namespace tpu::pjrt
