#include "core/pjrt/named_value.h"

#include "core/base/error.h"
#include "core/pjrt/plugin.h"

namespace tpu::pjrt {
namespace {

Attribute value_of(const PJRT_NamedValue& value) {
  switch (value.type) {
    case PJRT_NamedValue_kString:
      return std::string(value.string_value, value.value_size);
    case PJRT_NamedValue_kInt64:
      return value.int64_value;
    case PJRT_NamedValue_kInt64List:
      return std::vector<int64_t>(value.int64_array_value, value.int64_array_value + value.value_size);
    case PJRT_NamedValue_kFloat:
      return value.float_value;
    case PJRT_NamedValue_kBool:
      return value.bool_value;
  }
  return std::string();  // a type that is newer than our header
}

}  // namespace

PJRT_NamedValue to_pjrt(const std::string& name, const Option& option) {
  auto value = make_args<PJRT_NamedValue>(PJRT_NamedValue_STRUCT_SIZE);
  value.name = name.data();
  value.name_size = name.size();
  value.value_size = 1;
  if (const auto* integer = std::get_if<int64_t>(&option)) {
    value.type = PJRT_NamedValue_kInt64;
    value.int64_value = *integer;
  } else if (const auto* flag = std::get_if<bool>(&option)) {
    value.type = PJRT_NamedValue_kBool;
    value.bool_value = *flag;
  } else if (const auto* number = std::get_if<float>(&option)) {
    value.type = PJRT_NamedValue_kFloat;
    value.float_value = *number;
  } else {
    const auto& string = std::get<std::string>(option);
    value.type = PJRT_NamedValue_kString;
    value.string_value = string.data();
    value.value_size = string.size();
  }
  return value;
}

std::vector<PJRT_NamedValue> to_pjrt(const std::map<std::string, Option>& options) {
  std::vector<PJRT_NamedValue> values;
  values.reserve(options.size());
  for (const auto& [name, option] : options) values.push_back(to_pjrt(name, option));
  return values;
}

std::map<std::string, Attribute> from_pjrt(const PJRT_NamedValue* values, size_t count) {
  std::map<std::string, Attribute> out;
  for (size_t i = 0; i < count; ++i)
    out.emplace(std::string(values[i].name, values[i].name_size), value_of(values[i]));
  return out;
}

std::string to_text(const Attribute& value) {
  if (const auto* string = std::get_if<std::string>(&value)) return *string;
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<float>(&value)) return text(*number);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  std::string joined;
  for (int64_t n : std::get<std::vector<int64_t>>(value)) joined += text(joined.empty() ? "" : ".", n);
  return joined;
}

}  // namespace tpu::pjrt
