#include "torch/decompose.h"

#include <mutex>
#include <unordered_map>

#include "core/base/log.h"
#include "torch/engine.h"

namespace tpu::torch_shim {
namespace {

Decomposer& decomposer() {
  static auto* d = new Decomposer;
  return *d;
}

bool is_candidate(const c10::FunctionSchema& schema) {
  if (schema.is_mutable() || schema.returns().empty()) return false;
  for (const c10::Argument& r : schema.returns()) {
    const auto kind = r.type()->kind();
    if (kind == c10::TypeKind::TensorType) continue;
    if (kind != c10::TypeKind::ListType ||
        r.type()->expect<c10::ListType>()->getElementType()->kind() != c10::TypeKind::TensorType)
      return false;
  }
  return true;
}

// nullptr for operators that cannot be traced. A plan stays where it is once it was handed out.
const OpPlan* plan_for(const c10::OperatorHandle& op) {
  static std::mutex mutex;
  static auto* plans = new std::unordered_map<c10::OperatorName, std::unique_ptr<OpPlan>>;
  std::lock_guard lock(mutex);
  auto [at, fresh] = plans->try_emplace(op.operator_name());
  if (fresh && decomposer() && is_candidate(op.schema())) {
    const c10::FunctionSchema& schema = op.schema();
    try {
      at->second = traced_plan(schema);
    } catch (const Error& e) {
      log("fallback", e.what());
      return nullptr;
    }
    at->second->trace = [&schema](const OpPlan& plan, const c10::Stack& stack) {
      return decomposer()(schema, {stack.end() - static_cast<int64_t>(plan.arguments.size()), stack.end()});
    };
  }
  return at->second.get();
}

}  // namespace

void set_decomposer(Decomposer d) { decomposer() = std::move(d); }

bool run_decomposed(const c10::OperatorHandle& op, c10::Stack* stack) {
  const OpPlan* plan = plan_for(op);
  if (!plan || !run(*plan, stack)) return false;
  counter("decomposed")++;
  return true;
}

}  // namespace tpu::torch_shim
