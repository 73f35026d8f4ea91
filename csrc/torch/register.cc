// Which overloads the engine serves: every entry of the table, and the in-place and out= siblings its schema
// has.
#include <torch/library.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/log.h"
#include "torch/engine.h"
#include "torch/linalg.h"

namespace tpu::torch_shim {
namespace {

// Names and types agree, out= arguments aside.
bool same_arguments(const c10::FunctionSchema& sibling, const c10::FunctionSchema& functional) {
  size_t i = 0;
  for (const c10::Argument& a : sibling.arguments()) {
    if (a.is_out()) continue;
    if (i == functional.arguments().size()) return false;
    const c10::Argument& b = functional.arguments()[i++];
    if (a.name() != b.name() || *a.real_type() != *b.real_type()) return false;
  }
  return i == functional.arguments().size();
}

bool has_out(const c10::FunctionSchema& s) {
  for (const c10::Argument& a : s.arguments())
    if (a.is_out()) return true;
  return false;
}

bool writes_only_self(const c10::FunctionSchema& s) {
  for (const c10::Argument& a : s.arguments())
    if (a.alias_info() && a.alias_info()->isWrite() && a.name() != s.arguments()[0].name()) return false;
  return !s.arguments().empty() && s.arguments()[0].alias_info() && s.arguments()[0].alias_info()->isWrite();
}

// Entries for captured graphs only: in eager mode these are views (structural.cc), copies between devices
// (transfer.cc), or sized by values (ranges.cc).
bool is_structural(std::string_view base) {
  static const std::set<std::string_view> names = {"copy",
                                                   "arange",
                                                   "range",
                                                   "view",
                                                   "_unsafe_view",
                                                   "reshape",
                                                   "_reshape_alias",
                                                   "unsqueeze",
                                                   "squeeze",
                                                   "flatten",
                                                   "unflatten",
                                                   "view_as",
                                                   "alias",
                                                   "detach",
                                                   "lift_fresh",
                                                   "lift",
                                                   "contiguous",
                                                   "clone",
                                                   "expand",
                                                   "expand_as",
                                                   "permute",
                                                   "t",
                                                   "transpose",
                                                   "slice",
                                                   "select",
                                                   "split",
                                                   "unsafe_split",
                                                   "split_with_sizes",
                                                   "unsafe_split_with_sizes",
                                                   "unbind",
                                                   "as_strided",
                                                   "diagonal",
                                                   "unfold",
                                                   "view_as_real",
                                                   "view_as_complex",
                                                   "_to_copy"};
  return names.contains(base);
}

bool is_functional(const c10::FunctionSchema& s) { return !s.is_mutable(); }

// No result is an argument, whatever else the operator writes: its own Meta kernel tells the results' types.
bool results_are_new(const c10::FunctionSchema& s) {
  return std::none_of(s.returns().begin(), s.returns().end(),
                      [](const c10::Argument& r) { return r.alias_info() != nullptr; });
}

}  // namespace

void register_table() {
  auto& dispatcher = c10::Dispatcher::singleton();
  std::map<std::string, std::vector<c10::OperatorName>> overloads;  // by name without overload
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) overloads[name.name].push_back(name);

  // Never destroyed: its destructor would take the kernels away again.
  auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  std::set<std::string> registered;
  const auto add = [&](const c10::OperatorHandle& op, const ops::Op& entry,
                       std::optional<c10::OperatorHandle> functional) {
    std::string full =
        op.schema().name() + (op.schema().overload_name().empty() ? "" : "." + op.schema().overload_name());
    if (registered.contains(full)) return;
    if (op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1))
      return;  // a hand-written kernel in this folder
    std::shared_ptr<OpPlan> plan = make_plan(op.schema(), entry, std::move(functional));
    plan->prepare = prepare_for(full);
    if (std::find(plan->names->begin(), plan->names->end(), "check_errors") != plan->names->end())
      plan->around = run_checked;
    library->impl(full.substr(6).c_str(),
                  torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(plan)));
    registered.insert(std::move(full));
  };
  // Entries first, so that an entry of its own for an in-place form wins over the derived one.
  std::vector<std::pair<const ops::Op*, c10::OperatorHandle>> functionals;
  for (const auto& [name, entry] : ops::Table::get().all()) {
    const size_t dot = name.find('.');
    if (name.starts_with("tpu::") || is_structural(std::string_view(name).substr(0, dot))) continue;
    const std::string base = "aten::" + name.substr(0, dot);
    const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
    const auto op = dispatcher.findSchema({base, overload});
    if (!op) {
      log("dispatch", "this torch has no " + name);
      continue;
    }
    if (op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) {
      log("dispatch", name + " is a composite: its entry is not registered");
      continue;
    }
    add(*op, entry, results_are_new(op->schema()) ? std::optional<c10::OperatorHandle>(*op) : std::nullopt);
    if (is_functional(op->schema())) functionals.emplace_back(&entry, *op);
  }
  for (const auto& [entry, op] : functionals) {
    const std::string base = op.schema().name();
    for (const c10::OperatorName& sibling : overloads[base + "_"]) {
      const auto handle = dispatcher.findSchema(sibling);
      if (handle && !handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
          writes_only_self(handle->schema()) && same_arguments(handle->schema(), op.schema()))
        add(*handle, *entry, op);
    }
    for (const c10::OperatorName& sibling : overloads[base]) {
      const auto handle = dispatcher.findSchema(sibling);
      if (handle && has_out(handle->schema()) &&
          !handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
          same_arguments(handle->schema(), op.schema()))
        add(*handle, *entry, op);
    }
  }
  log("dispatch", std::to_string(registered.size()) + " overloads registered");
}

}  // namespace tpu::torch_shim
