// Operators whose result's size comes from the values of their arguments: ranges sized on the host, masks and unique by one
// read of a count.
#include <ATen/ExpandUtils.h>
#include <c10/core/WrapDimMinimal.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "torch/convert.h"
#include "torch/engine.h"
#include "torch/errors.h"
#include "torch/storage.h"
#include "torch/transfer.h"

namespace tpu::torch_shim {
namespace {

// ceil((end - start) / step), in the type the range counts in; `inclusive` is the deprecated torch.range.
int64_t range_length(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, c10::ScalarType type,
                     bool inclusive) {
  TORCH_CHECK(step.toDouble() != 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(start.toDouble()) && std::isfinite(end.toDouble()), "unsupported range: ", start.toDouble(),
              " -> ", end.toDouble());
  const bool up = step.toDouble() > 0;
  TORCH_CHECK(up ? end.toDouble() >= start.toDouble() : end.toDouble() <= start.toDouble(),
              "upper bound and lower bound inconsistent with step sign");
  if (c10::isIntegralType(type, true) && start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true)) {
    const int64_t s = step.toLong(), span = end.toLong() - start.toLong();
    return inclusive ? span / s + 1 : (span + s - (s > 0 ? 1 : -1)) / s;
  }
  const double steps = (end.toDouble() - start.toDouble()) / step.toDouble();
  TORCH_CHECK(steps <= 9.2e18, "invalid size, possible overflow?");
  return static_cast<int64_t>(inclusive ? std::floor(steps) + 1 : std::ceil(steps));
}

void fill_range(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out, bool inclusive) {
  const int64_t n = range_length(start, end, step, out.scalar_type(), inclusive);
  if (out.numel() != n) out.resize_({n});
  if (n == 0) return;
  run_internal("tpu::arange", {"self!", "start", "step"}, {out, start, step});
}

at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  return guarded([&]() -> at::Tensor& {
    fill_range(start, end, step, out, false);
    return out;
  });
}

at::Tensor& range_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  return guarded([&]() -> at::Tensor& {
    fill_range(start, end, step, out, true);
    return out;
  });
}

// The first `count` rows of a padded result, as a tensor of its own: through the host, since every count would be a new program.
at::Tensor first_rows(const at::Tensor& padded, int64_t count) {
  if (padded.size(0) == count) return padded;
  return download(padded.narrow(0, 0, count)).to(padded.device());
}

at::Tensor true_positions(const at::Tensor& self) {
  return guarded([&] {
    const auto r = run_internal("tpu::nonzero_padded", {"self"}, {self}, 2);
    return first_rows(r[0], read_count(r[1]));
  });
}

at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
  at::Tensor r = true_positions(self);
  TORCH_CHECK(out.scalar_type() == at::kLong, "nonzero: out has dtype ", out.scalar_type(), ", expected Long");
  out.resize_(r.sizes()).copy_(r);
  return out;
}

at::Tensor select_masked(const at::Tensor& self, const at::Tensor& mask) {
  return guarded([&] {
    TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
    const auto both = at::expand_outplace(self, mask, "masked_select");
    const auto r = run_internal("tpu::masked_select_padded", {"self", "mask"}, {*std::get<0>(both), *std::get<1>(both)}, 2);
    return first_rows(r[0], read_count(r[1]));
  });
}

at::Tensor& masked_select_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  at::Tensor r = select_masked(self, mask);
  TORCH_CHECK(out.scalar_type() == self.scalar_type(), "masked_select(): self and result must have the same scalar type");
  out.resize_(r.sizes()).copy_(r);
  return out;
}

// A bool (or byte) mask among the indices stands for the positions of its true elements, one index a dimension of the mask.
void expand_masks(const OpPlan& plan, c10::Stack& stack) {
  c10::IValue& slot = plan.argument(stack, "indices");
  bool any = false;
  for (const c10::IValue& e : slot.toListRef())
    if (!e.isNone() && e.toTensor().defined())
      any |= e.toTensor().scalar_type() == at::kBool || e.toTensor().scalar_type() == at::kByte;
  if (!any) return;
  const at::Tensor& self = plan.argument(stack, "self").toTensor();
  c10::List<std::optional<at::Tensor>> out;
  for (const c10::IValue& e : slot.toListRef()) {
    if (e.isNone() || !e.toTensor().defined()) {
      out.push_back(std::nullopt);
      continue;
    }
    const at::Tensor& index = e.toTensor();
    if (index.scalar_type() != at::kBool && index.scalar_type() != at::kByte) {
      out.push_back(index);
      continue;
    }
    for (int64_t d = 0; d < index.dim(); d++) {
      const int64_t at_dim = static_cast<int64_t>(out.size());
      TORCH_CHECK_INDEX(at_dim < self.dim() && index.size(d) == self.size(at_dim), "The shape of the mask ", index.sizes(),
                        " at index ", d, " does not match the shape of the indexed tensor ", self.sizes(), " at index ", at_dim);
      // All of this mask's dimensions come from one nonzero below.
      out.push_back(std::optional<at::Tensor>());
    }
    const at::Tensor positions = true_positions(index.to(self.device()));
    for (int64_t d = 0; d < index.dim(); d++)
      out.set(out.size() - static_cast<size_t>(index.dim() - d), positions.select(1, d));
    if (index.dim() == 0) {
      TORCH_CHECK_NOT_IMPLEMENTED(false, plan.name, ": a 0-d mask among tensor indices; write x[None][mask] or use torch.where");
    }
  }
  slot = std::move(out);
}

// A reduction that has no value for nothing.
void require_elements(const OpPlan& plan, c10::Stack& stack) {
  const at::Tensor& self = plan.argument(stack, "self").toTensor();
  if (self.numel() > 0) return;
  const std::string name = plan.name.substr(6, plan.name.find('.') - 6);
  const bool has_dim = std::find(plan.names->begin(), plan.names->end(), "dim") != plan.names->end();
  if (!has_dim || plan.argument(stack, "dim").isNone()) {
    TORCH_CHECK(false, name, "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
                "the 'dim' argument.");
  }
  const int64_t dim = c10::maybe_wrap_dim(plan.argument(stack, "dim").toInt(), self.dim());
  TORCH_CHECK_INDEX(self.dim() == 0 || self.size(dim) > 0, name, "(): Expected reduction dim ", dim, " to have non-zero size.");
}

// CPU torch refuses a negative integer exponent of integers, whatever program there is for the others.
void refuse_negative_exponent(const OpPlan& plan, c10::Stack& stack) {
  const at::Tensor& self = plan.argument(stack, "self").toTensor();
  const c10::IValue& exponent = plan.argument(stack, "exponent");
  TORCH_CHECK(!(c10::isIntegralType(self.scalar_type(), true) && exponent.isInt() && exponent.toInt() < 0),
              "Integers to negative integer powers are not allowed.");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("arange.start_out", arange_out);
  m.impl("range.out", range_out);
  m.impl("nonzero", true_positions);
  m.impl("nonzero.out", nonzero_out);
  m.impl("masked_select", select_masked);
  m.impl("masked_select.out", masked_select_out);
}

}  // namespace

Prepare prepare_for(const std::string& name) {
  static const std::map<std::string, Prepare> all = [] {
    std::map<std::string, Prepare> m;
    for (const char* n : {"index.Tensor", "index.Tensor_out", "index_put", "index_put_", "_index_put_impl_", "_index_put_impl",
                          "_unsafe_index.Tensor", "_unsafe_index_put"})
      m[std::string("aten::") + n] = expand_masks;
    for (const char* n : {"max", "min", "max.unary_out", "min.unary_out", "max.dim", "min.dim", "max.dim_max", "min.dim_min",
                          "argmax", "argmin", "argmax.out", "argmin.out", "aminmax", "aminmax.out"})
      m[std::string("aten::") + n] = require_elements;
    for (const char* n : {"pow.Tensor_Scalar", "pow_.Scalar", "pow.Tensor_Scalar_out"})
      m[std::string("aten::") + n] = refuse_negative_exponent;
    return m;
  }();
  const auto at = all.find(name);
  return at == all.end() ? nullptr : at->second;
}

}  // namespace tpu::torch_shim
