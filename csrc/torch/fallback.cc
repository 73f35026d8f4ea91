// Operators that no entry serves run on the host: with one warning an operator, counted, and an error on
// request.
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <mutex>
#include <set>

#include "core/base/env.h"
#include "core/base/log.h"
#include "torch/decompose.h"
#include "torch/out_forms.h"

namespace tpu::torch_shim {
namespace {

void host_fallback(const c10::OperatorHandle& op, c10::Stack* stack) {
  if (run_decomposed(op, stack) || run_out_form(op, stack)) return;
  static const std::string mode = env::get("TORCH_TPU_FALLBACK");
  const c10::OperatorName& name = op.operator_name();
  const std::string full = name.name + (name.overload_name.empty() ? "" : "." + name.overload_name);
  TORCH_CHECK_NOT_IMPLEMENTED(
      mode != "error", full,
      " has no lowering for the tpu device and TORCH_TPU_FALLBACK=error forbids running it on the host");
  counter("fallbacks")++;
  counter("fallback:" + full)++;
  static std::mutex mutex;
  static auto* warned = new std::set<std::string>;
  bool fresh;
  {
    std::lock_guard lock(mutex);
    fresh = warned->insert(full).second;
  }
  if (fresh && mode != "quiet")
    TORCH_WARN(
        full,
        " has no lowering for the tpu device: it runs on the host, with copies to and from it each time. "
        "(TORCH_TPU_FALLBACK=error makes this an error, quiet hides this message.)");
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&host_fallback>());
}

}  // namespace
}  // namespace tpu::torch_shim
