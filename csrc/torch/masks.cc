// Masks: nonzero, masked_select, and bool tensors among the indices of an indexing operator.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <torch/library.h>

#include "torch/engine.h"
#include "torch/errors.h"
#include "torch/sized.h"
#include "torch/transfer.h"

namespace tpu::torch_shim {

at::Tensor first_rows(const at::Tensor& padded, int64_t count) {
  if (padded.size(0) == count) return padded;
  return download(padded.narrow(0, 0, count)).to(padded.device());
}

at::Tensor true_positions(const at::Tensor& self) {
  return guarded([&] {
    const auto r = run_internal("tpu::nonzero_padded", {"self"}, {self}, 2);
    const int64_t count = read_count(r[1]);
    at::Tensor columns = r[0];
    if (columns.size(1) != count) columns = download(columns.narrow(1, 0, count)).to(self.device());
    return columns.t();
  });
}

namespace {

bool is_mask(const at::Tensor& t) { return t.scalar_type() == at::kBool || t.scalar_type() == at::kByte; }

// The only index is this bool mask, and the values are the same for each of its elements: index_put writes
// them by a select, and nobody has to know how many there are.
bool writes_by_select(const OpPlan& plan, c10::Stack& stack, const at::Tensor& self, const at::Tensor& mask,
                      int64_t position) {
  if (mask.scalar_type() != at::kBool || plan.name.find("index_put") == std::string::npos) return false;
  const at::Tensor& values = plan.argument(stack, "values").toTensor();
  // Their shape against that of self[mask], aligned at the end: the mask's dimensions count as one, of
  // unknown size.
  const int64_t rank = self.dim() - mask.dim() + 1;
  for (int64_t d = 1; d <= values.dim(); d++) {
    const int64_t size = values.size(-d), at_dim = rank - d;
    if (size == 1) continue;
    if (at_dim < 0 || at_dim == position) return false;
    if (size != self.size(at_dim < position ? at_dim : at_dim + mask.dim() - 1)) return false;
  }
  return true;
}

at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::Tensor r = true_positions(self);
  TORCH_CHECK(out.scalar_type() == at::kLong, "nonzero: out has dtype ", out.scalar_type(),
              ", expected Long");
  out.resize_(r.sizes()).copy_(r);
  return out;
}

at::Tensor select_masked(const at::Tensor& self, const at::Tensor& mask) {
  return guarded([&] {
    TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
    const auto both = at::expand_outplace(self, mask, "masked_select");
    const auto r = run_internal("tpu::masked_select_padded", {"self", "mask"},
                                {*std::get<0>(both), *std::get<1>(both)}, 2);
    return first_rows(r[0], read_count(r[1]));
  });
}

at::Tensor& masked_select_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, mask);
  at::Tensor r = select_masked(self, mask);
  TORCH_CHECK(out.scalar_type() == self.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  out.resize_(r.sizes()).copy_(r);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("nonzero", true_positions);
  m.impl("nonzero.out", nonzero_out);
  m.impl("masked_select", select_masked);
  m.impl("masked_select.out", masked_select_out);
}

}  // namespace

void expand_masks(const OpPlan& plan, c10::Stack& stack) {
  c10::IValue& slot = plan.argument(stack, "indices");
  int defined = 0, masks = 0;
  for (const c10::IValue& e : slot.toListRef()) {
    if (e.isNone() || !e.toTensor().defined()) continue;
    defined++;
    masks += is_mask(e.toTensor());
  }
  if (!masks) return;
  const at::Tensor& self = plan.argument(stack, "self").toTensor();
  c10::List<std::optional<at::Tensor>> out;
  for (const c10::IValue& e : slot.toListRef()) {
    if (e.isNone() || !e.toTensor().defined() || !is_mask(e.toTensor())) {
      out.push_back(e.isNone() ? std::nullopt : std::optional<at::Tensor>(e.toTensor()));
      continue;
    }
    const at::Tensor mask = e.toTensor().to(self.device());
    const auto first = static_cast<int64_t>(out.size());
    for (int64_t d = 0; d < mask.dim(); d++)
      TORCH_CHECK_INDEX(first + d < self.dim() && mask.size(d) == self.size(first + d),
                        "The shape of the mask ", mask.sizes(), " at index ", d,
                        " does not match the shape of the indexed tensor ", self.sizes(), " at index ",
                        first + d);
    if (defined == 1 && writes_by_select(plan, stack, self, mask, first)) {
      out.push_back(mask);
      continue;
    }
    // As on the CPU, a 0-d mask is no index of a dimension. (x[mask] has turned it into one before it comes
    // here.)
    TORCH_CHECK_INDEX(mask.dim() > 0 || defined > 1, plan.name,
                      ": a 0-d mask is the only index; use x[mask]");
    const at::Tensor positions = true_positions(mask);
    for (int64_t d = 0; d < mask.dim(); d++) out.push_back(positions.select(1, d));
  }
  slot = std::move(out);
}

}  // namespace tpu::torch_shim
