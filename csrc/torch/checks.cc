// What is checked or completed on the host before a call: what no program can refuse.
#include "torch/checks.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <c10/core/WrapDimMinimal.h>

#include <algorithm>
#include <map>

#include "torch/engine.h"
#include "torch/linalg.h"
#include "torch/sized.h"

namespace tpu::torch_shim {
namespace {

// A reduction that has no value for nothing.
void require_elements(const OpPlan& plan, c10::Stack& stack) {
  const at::Tensor& self = plan.argument(stack, "self").toTensor();
  if (self.numel() > 0) return;
  const std::string name = plan.name.substr(6, plan.name.find('.') - 6);
  const bool has_dim = std::find(plan.names->begin(), plan.names->end(), "dim") != plan.names->end();
  const c10::IValue dims = has_dim ? plan.argument(stack, "dim") : c10::IValue();
  if (dims.isNone() || (dims.isIntList() && dims.toIntVector().empty())) {
    TORCH_CHECK_INDEX(!name.starts_with("arg"), name,
                      "(): Expected reduction dim to be specified for input.numel() == 0.");
    TORCH_CHECK(
        false, name,
        "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
        "the 'dim' argument.");
  }
  for (const int64_t d : dims.isInt() ? std::vector<int64_t>{dims.toInt()} : dims.toIntVector()) {
    const int64_t dim = c10::maybe_wrap_dim(d, self.dim());
    TORCH_CHECK_INDEX(self.dim() == 0 || self.size(dim) > 0, name, "(): Expected reduction dim ", dim,
                      " to have non-zero size.");
  }
}

// CPU torch refuses a negative integer exponent of integers, whatever program there is for the others.
void refuse_negative_exponent(const OpPlan& plan, c10::Stack& stack) {
  const at::Tensor& self = plan.argument(stack, "self").toTensor();
  const c10::IValue& exponent = plan.argument(stack, "exponent");
  TORCH_CHECK(!(c10::isIntegralType(self.scalar_type(), true) && exponent.isInt() && exponent.toInt() < 0),
              "Integers to negative integer powers are not allowed.");
}

// How many draws multinomial makes; whether its weights are probabilities is not read back.
void check_draws(const OpPlan& plan, c10::Stack& stack) {
  const at::Tensor& self = plan.argument(stack, "self").toTensor();
  const int64_t draws = plan.argument(stack, "num_samples").toInt();
  TORCH_CHECK(draws > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(self.dim() == 0 || plan.argument(stack, "replacement").toBool() || draws <= self.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
}

// PyTorch hands these operators conjugated views as they are; the device reads memory.
void resolve_conjugates(const OpPlan& plan, c10::Stack& stack) {
  const size_t base = stack.size() - plan.arguments.size();
  for (size_t i = 0; i < plan.arguments.size(); i++) {
    c10::IValue& v = stack[base + i];
    if (!v.isTensor() || !v.toTensor().defined() || !v.toTensor().is_conj()) continue;
    TORCH_CHECK_NOT_IMPLEMENTED(!plan.arguments[i].written, plan.name,
                                ": cannot write to a conjugated view; use ", "resolve_conj() first");
    v = v.toTensor().resolve_conj();
  }
}

// The arguments of a random operator, by PyTorch's own checks: the same call on a host tensor without
// elements.
void check_distribution(const OpPlan& plan, c10::Stack& stack) {
  const at::Tensor& self = plan.argument(stack, "self").toTensor();
  const at::Tensor nothing = at::detail::empty_cpu({0}, self.options().device(c10::kCPU));
  c10::Stack host;
  const size_t base = stack.size() - plan.arguments.size();
  for (size_t i = 0; i < plan.arguments.size(); i++) {
    const c10::IValue& v = stack[base + i];
    if (v.isTensor())
      host.emplace_back(nothing);
    else
      host.push_back(v.isGenerator() ? c10::IValue() : v);
  }
  const size_t dot = plan.name.find('.');
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
      plan.name.substr(0, dot).c_str(), dot == std::string::npos ? "" : plan.name.substr(dot + 1).c_str());
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &host);
}

}  // namespace

void check_overlaps(const OpPlan& plan, const c10::Stack& stack) {
  const size_t base = stack.size() - plan.arguments.size();
  const auto is_tensor = [&](size_t i) {
    return stack[base + i].isTensor() && stack[base + i].toTensor().defined();
  };
  for (const int target : plan.targets) {
    const auto t = static_cast<size_t>(target);
    if (!is_tensor(t)) continue;
    const at::Tensor& written = stack[base + t].toTensor();
    at::assert_no_internal_overlap(written);
    for (size_t i = 0; i < plan.arguments.size(); i++)
      if (i != t && is_tensor(i)) at::assert_no_partial_overlap(written, stack[base + i].toTensor());
  }
}

Prepare prepare_for(const std::string& name) {
  static const std::map<std::string, Prepare> all = [] {
    std::map<std::string, Prepare> m;
    const auto add = [&m](Prepare f, std::initializer_list<const char*> names) {
      for (const char* n : names) m[std::string("aten::") + n] = f;
    };
    add(expand_masks, {"index.Tensor", "index.Tensor_out", "index_put", "index_put_", "_index_put_impl_",
                       "_index_put_impl", "_unsafe_index.Tensor", "_unsafe_index_put"});
    add(count_repeats, {"repeat_interleave.Tensor", "repeat_interleave.Tensor_out"});
    add(require_elements, {"max",
                           "min",
                           "max.unary_out",
                           "min.unary_out",
                           "max.dim",
                           "min.dim",
                           "max.dim_max",
                           "min.dim_min",
                           "argmax",
                           "argmin",
                           "argmax.out",
                           "argmin.out",
                           "aminmax",
                           "aminmax.out",
                           "amax",
                           "amin",
                           "amax.out",
                           "amin.out",
                           "median.dim",
                           "nanmedian.dim",
                           "mode",
                           "kthvalue",
                           "median.dim_values",
                           "nanmedian.dim_values",
                           "mode.values",
                           "kthvalue.values"});
    add(resolve_conjugates,
        {"_conj_physical", "addmm", "addmm.out", "addmm_", "baddbmm", "baddbmm.out", "baddbmm_", "bmm",
         "bmm.out", "dot", "dot.out", "mm", "mm.out", "vdot", "vdot.out"});
    add(check_svd, {"_linalg_svd", "_linalg_svd.U"});
    add(check_eig, {"linalg_eig", "linalg_eig.out"});
    add(check_eigh, {"_linalg_eigh", "_linalg_eigh.eigenvalues"});
    add(check_cholesky_inverse, {"cholesky_inverse", "cholesky_inverse.out"});
    add(check_draws, {"multinomial", "multinomial.out"});
    add(refuse_negative_exponent, {"pow.Tensor_Scalar", "pow_.Scalar", "pow.Tensor_Scalar_out"});
    add(check_distribution, {"normal_", "uniform_", "bernoulli_.float", "exponential_", "geometric_",
                             "log_normal_", "cauchy_", "random_.from", "random_.to"});
    return m;
  }();
  const auto at = all.find(name);
  return at == all.end() ? nullptr : at->second;
}

}  // namespace tpu::torch_shim
