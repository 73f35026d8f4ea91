#include "torch/python_capture.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <pybind11/complex.h>
#include <pybind11/stl.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include "torch/capture.h"
#include "torch/convert.h"
#include "torch/decompose.h"

namespace py = pybind11;

namespace tpu::torch_shim {
namespace {

/// A value of the graph among a node's arguments, as Python passes it.
struct ValueRef {
  int number;
};

ops::Number to_number(const py::handle& v) {
  ops::Number n;
  if (py::isinstance<py::bool_>(v)) {
    n.dtype = DType::Bool, n.integer = v.cast<bool>(), n.value = static_cast<double>(n.integer);
  } else if (py::isinstance<py::int_>(v)) {
    n.dtype = DType::S64, n.integer = v.cast<int64_t>(), n.value = static_cast<double>(n.integer);
  } else if (PyComplex_Check(v.ptr())) {
    n.dtype = DType::C128, n.value = v.cast<std::complex<double>>();
  } else {
    n.dtype = DType::F64, n.value = v.cast<double>(), n.integer = static_cast<int64_t>(n.value.real());
  }
  return n;
}

template <typename T>
std::vector<T> to_list(const py::handle& v) {
  if (py::isinstance<py::int_>(v) || py::isinstance<py::float_>(v)) return {v.cast<T>()};
  return v.cast<std::vector<T>>();
}

ops::Arg to_arg(const py::handle& v, const Argument& a) {
  if (v.is_none()) return std::monostate();
  switch (a.kind) {
    case Kind::Tensor:
      if (py::isinstance<ValueRef>(v)) return ops::Ref{v.cast<ValueRef>().number};
      return to_number(v);
    case Kind::TensorList: {
      std::vector<ops::Ref> refs;
      for (const py::handle& e : v) refs.push_back({e.is_none() ? -1 : e.cast<ValueRef>().number});
      return refs;
    }
    case Kind::Scalar:
    case Kind::Float:
      return to_number(v);
    case Kind::ScalarList: {
      std::vector<ops::Number> list;
      for (const py::handle& e : v) list.push_back(to_number(e));
      return list;
    }
    case Kind::Int:
      return v.cast<int64_t>();
    case Kind::Bool:
      return v.cast<bool>();
    case Kind::IntList:
      return to_list<int64_t>(v);
    case Kind::BoolList:
      return v.cast<std::vector<bool>>();
    case Kind::FloatList:
      return to_list<double>(v);
    case Kind::Str:
      return v.cast<std::string>();
    case Kind::DType:
      return to_core(reinterpret_cast<THPDtype*>(v.ptr())->scalar_type);
    case Kind::Device:
    case Kind::Generator:
    case Kind::Ignored:
      return std::monostate();
  }
  return std::monostate();
}

/// add_node("add.Tensor", (arguments in schema order), [(dtype, sizes) or None, ...]) -> numbers of the
/// results
std::vector<int> add_node(Capture& capture, const std::string& name, const py::sequence& arguments,
                          const py::sequence& results) {
  const size_t dot = name.find('.');
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
      ("aten::" + name.substr(0, dot)).c_str(), dot == std::string::npos ? "" : name.substr(dot + 1).c_str());
  const std::unique_ptr<OpPlan> plan = traced_plan(op.schema());
  std::vector<ops::Arg> args;
  for (size_t i = 0; i < plan->arguments.size(); i++)
    args.push_back(to_arg(arguments[i], plan->arguments[i]));
  std::vector<hlo::Type> types;
  for (const py::handle& r : results) {
    if (r.is_none()) {
      types.push_back(graph::undefined());
      continue;
    }
    const auto pair = r.cast<py::tuple>();
    types.push_back({to_core(reinterpret_cast<THPDtype*>(pair[0].ptr())->scalar_type),
                     pair[1].cast<std::vector<int64_t>>()});
  }
  return capture.node(name, *plan->names, std::move(args), std::move(types));
}

void add_output(Capture& capture, int value, const py::object& dtype, std::vector<int64_t> sizes,
                std::vector<int64_t> strides) {
  capture.output(value, reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type, std::move(sizes),
                 std::move(strides));
}

py::list run(const Capture& capture, const py::sequence& inputs) {
  std::vector<at::Tensor> tensors;
  for (const py::handle& t : inputs) {
    TORCH_CHECK_TYPE(THPVariable_Check(t.ptr()), "a captured graph takes tensors");
    tensors.push_back(THPVariable_Unpack(t.ptr()));
  }
  std::vector<at::Tensor> results;
  {
    py::gil_scoped_release release;
    results = capture.run(std::move(tensors));
  }
  py::list out;
  for (at::Tensor& t : results) out.append(py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(t))));
  return out;
}

/// `decompose(name, overload, arguments)` gives a finished Capture over the tensors among the arguments, or
/// None.
void set_python_decomposer(py::object decompose) {
  auto& kept = *new py::object(std::move(decompose));  // for the life of the process
  set_decomposer(
      [&kept](const c10::FunctionSchema& schema, const c10::Stack& arguments) -> std::shared_ptr<const Body> {
        py::gil_scoped_acquire gil;
        py::list list;
        for (const c10::IValue& v : arguments) list.append(torch::jit::toPyObject(v));
        const py::object made = kept(schema.name(), schema.overload_name(), list);
        return made.is_none() ? nullptr : made.cast<Capture&>().body();
      });
}

}  // namespace

void bind_capture(py::module_& m) {
  py::class_<ValueRef>(m, "Value", "A value of a graph.")
      .def(py::init<int>())
      .def_readonly("number", &ValueRef::number);
  py::class_<Capture>(m, "Capture", "A graph under construction, then a callable program.")
      .def(py::init<>())
      .def("input", &Capture::input, "The number of the next tensor input.")
      .def("node", &add_node)
      .def("output", &add_output)
      .def("finish", &Capture::finish)
      .def("__call__", &run);
  m.def("set_decomposer", &set_python_decomposer);
  m.def("has_entry", [](const std::string& name) { return ops::Table::get().find(name) != nullptr; });
}

}  // namespace tpu::torch_shim
