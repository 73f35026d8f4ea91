// Exceptions that Python code, such as a Meta kernel written in it, has thrown through C++.
#pragma once

#include <exception>
#include <optional>
#include <string>

namespace tpu::torch_shim {

/// The text of a Python AssertionError; nullopt for every other exception.
std::optional<std::string> assertion_text(const std::exception& error);

}  // namespace tpu::torch_shim
