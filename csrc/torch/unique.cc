// Distinct values and counts. The number of results is one read of a count.
#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/WrapDimMinimal.h>
#include <torch/library.h>

#include <bit>

#include "torch/engine.h"
#include "torch/errors.h"
#include "torch/sized.h"
#include "torch/transfer.h"

namespace tpu::torch_shim {
namespace {

using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

at::Tensor nothing(const at::Tensor& self) { return at::empty({0}, self.options().dtype(at::kLong)); }

// entry(self) -> values, inverse, counts, number of values.
Triple distinct(const char* entry, const at::Tensor& self, bool inverse, bool counts) {
  return guarded([&]() -> Triple {
    const auto r = run_internal(entry, {"self"}, {self}, 4);
    const int64_t number = read_count(r[3]);
    return {first_rows(r[0], number), inverse ? r[1] : nothing(self),
            counts ? first_rows(r[2], number) : nothing(self)};
  });
}

// The same for the slices along `dim`, as the rows of a matrix.
Triple distinct_slices(const char* entry, const at::Tensor& self, int64_t dim, bool inverse, bool counts) {
  dim = c10::maybe_wrap_dim(dim, self.dim(), /*wrap_scalar=*/false);
  const int64_t n = self.size(dim), columns = n ? self.numel() / n : 0;
  if (self.numel() == 0) {
    TORCH_CHECK(n == 0, "unique: dimension ", dim, " of a tensor of shape ", self.sizes(),
                " cannot be made unique, as another dimension has size 0");
    for (int64_t d = 0; d < self.dim(); d++)
      TORCH_CHECK(d == dim || self.size(d) > 0, "unique: more than one dimension of ", self.sizes(),
                  " has size 0");
    return {at::empty(self.sizes(), self.options()), nothing(self), nothing(self)};
  }
  const at::Tensor front = self.movedim(dim, 0);
  auto [rows, where, how_often] = distinct(entry, front.reshape({n, columns}), inverse, counts);
  std::vector<int64_t> sizes = front.sizes().vec();
  sizes[0] = rows.size(0);
  return {rows.view(sizes).movedim(0, dim).contiguous(), where, how_often};
}

Triple unique_dim(const at::Tensor& self, int64_t dim, bool, bool inverse, bool counts) {
  return distinct_slices("tpu::unique_rows_padded", self, dim, inverse, counts);
}
Triple unique_dim_consecutive(const at::Tensor& self, int64_t dim, bool inverse, bool counts) {
  return distinct_slices("tpu::unique_consecutive_rows_padded", self, dim, inverse, counts);
}
Triple unique_consecutive(const at::Tensor& self, bool inverse, bool counts, std::optional<int64_t> dim) {
  if (dim) return unique_dim_consecutive(self, *dim, inverse, counts);
  return distinct("tpu::unique_consecutive_padded", self, inverse, counts);
}
Triple unique2(const at::Tensor& self, bool, bool inverse, bool counts) {
  return distinct("tpu::unique_padded", self, inverse, counts);
}
std::tuple<at::Tensor, at::Tensor> unique(const at::Tensor& self, bool, bool inverse) {
  auto [values, where, how_often] = distinct("tpu::unique_padded", self, inverse, false);
  return {values, where};
}

at::Tensor bincount(const at::Tensor& self, const std::optional<at::Tensor>& weights, int64_t minlength) {
  TORCH_CHECK_NOT_IMPLEMENTED(c10::isIntegralType(self.scalar_type(), false),
                              "\"bincount_tpu\" not implemented for '", self.scalar_type(), "'");
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  const bool weighted = weights && weights->defined();
  const c10::ScalarType dtype = !weighted                              ? at::kLong
                                : weights->scalar_type() == at::kFloat ? at::kFloat
                                                                       : at::kDouble;
  if (self.dim() == 1 && self.numel() == 0) return at::zeros({minlength}, self.options().dtype(at::kLong));
  TORCH_CHECK(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
  TORCH_CHECK(!weighted || (weights->dim() == 1 && weights->numel() == self.numel()),
              "weights should be 1-d and have the same length as input");
  return guarded([&] {
    const auto [low, high] = at::aminmax(self);
    TORCH_CHECK(read_count(low) >= 0, "bincount only supports 1-d non-negative integral inputs.");
    const int64_t size = std::max(read_count(high) + 1, minlength);
    // Sizes are rounded up to a power of two, so that there are few programs.
    const auto padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(size)));
    const auto r = run_internal(
        "tpu::bincount_sized", {"self", "weights", "size"},
        {self, weighted ? c10::IValue(*weights) : c10::IValue(), c10::IValue(std::vector<int64_t>{padded})},
        1);
    return first_rows(r[0], size).to(dtype);
  });
}

// One program says whether all elements are equal; one read brings the answer.
bool equal(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.device() == other.device(), "equal: the tensors are on two devices, ", self.device(),
              " and ", other.device());
  if (self.sizes() != other.sizes()) return false;
  if (self.numel() == 0) return true;
  return guarded(
      [&] { return run_internal("tpu::equal", {"self", "other"}, {self, other}, 1)[0].item<bool>(); });
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_unique", unique);
  m.impl("_unique2", unique2);
  m.impl("unique_dim", unique_dim);
  m.impl("unique_consecutive", unique_consecutive);
  m.impl("unique_dim_consecutive", unique_dim_consecutive);
  m.impl("bincount", bincount);
  m.impl("equal", equal);
}

}  // namespace

void count_repeats(const OpPlan& plan, c10::Stack& stack) {
  c10::IValue& size = plan.argument(stack, "output_size");
  const at::Tensor& repeats = plan.argument(stack, "repeats").toTensor();
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  if (!size.isNone()) return;
  const at::Tensor host = download(repeats);
  TORCH_CHECK(host.numel() == 0 || host.min().item<int64_t>() >= 0, "repeats can not be negative");
  size = host.sum().item<int64_t>();
}

}  // namespace tpu::torch_shim
