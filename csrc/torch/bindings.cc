// torch_tpu._C: what Python asks of the runtime. The only file that includes Python.
#include <ATen/core/CachingHostAllocator.h>
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Generator.h>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/runtime/fork.h"
#include "core/runtime/runtime.h"
#include "torch/device.h"
#include "torch/engine.h"
#include "torch/generator.h"
#include "torch/memory.h"
#include "torch/python_aot.h"
#include "torch/python_capture.h"
#include "torch/stream.h"

namespace py = pybind11;

namespace tpu::torch_shim {
namespace {

/// The text of a Python exception, as a core error of the nearest kind.
Error from_python(py::error_already_set& e) {
  const Code code = e.matches(PyExc_ValueError) ? Code::Value : Code::Unavailable;
  return Error(code, "", py::str(e.value()));
}

pjrt::Option to_option(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) return value.cast<int64_t>();
  if (py::isinstance<py::float_>(value)) return value.cast<float>();
  return value.cast<std::string>();
}

/// Python callables are kept for the life of the process: they must not be released after the interpreter is
/// gone.
py::object& kept(py::object object) { return *new py::object(std::move(object)); }

/// `choose()` returns (platform, plugin path, options, notice).
void set_chooser(py::object choose) {
  runtime::Runtime::set_chooser([&choose = kept(std::move(choose))] {
    py::gil_scoped_acquire gil;
    try {
      const auto chosen = choose().cast<std::tuple<std::string, std::string, py::dict, std::string>>();
      runtime::Choice choice{std::get<0>(chosen), std::get<1>(chosen), {}, std::get<3>(chosen)};
      for (const auto& [name, value] : std::get<2>(chosen))
        choice.options[name.cast<std::string>()] = to_option(value);
      return choice;
    } catch (py::error_already_set& e) {
      throw from_python(e);
    }
  });
}

/// `probe()` returns how many devices there are, or -1 when only a client can tell.
void set_probe(py::object probe) {
  set_device_probe([&probe = kept(std::move(probe))] {
    py::gil_scoped_acquire gil;
    try {
      return probe().cast<int>();
    } catch (py::error_already_set& e) {
      throw from_python(e);
    }
  });
}

py::dict memory_statistics(int device) {
  const runtime::MemoryUse m = memory_use(device);
  py::dict out;
  out["allocated"] = m.allocated, out["peak"] = m.peak;
  out["total_allocated"] = m.total_allocated, out["total_freed"] = m.total_freed;
  out["live"] = m.live, out["peak_live"] = m.peak_live;
  out["allocations"] = m.allocations, out["frees"] = m.frees;
  return out;
}

py::dict host_memory_statistics() {
  const at::HostStats stats = at::getHostAllocator(at::kPrivateUse1)->get_stats();
  py::dict out;
  const auto add = [&](const char* name, const c10::CachingAllocator::Stat& s) {
    const std::string prefix = name;
    out[py::str(prefix + ".current")] = s.current, out[py::str(prefix + ".peak")] = s.peak;
    out[py::str(prefix + ".allocated")] = s.allocated, out[py::str(prefix + ".freed")] = s.freed;
  };
  add("allocated_bytes", stats.allocated_bytes);
  add("allocations", stats.allocations);
  return out;
}

void reset_host_memory_stats(bool peak) {
  at::HostAllocator* host = at::getHostAllocator(at::kPrivateUse1);
  peak ? host->reset_peak_stats() : host->reset_accumulated_stats();
}

py::object python_generator(int device) {
  return py::reinterpret_steal<py::object>(THPGenerator_Wrap(default_generator(device)));
}

std::vector<std::tuple<std::string, std::string, std::string, std::string>> environment() {
  std::vector<std::tuple<std::string, std::string, std::string, std::string>> rows;
  for (const env::Variable& v : env::variables())
    rows.emplace_back(v.name, env::get(v.name), v.fallback, v.meaning);
  return rows;
}

py::dict disk_usage() {
  cache::Disk disk = cache::Disk::from_environment();
  const cache::Disk::Usage usage = disk.usage();
  py::dict out;
  out["directory"] = disk.directory(), out["entries"] = usage.entries, out["bytes"] = usage.bytes;
  constexpr const char* modes[] = {"off", "readonly", "on"};
  out["mode"] = modes[static_cast<int>(disk.mode())];
  return out;
}

PyObject* exception_class(Code code) {
  switch (code) {
    case Code::Index:
      return PyExc_IndexError;
    case Code::Value:
      return PyExc_ValueError;
    case Code::Type:
      return PyExc_TypeError;
    case Code::Unimplemented:
      return PyExc_NotImplementedError;
    case Code::OutOfMemory:
      return py::module_::import("torch").attr("OutOfMemoryError").ptr();
    default:
      return PyExc_RuntimeError;
  }
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const Error& e) {
    py::set_error(exception_class(e.code), e.what());
  } catch (const c10::OutOfMemoryError& e) {
    py::set_error(exception_class(Code::OutOfMemory), e.what_without_backtrace());
  } catch (const c10::IndexError& e) {
    py::set_error(PyExc_IndexError, e.what_without_backtrace());
  } catch (const c10::ValueError& e) {
    py::set_error(PyExc_ValueError, e.what_without_backtrace());
  } catch (const c10::TypeError& e) {
    py::set_error(PyExc_TypeError, e.what_without_backtrace());
  } catch (const c10::NotImplementedError& e) {
    py::set_error(PyExc_NotImplementedError, e.what_without_backtrace());
  } catch (const c10::Error& e) {
    py::set_error(PyExc_RuntimeError, e.what_without_backtrace());
  }
}

void bind_runtime(py::module_& m) {
  using release = py::call_guard<py::gil_scoped_release>;
  m.def("set_chooser", &set_chooser, "Sets the callable that names the plugin to load.");
  m.def("set_probe", &set_probe, "Sets the callable that counts devices without starting the client.");
  m.def("start", [] { device_at(-1); }, release(), "Starts the client unless it has started.");
  m.def("started", &runtime::Runtime::started);
  m.def("forked", &runtime::forked, "True in a child that was forked after the client had started.");
  m.def("available", &available, release());
  m.def("device_count", &device_count, release());
  m.def("current_device", &current_device);
  m.def("set_current_device", &set_current_device, release());
  m.def("platform", [] { return device_at(-1).client().platform_name(); }, release());
  m.def("platform_version", [] { return device_at(-1).client().platform_version(); }, release());
  m.def(
      "device_kind", [](int i) { return device_at(i).client().device_kind(device_at(i).index()); },
      release());
  m.def(
      "device_description",
      [](int i) { return device_at(i).client().device_description(device_at(i).index()); }, release());
  m.def("device_id", [](int i) { return device_at(i).client().device_id(device_at(i).index()); }, release());
  m.def("default_generator", &python_generator);
  m.def("synchronize", [](int i) { synchronize_device(resolve_device(i)); }, release());
}

void bind_memory(py::module_& m) {
  using release = py::call_guard<py::gil_scoped_release>;
  m.def("memory_info", &free_and_total, release(), "(free, total) bytes of a device.");
  m.def("memory_statistics", &memory_statistics);
  m.def("reset_peak_memory_stats", [](int i) {
    if (runtime::Runtime::started()) device_at(i).reset_peak();
  });
  m.def("reset_accumulated_memory_stats", [](int i) {
    if (runtime::Runtime::started()) device_at(i).reset_accumulated();
  });
  m.def("host_memory_statistics", &host_memory_statistics);
  m.def("reset_host_memory_stats", &reset_host_memory_stats, "Of peaks (True) or totals (False).");
}

void bind_tools(py::module_& m) {
  m.def("counters", &counters);
  m.def(
      "slowest_compiles",
      [] {
        using Compiles = std::vector<std::pair<int64_t, std::string>>;
        const bool running = runtime::Runtime::started() && !runtime::forked();
        return running ? runtime::Runtime::get().slowest_compiles() : Compiles();
      },
      "(microseconds, what for) of the compiles that took longest.");
  m.def("cache_clear", &clear_programs, "Forgets the programs in memory.");
  m.def("environment", &environment, "(name, value, default, meaning) of every environment variable.");
  m.def("disk_usage", &disk_usage, "The compilation cache on disk: directory, entries, bytes, mode.");
  m.def(
      "disk_clear", [] { return cache::Disk::from_environment().clear(); },
      py::call_guard<py::gil_scoped_release>());
}

}  // namespace

PYBIND11_MODULE(_C, m) {
  register_table();
  m.doc() = "The runtime of the tpu device.";
  py::register_local_exception_translator(&translate);
  bind_runtime(m);
  bind_memory(m);
  bind_capture(m);
  bind_aot(m);
  bind_tools(m);
}

}  // namespace tpu::torch_shim
