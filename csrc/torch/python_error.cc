#include "torch/python_error.h"

#include <pybind11/pybind11.h>
#include <torch/csrc/Exceptions.h>

namespace py = pybind11;

namespace tpu::torch_shim {

std::optional<std::string> assertion_text(const std::exception& error) {
  // PyTorch throws the one, pybind11 the other.
  py::handle value;
  if (const auto* thrown = dynamic_cast<const python_error*>(&error)) value = thrown->value;
  if (const auto* thrown = dynamic_cast<const py::error_already_set*>(&error)) value = thrown->value();
  if (!value) return std::nullopt;
  py::gil_scoped_acquire gil;
  if (!PyObject_IsInstance(value.ptr(), PyExc_AssertionError)) return std::nullopt;
  return py::str(value).cast<std::string>();
}

}  // namespace tpu::torch_shim
