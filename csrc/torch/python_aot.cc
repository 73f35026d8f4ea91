#include "torch/python_aot.h"

#include <pybind11/stl.h>
#include <torch/csrc/DynamicTypes.h>

#include <optional>

#include "core/pjrt/topology.h"
#include "core/runtime/runtime.h"
#include "torch/convert.h"
#include "torch/engine.h"

namespace py = pybind11;

namespace tpu::torch_shim {
namespace {

using release = py::call_guard<py::gil_scoped_release>;

ops::Platform platform_named(const std::string& name) {
  if (name == "tpu") return ops::Platform::Tpu;
  if (name == "cpu") return ops::Platform::Cpu;
  throw Error(Code::Value, "", text("platform '", name, "': expected tpu or cpu"));
}

py::object python_dtype(DType dtype) {
  return py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(torch::getTHPDtype(to_torch(dtype))));
}

py::object stats_of(const pjrt::Compiled& program) {
  const auto stats = program.stats();
  if (!stats) return py::none();
  py::dict out;
  out["code"] = stats->code_bytes, out["arguments"] = stats->argument_bytes;
  out["outputs"] = stats->output_bytes, out["aliased"] = stats->alias_bytes;
  out["temporary"] = stats->temp_bytes, out["peak"] = stats->peak_bytes;
  return out;
}

std::vector<std::string> operators_of(const runtime::Recorded& r) {
  std::vector<std::string> names;
  for (const graph::Node& n : r.graph.nodes) names.push_back(n.op->name);
  return names;
}

py::list inputs_of(const runtime::Recorded& r) {
  py::list dtypes;
  for (const graph::Input& i : r.graph.inputs) dtypes.append(python_dtype(i.layout.dtype));
  return dtypes;
}

py::list results_of(const runtime::Recorded& r) {
  py::list dtypes;
  for (const graph::Node& n : r.graph.nodes)
    for (const hlo::Type& t : n.results)
      if (!graph::is_undefined(t)) dtypes.append(python_dtype(t.dtype));
  return dtypes;
}

/// Records between __enter__ and __exit__.
class Recording {
 public:
  explicit Recording(const std::string& platform) : target_(platform_named(platform)) {}
  void enter() {
    py::gil_scoped_release unlocked;
    auto& runtime = runtime::Runtime::get();
    runtime.start_recording(target_);
    clear_programs();
  }
  void exit() {
    py::gil_scoped_release unlocked;
    recorded_ = runtime::Runtime::get().finish_recording();
    clear_programs();
  }
  const std::vector<runtime::Recorded>& modules() const { return recorded_; }

 private:
  ops::Platform target_;
  std::vector<runtime::Recorded> recorded_;
};

}  // namespace

void bind_aot(py::module_& m) {
  py::class_<pjrt::Compiled>(m, "Compiled", "A compiled program that is not loaded on a device.")
      .def("stats", &stats_of, "Bytes of device memory by use, or None.")
      .def("cost", &pjrt::Compiled::cost, "The compiler's estimates, by XLA's names.")
      .def("serialize", [](const pjrt::Compiled& program) { return py::bytes(program.serialize()); });

  py::class_<pjrt::Topology>(m, "Topology", "A slice of accelerators by name, without the hardware.")
      .def(py::init([](const std::string& plugin, const std::string& name) {
             return pjrt::Topology::create(pjrt::Plugin::load(plugin), name);
           }),
           py::arg("plugin"), py::arg("name"), release())
      .def_property_readonly("platform_version", &pjrt::Topology::platform_version)
      .def_property_readonly("attributes", &pjrt::Topology::attributes)
      .def("__len__", &pjrt::Topology::device_count)
      .def("device_kind", &pjrt::Topology::device_kind)
      .def("device_id", &pjrt::Topology::device_id)
      .def("device_attributes", &pjrt::Topology::device_attributes)
      .def(
          "compile",
          [](const pjrt::Topology& topology, const std::string& module) {
            return topology.compile(module, {});
          },
          release(), "Compiles the text of a module for one device. May end the process.");

  using runtime::Recorded;
  py::class_<Recorded>(m, "Recorded", "A program that was lowered and not compiled.")
      .def_readonly("why", &Recorded::why, "The call, with the sizes of its tensors.")
      .def_property_readonly("operators", &operators_of, "The table's entries it is made of, in order.")
      .def_property_readonly("inputs", &inputs_of, "The dtypes of the tensors it reads.")
      .def_property_readonly("results", &results_of, "The dtypes of all that its operators make.")
      .def_readonly("module", &Recorded::module, "StableHLO text; empty when the lowering failed.")
      .def_property_readonly("error", [](const Recorded& r) {
        return r.error ? std::optional<std::string>(r.error->what()) : std::nullopt;
      });

  py::class_<Recording>(
      m, "Recording",
      "A context in which programs are lowered for a platform and kept, not compiled or run: "
      "results are zeros. No other thread may compute meanwhile.")
      .def(py::init<const std::string&>(), py::arg("platform"))
      .def("__enter__",
           [](Recording& r) -> Recording& {
             r.enter();
             return r;
           })
      .def("__exit__", [](Recording& r, const py::args&) { r.exit(); })
      .def_property_readonly("modules", &Recording::modules);

  m.def(
      "table",
      [] {
        std::vector<std::string> names;
        for (const auto& [name, op] : ops::Table::get().all()) names.push_back(name);
        return names;
      },
      "The names of the operator table's entries.");
}

}  // namespace tpu::torch_shim
