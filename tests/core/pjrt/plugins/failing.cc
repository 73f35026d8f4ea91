// A PJRT plugin without a device: creating a client fails with the code the option "code" asks for.
#include <string>
#include <string_view>

#include "pjrt_c_api.h"

struct PJRT_Error {
  PJRT_Error_Code code;
  std::string message;
};

namespace {

void destroy(PJRT_Error_Destroy_Args* args) { delete args->error; }

void message(PJRT_Error_Message_Args* args) {
  args->message = args->error->message.data();
  args->message_size = args->error->message.size();
}

PJRT_Error* code(PJRT_Error_GetCode_Args* args) {
  args->code = args->error->code;
  return nullptr;
}

PJRT_Error* initialize(PJRT_Plugin_Initialize_Args*) {
#ifdef FAILING_TO_START
  return new PJRT_Error{PJRT_Error_Code_INTERNAL, "the firmware is on fire"};
#else
  return nullptr;
#endif
}

// Names of every kind of value, and one call that fails as asked.
PJRT_Error* attributes(PJRT_Plugin_Attributes_Args* args) {
  static const int64_t version[] = {1, 16, 2};
  static PJRT_NamedValue values[4] = {};
  constexpr std::string_view names[] = {"list", "whole", "flag", "string"};
  for (int i = 0; i < 4; ++i) {
    values[i].name = names[i].data();
    values[i].name_size = names[i].size();
    values[i].value_size = 1;
  }
  values[0].type = PJRT_NamedValue_kInt64List;
  values[0].int64_array_value = version;
  values[0].value_size = 3;
  values[1].type = PJRT_NamedValue_kInt64;
  values[1].int64_value = -7;
  values[2].type = PJRT_NamedValue_kBool;
  values[2].bool_value = true;
  values[3].type = PJRT_NamedValue_kString;
  values[3].string_value = "text and more";
  values[3].value_size = 4;
  args->attributes = values;
  args->num_attributes = 4;
  return nullptr;
}

PJRT_Error* create(PJRT_Client_Create_Args* args) {
  auto wanted = PJRT_Error_Code_FAILED_PRECONDITION;
  for (size_t i = 0; i < args->num_options; ++i)
    if (std::string_view(args->create_options[i].name, args->create_options[i].name_size) == "code")
      wanted = static_cast<PJRT_Error_Code>(args->create_options[i].int64_value);
  return new PJRT_Error{wanted, "the device is in use by process 4711"};
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api api = [] {
    PJRT_Api table{};
    // As short as an old plugin's: everything behind PJRT_Compile is missing.
    table.struct_size = offsetof(PJRT_Api, PJRT_Executable_OutputElementTypes);
    table.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
    table.pjrt_api_version.major_version = FAILING_MAJOR;
    table.pjrt_api_version.minor_version = FAILING_MINOR;
    table.PJRT_Error_Destroy = destroy;
    table.PJRT_Error_Message = message;
    table.PJRT_Error_GetCode = code;
    table.PJRT_Plugin_Initialize = initialize;
    table.PJRT_Plugin_Attributes = attributes;
    table.PJRT_Client_Create = create;
    return table;
  }();
  return &api;
}
