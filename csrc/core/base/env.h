// The registry of environment variables: every variable the project reads is declared here, typed and
// documented. `python -m torch_tpu env` and docs/environment.md are printed from this table.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tpu::env {

struct Variable {
  const char* name;
  const char* fallback;  // the value used when it is not set
  const char* meaning;
};

/// All variables, in the order they are documented.
std::span<const Variable> variables();

/// The value now, or the fallback. Throws Error(Internal) for a name that is not in the table.
std::string get(const char* name);
/// The same as an integer; Error(Value) names the variable when the text is no integer.
int64_t get_int(const char* name);

}  // namespace tpu::env
