// A loaded PJRT plugin: the shared object and its function table. Struct sizes and extensions are checked
// here only.
#pragma once

#include <memory>
#include <string>

#include "pjrt_c_api.h"

namespace tpu::pjrt {

class Plugin {
 public:
  /// Loads the plugin at `path` once a process (a second call gives the same object) and initialises it.
  /// Error(Unavailable) says what was tried: file missing, no GetPjrtApi, API version too old, initialisation
  /// failed.
  static std::shared_ptr<Plugin> load(const std::string& path);

  const std::string& path() const { return path_; }
  int api_major() const { return api_->pjrt_api_version.major_version; }
  int api_minor() const { return api_->pjrt_api_version.minor_version; }
  const PJRT_Api* api() const { return api_; }

  /// The extension of this type (a PJRT_Extension_Type, or a number newer than our header), or nullptr.
  const PJRT_Extension_Base* extension(int type) const;
  /// A plugin attribute as text ("" when the plugin has none of that name), e.g. "xla_version",
  /// "stablehlo_current_version".
  std::string attribute(const std::string& name) const;

  /// Throws the core's Error for a PJRT_Error (and frees it); returns for nullptr. `what` names the call.
  void check(PJRT_Error* error, const char* what) const;

 private:
  Plugin(std::string path, const PJRT_Api* api);
  std::string path_;
  const PJRT_Api* api_;
};

/// False once the process runs its exit handlers: a plugin may already have destroyed statics of its own, so
/// destructors that run later (of our statics) leave it alone and the operating system frees what they held.
bool plugins_usable();

/// A PJRT argument struct of the right size, all other bytes zero: `auto args =
/// make_args<PJRT_X_Args>(PJRT_X_Args_STRUCT_SIZE)`.
template <typename Args>
Args make_args(size_t struct_size) {
  Args args{};
  args.struct_size = struct_size;
  return args;
}

/// True when the plugin's table is long enough to hold `field` and has it: older plugins have shorter tables.
#define TPU_PJRT_HAS(plugin, field)                                                            \
  ((plugin).api()->struct_size >= offsetof(PJRT_Api, field) + sizeof((plugin).api()->field) && \
   (plugin).api()->field != nullptr)

}  // namespace tpu::pjrt
