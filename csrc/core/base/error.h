// The one exception type of the core. The torch shim maps each code to the Python exception CPU torch raises.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace tpu {

enum class Code {
  InvalidArgument,  // RuntimeError
  Index,            // IndexError
  Value,            // ValueError
  Type,             // TypeError
  OutOfMemory,      // torch.OutOfMemoryError
  Unimplemented,    // NotImplementedError
  Unavailable,      // RuntimeError: no device, no plugin
  Internal,         // RuntimeError: a fault of ours or of the compiler
};

class Error : public std::runtime_error {
 public:
  /// `op` names the operator or part that failed ("" when there is none); it is prefixed to the text.
  Error(Code code, std::string op, const std::string& message)
      : std::runtime_error(op.empty() ? message : op + ": " + message), code(code), op(std::move(op)) {}

  Code code;
  std::string op;
};

/// Joins its arguments with operator<<, for error and log texts.
template <typename... Args>
std::string text(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

}  // namespace tpu
