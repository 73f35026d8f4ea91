#include "torch/out_forms.h"

#include <ATen/native/Resize.h>
#include <torch/library.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "torch/schema.h"

namespace tpu::torch_shim {
namespace {

using Handle = std::optional<c10::OperatorHandle>;

/// The out= forms that are running on this thread: a functional form that calls its own comes back here.
class Running {
 public:
  explicit Running(const c10::OperatorName& name) { names().push_back(name); }
  ~Running() { names().pop_back(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  static bool has(const c10::OperatorName& name) {
    return std::find(names().begin(), names().end(), name) != names().end();
  }

 private:
  static std::vector<c10::OperatorName>& names() {
    thread_local std::vector<c10::OperatorName> all;
    return all;
  }
};

// Structured operators always call their out= form.
bool runs_alone(const c10::OperatorHandle& op) {
  return !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

Handle find_functional(const c10::FunctionSchema& schema) {
  if (!has_out(schema)) return std::nullopt;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name != schema.name()) continue;
    const Handle op = c10::Dispatcher::singleton().findSchema(name);
    if (op && !has_out(op->schema()) && same_arguments(schema, op->schema()) && runs_alone(*op)) return op;
  }
  return std::nullopt;
}

Handle functional_of(const c10::OperatorHandle& op) {
  static std::mutex mutex;
  static auto* known = new std::unordered_map<c10::OperatorName, Handle>;
  std::lock_guard lock(mutex);
  const auto [at, fresh] = known->try_emplace(op.operator_name());
  if (fresh) at->second = find_functional(op.schema());
  return at->second;
}

void assign(const at::Tensor& out, const at::Tensor& result) {
  TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()), "result type ", result.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  at::native::resize_output(out, result.sizes());
  out.copy_(result);
}

}  // namespace

bool run_out_form(const c10::OperatorHandle& op, c10::Stack* stack) {
  if (Running::has(op.operator_name())) return false;
  const Handle functional = functional_of(op);
  if (!functional) return false;
  const Running running(op.operator_name());
  const auto& arguments = op.schema().arguments();
  const size_t base = stack->size() - arguments.size();
  c10::Stack inner, outs;
  for (size_t i = 0; i < arguments.size(); i++)
    (arguments[i].is_out() ? outs : inner).push_back((*stack)[base + i]);
  functional->callBoxed(&inner);
  TORCH_INTERNAL_ASSERT(inner.size() == outs.size(), op.schema().name());
  for (size_t i = 0; i < outs.size(); i++) {
    if (outs[i].isTensor()) {
      assign(outs[i].toTensor(), inner[i].toTensor());
      continue;
    }
    const auto to = outs[i].toTensorVector(), from = inner[i].toTensorVector();
    TORCH_CHECK(to.size() == from.size(), op.schema().name(), ": expected ", from.size(),
                " out tensors, got ", to.size());
    for (size_t k = 0; k < to.size(); k++) assign(to[k], from[k]);
  }
  stack->resize(base);
  // Those of list operators return nothing.
  if (!op.schema().returns().empty())
    for (c10::IValue& v : outs) stack->push_back(std::move(v));
  return true;
}

}  // namespace tpu::torch_shim
