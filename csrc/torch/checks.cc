// What is checked or completed on the host before a call: what no program can refuse.
#include "torch/checks.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/WrapDimMinimal.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "torch/engine.h"
#include "torch/sized.h"
#include "torch/transfer.h"

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

// CPU torch counts categories in float32.
constexpr int64_t kMaximumCategories = int64_t{1} << 24;

// How many draws multinomial makes, and from how many categories. The program checks the weights.
void check_draws(const OpPlan& plan, c10::Stack& stack) {
  const at::Tensor& self = plan.argument(stack, "self").toTensor();
  const int64_t draws = plan.argument(stack, "num_samples").toInt();
  TORCH_CHECK(draws > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(self.dim() == 0 || self.size(-1) <= kMaximumCategories,
              "number of categories cannot exceed 2^24");
  if (plan.arguments.back().is_out) {
    const c10::ScalarType out = stack.back().toTensor().scalar_type();
    TORCH_CHECK(out == at::kLong, "multinomial expects Long tensor out, got: ", out);
  }
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

void refuse_complex_in_place(const OpPlan& plan, c10::Stack& stack) {
  TORCH_CHECK(!plan.argument(stack, "self").toTensor().is_complex(),
              "In-place abs is not supported for complex tensors.");
}

void require_bool_mask(const OpPlan& plan, c10::Stack& stack) {
  const at::Tensor& mask = plan.argument(stack, "mask").toTensor();
  TORCH_CHECK(mask.scalar_type() == at::kBool,
              "masked_scatter_ only supports boolean masks, but got mask with dtype ", mask.scalar_type());
}

void check_concatenated(const OpPlan& plan, c10::Stack& stack) {
  const std::vector<at::Tensor> tensors = plan.argument(stack, "tensors").toTensorVector();
  for (size_t i = 0; i < tensors.size(); i++)
    TORCH_CHECK(tensors[i].dim() > 0, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
  if (!plan.arguments.back().is_out || tensors.empty()) return;
  const c10::ScalarType out = stack.back().toTensor().scalar_type();
  TORCH_CHECK_TYPE(c10::canCast(at::native::result_type(tensors), out),
                   "torch.cat(): input types can't be cast to the desired output type ", out);
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

// "gather" of "aten::gather.out", "put" of "aten::put_".
std::string_view base_name(const std::string& overload) {
  std::string_view base = overload;
  if (base.starts_with("aten::")) base.remove_prefix(6);
  base = base.substr(0, base.find('.'));
  if (base.ends_with('_')) base.remove_suffix(1);
  return base;
}

// CPU torch's kernels of these read an argument again after they have written a result, which therefore may
// not even be the whole of it.
bool is_read_again(const std::string& overload, const std::string& argument) {
  static const std::set<std::string_view> all = {"cat", "gather", "index_select", "kthvalue", "take"};
  static const std::set<std::string_view> all_but_self = {"index_add",    "index_copy",    "index_put",
                                                          "index_reduce", "put",           "scatter",
                                                          "scatter_add",  "scatter_reduce"};
  const std::string_view base = base_name(overload);
  return all.contains(base) || (argument != "self" && all_but_self.contains(base));
}

// What segment_reduce reads of its lengths before it runs.
void check_segments(const OpPlan& plan, c10::Stack& stack) {
  const at::Tensor& data = plan.argument(stack, "data").toTensor();
  const c10::IValue &lengths = plan.argument(stack, "lengths"), &offsets = plan.argument(stack, "offsets");
  TORCH_CHECK(plan.argument(stack, "indices").isNone(),
              "segment_reduce(): indices based reduction is not supported yet.");
  TORCH_CHECK(!lengths.isNone() || !offsets.isNone(),
              "segment_reduce(): Either lengths or offsets must be defined.");
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(data.scalar_type()),
                              "\"_segment_reduce_tpu\" not implemented for '", data.scalar_type(), "'");
  const std::string reduce(plan.argument(stack, "reduce").toStringView());
  static const std::set<std::string> names = {"sum", "prod", "mean", "amax", "max", "amin", "min"};
  TORCH_CHECK(names.contains(reduce), "reduce argument must be either sum, prod, mean, amax or amin, got ",
              reduce);
  const at::Tensor& bounds = (offsets.isNone() ? lengths : offsets).toTensor();
  TORCH_CHECK_NOT_IMPLEMENTED(bounds.scalar_type() == at::kLong || bounds.scalar_type() == at::kInt,
                              "\"_segment_reduce_tpu\" not implemented for lengths of '",
                              bounds.scalar_type(), "'");
  const int64_t axis = c10::maybe_wrap_dim(plan.argument(stack, "axis").toInt(), data.dim());
  TORCH_CHECK(axis == bounds.dim() - 1,
              "segment_reduce(): Expected axis to be the last dimension of lengths but got ", axis, ".");
  TORCH_CHECK(data.sizes().slice(0, axis) == bounds.sizes().slice(0, axis),
              "segment_reduce(): Expected data and lengths to have the same sizes before axis");
  if (!offsets.isNone() || plan.argument(stack, "unsafe").toBool()) return;
  const at::Tensor host = download(bounds);
  TORCH_CHECK(host.numel() == 0 || host.min().item<int64_t>() >= 0, "lengths contains negative value!");
  TORCH_CHECK(host.sum(-1).eq(data.size(axis)).all().item<bool>(),
              "segment_reduce(): Expected all rows of lengths along axis to sum to "
              "data.size(lengths.dim()-1) when !unsafe.");
}

}  // namespace

std::vector<at::Tensor> tensors_of(const c10::IValue& v) {
  if (v.isTensor()) return {v.toTensor()};
  if (v.isTensorList()) return v.toTensorVector();
  std::vector<at::Tensor> out;
  if (v.isOptionalTensorList())
    for (const c10::IValue& e : v.toListRef())
      if (!e.isNone()) out.push_back(e.toTensor());
  return out;
}

void check_overlaps(const OpPlan& plan, const c10::Stack& stack) {
  const size_t base = stack.size() - plan.arguments.size();
  for (const int target : plan.targets) {
    for (const at::Tensor& written : tensors_of(stack[base + static_cast<size_t>(target)])) {
      if (!written.defined()) continue;
      at::assert_no_internal_overlap(written);
      for (size_t i = 0; i < plan.arguments.size(); i++) {
        if (i == static_cast<size_t>(target)) continue;
        const bool apart = is_read_again(plan.name, plan.arguments[i].name);
        for (const at::Tensor& other : tensors_of(stack[base + i]))
          if (other.defined())
            apart ? at::assert_no_overlap(written, other) : at::assert_no_partial_overlap(written, other);
      }
    }
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
                           "hash_tensor",
                           "hash_tensor.out",
                           "kthvalue.values"});
    add(resolve_conjugates,
        {"_conj_physical", "addmm", "addmm.out", "addmm_", "baddbmm", "baddbmm.out", "baddbmm_", "bmm",
         "bmm.out", "dot", "dot.out", "mm", "mm.out", "vdot", "vdot.out"});
    add(refuse_complex_in_place, {"abs_"});
    add(check_concatenated, {"cat", "cat.out"});
    add(require_bool_mask, {"masked_scatter", "masked_scatter.out", "masked_scatter_"});
    add(complete_range, {"histc", "histc.out"});
    add(check_segments, {"segment_reduce"});
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
