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

/// Thrown through the engine when Python has no decomposition.
struct NoDecomposition {};

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

/// A plan stays where it is once it was handed out: another thread may be running it.
struct Known {
  std::unique_ptr<OpPlan> plan;
  bool decomposes = false;
};

std::mutex mutex;
std::unordered_map<c10::OperatorName, Known>& known() {
  static auto* m = new std::unordered_map<c10::OperatorName, Known>;
  return *m;
}

// nullptr for operators that were found to have no decomposition.
const OpPlan* plan_for(const c10::OperatorHandle& op) {
  std::lock_guard lock(mutex);
  auto [at, fresh] = known().try_emplace(op.operator_name());
  Known& k = at->second;
  if (fresh && decomposer() && is_candidate(op.schema())) {
    const c10::FunctionSchema& schema = op.schema();
    try {
      k.plan = traced_plan(schema);
    } catch (const Error& e) {
      log("fallback", e.what());
      return nullptr;
    }
    k.plan->trace = [&schema](const OpPlan& plan, const c10::Stack& stack) {
      const c10::Stack arguments(stack.end() - static_cast<int64_t>(plan.arguments.size()), stack.end());
      auto body = decomposer()(schema, arguments);
      if (!body) throw NoDecomposition();
      return body;
    };
    k.decomposes = true;
  }
  return k.decomposes ? k.plan.get() : nullptr;
}

void forget(const c10::OperatorHandle& op) {
  std::lock_guard lock(mutex);
  known()[op.operator_name()].decomposes = false;
}

}  // namespace

void set_decomposer(Decomposer d) { decomposer() = std::move(d); }

bool run_decomposed(const c10::OperatorHandle& op, c10::Stack* stack) {
  const OpPlan* plan = plan_for(op);
  if (!plan) return false;
  try {
    run(*plan, stack);
    counter("decomposed")++;
    return true;
  } catch (const NoDecomposition&) {
    forget(op);
    return false;
  }
}

}  // namespace tpu::torch_shim
