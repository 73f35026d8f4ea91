// PJRT's named values: options that are passed to a plugin, attributes and figures that it gives back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "pjrt_c_api.h"

namespace tpu::pjrt {

using Option = std::variant<int64_t, bool, float, std::string>;
using Attribute = std::variant<int64_t, bool, float, std::string, std::vector<int64_t>>;

/// Refers to `name` and `option`, which must outlive it.
PJRT_NamedValue to_pjrt(const std::string& name, const Option& option);
std::vector<PJRT_NamedValue> to_pjrt(const std::map<std::string, Option>& options);
std::map<std::string, Attribute> from_pjrt(const PJRT_NamedValue* values, size_t count);
/// A list's numbers are joined with dots: "1.16.0".
std::string to_text(const Attribute& value);

}  // namespace tpu::pjrt
