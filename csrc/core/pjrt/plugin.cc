#include "core/pjrt/plugin.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/base/error.h"
#include "core/pjrt/named_value.h"

namespace tpu::pjrt {
namespace {

constexpr int kOldestMinor = 40;  // first API with everything the core cannot do without

std::atomic<bool> exiting{false};

// Never destroyed: events, buffers and plugin threads refer to plugins until the process is gone.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Plugin>> by_path;
};
Registry& registry() {
  static auto* plugins = new Registry;
  return *plugins;
}

constexpr const char* kAdvice =
    "Set TORCH_TPU_PJRT_PLUGIN to a PJRT plugin (.so) for this machine, or unset it to use the default one.";

[[noreturn]] void unavailable(const std::string& path, const std::string& why) {
  throw Error(Code::Unavailable, "", text("cannot load the PJRT plugin '", path, "': ", why, ". ", kAdvice));
}

const PJRT_Api* open(const std::string& path) {
  // Read by the plugin's logging when it is loaded. Below fatal it logs what it also returns as an error, and
  // pages about harmless CPU features at every deserialization.
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", /*overwrite=*/0);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* fault = dlerror();
    unavailable(path, text("it is not a loadable shared object (", fault ? fault : "no reason given", ")"));
  }
  auto entry = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  if (!entry) unavailable(path, "it has no function GetPjrtApi, so it is not a PJRT plugin");
  const PJRT_Api* api = entry();
  constexpr size_t kHead = offsetof(PJRT_Api, pjrt_api_version) + sizeof(PJRT_Api_Version);
  if (!api || api->struct_size < kHead) unavailable(path, "GetPjrtApi returned no function table");
  const PJRT_Api_Version& version = api->pjrt_api_version;
  if (version.major_version != 0 || version.minor_version < kOldestMinor)
    unavailable(path, text("it has PJRT API version ", version.major_version, ".", version.minor_version,
                           ", but 0.", kOldestMinor, " or a later 0.x is needed (built against ",
                           PJRT_API_MAJOR, ".", PJRT_API_MINOR, ")"));
  return api;
}

Code code_of(PJRT_Error_Code code) {
  switch (code) {
    case PJRT_Error_Code_RESOURCE_EXHAUSTED:
      return Code::OutOfMemory;
    case PJRT_Error_Code_INVALID_ARGUMENT:
      return Code::InvalidArgument;
    case PJRT_Error_Code_UNIMPLEMENTED:
      return Code::Unimplemented;
    case PJRT_Error_Code_UNAVAILABLE:
      return Code::Unavailable;
    default:
      return Code::Internal;
  }
}

}  // namespace

bool plugins_usable() { return !exiting.load(std::memory_order_acquire); }

std::shared_ptr<Plugin> Plugin::load(const std::string& path) {
  std::error_code fault;
  if (!std::filesystem::exists(path, fault)) unavailable(path, "there is no such file");
  if (std::filesystem::is_directory(path, fault)) unavailable(path, "it is a folder");
  const std::string file = std::filesystem::canonical(path, fault).string();

  Registry& plugins = registry();
  std::lock_guard lock(plugins.mutex);
  auto& plugin = plugins.by_path[file];
  if (plugin) return plugin;
  std::shared_ptr<Plugin> loaded(new Plugin(file, open(file)));
  auto args = make_args<PJRT_Plugin_Initialize_Args>(PJRT_Plugin_Initialize_Args_STRUCT_SIZE);
  try {
    loaded->check(loaded->api_->PJRT_Plugin_Initialize(&args), "initialisation");
  } catch (const Error& error) {
    unavailable(path, error.what());
  }
  // Registered after the plugin's statics came to life, so it runs before they die.
  std::atexit([] { exiting.store(true, std::memory_order_release); });
  return plugin = loaded;
}

Plugin::Plugin(std::string path, const PJRT_Api* api) : path_(std::move(path)), api_(api) {}

const PJRT_Extension_Base* Plugin::extension(int type) const {
  for (const PJRT_Extension_Base* node = api_->extension_start; node; node = node->next) {
    // Not read as the enum: a newer plugin has extensions that our header's enum does not.
    unsigned have = 0;
    static_assert(sizeof(have) == sizeof(node->type));
    std::memcpy(&have, &node->type, sizeof(have));
    if (have == static_cast<unsigned>(type)) return node;
  }
  return nullptr;
}

std::string Plugin::attribute(const std::string& name) const {
  auto args = make_args<PJRT_Plugin_Attributes_Args>(PJRT_Plugin_Attributes_Args_STRUCT_SIZE);
  check(api_->PJRT_Plugin_Attributes(&args), "plugin attributes");
  const auto attributes = from_pjrt(args.attributes, args.num_attributes);
  const auto at = attributes.find(name);
  return at == attributes.end() ? "" : to_text(at->second);
}

void Plugin::check(PJRT_Error* error, const char* what) const {
  if (!error) return;
  auto message = make_args<PJRT_Error_Message_Args>(PJRT_Error_Message_Args_STRUCT_SIZE);
  message.error = error;
  api_->PJRT_Error_Message(&message);
  const std::string said(message.message, message.message_size);

  auto code = make_args<PJRT_Error_GetCode_Args>(PJRT_Error_GetCode_Args_STRUCT_SIZE);
  code.error = error;
  code.code = PJRT_Error_Code_UNKNOWN;
  PJRT_Error* nested = api_->PJRT_Error_GetCode(&code);

  for (PJRT_Error* each : {nested, error}) {
    auto destroy = make_args<PJRT_Error_Destroy_Args>(PJRT_Error_Destroy_Args_STRUCT_SIZE);
    destroy.error = each;
    if (each) api_->PJRT_Error_Destroy(&destroy);
  }
  throw Error(code_of(code.code), what, said);
}

}  // namespace tpu::pjrt
