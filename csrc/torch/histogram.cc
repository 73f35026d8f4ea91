// histogram and histogramdd: edges of equal bins come from a range, which is read from the data when none is
// given.
#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/stack.h>
#include <torch/library.h>

#include <cmath>

#include "torch/checks.h"
#include "torch/engine.h"
#include "torch/errors.h"
#include "torch/transfer.h"

namespace tpu::torch_shim {
namespace {

using Range = std::optional<at::ArrayRef<double>>;

// The smallest and the largest element of each column, on the host.
at::Tensor extremes(const at::Tensor& points) {
  const auto [low, high] = at::aminmax(points, 0);
  return download(at::stack({low, high}, 1)).to(at::kDouble);
}

// The edges of equal bins for each column of points [m, n].
std::vector<at::Tensor> equal_bins(const at::Tensor& points, at::IntArrayRef bins, Range range) {
  const int64_t n = points.size(1);
  TORCH_CHECK(static_cast<int64_t>(bins.size()) == n, "torch.histogramdd: expected ", n,
              " numbers of bins for a ", n, "-dimensional histogram but got ", bins.size());
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(points.scalar_type()),
                              "\"histogramdd\" not implemented for '", points.scalar_type(), "'");
  TORCH_CHECK(!range || static_cast<int64_t>(range->size()) == 2 * n, "torch.histogramdd: for a ", n,
              "-dimensional histogram range should have ", 2 * n, " elements, but got ",
              range ? range->size() : 0);
  at::Tensor data;
  if (!range && points.numel() > 0) data = extremes(points);
  std::vector<at::Tensor> out;
  for (int64_t d = 0; d < n; d++) {
    double low = 0, high = 1;
    if (range) low = (*range)[2 * d], high = (*range)[2 * d + 1];
    if (data.defined()) low = data[d][0].item<double>(), high = data[d][1].item<double>();
    TORCH_CHECK(bins[d] > 0, "torch.histogram(): bins must be > 0, but got ", bins[d], " for dimension ", d);
    TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histogramdd: dimension ", d, "'s range [",
                low, ", ", high, "] is not finite");
    TORCH_CHECK(low <= high, "torch.histogramdd: min should not exceed max, but got min ", low, " max ", high,
                " for dimension ", d);
    if (low == high) low -= 0.5, high += 0.5;
    out.push_back(at::linspace(low, high, bins[d] + 1, points.options()));
  }
  return out;
}

void check(const at::Tensor& self, at::TensorList bins, const std::optional<at::Tensor>& weight) {
  TORCH_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions, but got ",
              self.dim());
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(self.scalar_type()), "\"histogramdd\" not implemented for '",
                              self.scalar_type(), "'");
  const int64_t n = self.size(-1);
  TORCH_CHECK(static_cast<int64_t>(bins.size()) == n, "torch.histogramdd: expected ", n,
              " sequences of bin edges for a ", n, "-dimensional histogram but got ", bins.size());
  for (const at::Tensor& b : bins) {
    TORCH_CHECK(b.scalar_type() == self.scalar_type(),
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input "
                "with dtype ",
                self.dtype(), " and bins with dtype ", b.dtype());
    TORCH_CHECK(b.dim() == 1, "torch.histogramdd: bins tensor should have one dimension, but got ", b.dim());
    TORCH_CHECK(b.numel() > 1, "torch.histogram(): bins must be > 0, but got ", b.numel() - 1);
  }
  if (!weight || !weight->defined()) return;
  TORCH_CHECK(weight->scalar_type() == self.scalar_type(),
              "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have "
              "the same dtype, but got input(",
              self.dtype(), "), and weight(", weight->dtype(), ")");
  const bool fits = weight->dim() == 0 ? self.sizes().slice(0, self.dim() - 1) == at::IntArrayRef{1}
                                       : self.sizes().slice(0, self.dim() - 1) == weight->sizes();
  TORCH_CHECK(fits,
              "torch.histogramdd: if weight tensor is provided it should have the same shape as the input "
              "tensor excluding its innermost dimension, but got input with shape ",
              self.sizes(), " and weight with shape ", weight->sizes());
}

at::Tensor points_of(const at::Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions, but got ",
              self.dim());
  return self.flatten(0, -2);
}

at::Tensor from_tensors(const at::Tensor& self, at::TensorList bins, const std::optional<at::Tensor>& weight,
                        bool density) {
  check(self, bins, weight);
  return guarded([&] {
    const bool weighted = weight && weight->defined();
    return run_internal(
        "tpu::histogramdd", {"self", "bins", "weight", "density"},
        {points_of(self), bins.vec(), weighted ? c10::IValue(*weight) : c10::IValue(), density}, 1)[0];
  });
}

std::vector<at::Tensor> bin_edges(const at::Tensor& self, at::IntArrayRef bins, Range range,
                                  const std::optional<at::Tensor>&, bool) {
  return equal_bins(points_of(self), bins, range);
}

at::Tensor from_counts(const at::Tensor& self, at::IntArrayRef bins, Range range,
                       const std::optional<at::Tensor>& weight, bool density) {
  return from_tensors(self, equal_bins(points_of(self), bins, range), weight, density);
}

std::optional<at::Tensor> flat(const std::optional<at::Tensor>& weight) {
  return weight && weight->defined() ? std::optional(weight->reshape({-1})) : std::nullopt;
}

std::tuple<at::Tensor, at::Tensor> histogram_of_edges(const at::Tensor& self, const at::Tensor& bins,
                                                      const std::optional<at::Tensor>& weight, bool density) {
  return {from_tensors(self.reshape({-1, 1}), {bins}, flat(weight), density), bins.clone()};
}

std::tuple<at::Tensor, at::Tensor> histogram(const at::Tensor& self, int64_t bins, Range range,
                                             const std::optional<at::Tensor>& weight, bool density) {
  const at::Tensor points = self.reshape({-1, 1});
  const std::vector<at::Tensor> edges = equal_bins(points, {bins}, range);
  return {from_tensors(points, edges, flat(weight), density), edges[0]};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_histogramdd_bin_edges", bin_edges);
  m.impl("_histogramdd_from_bin_cts", from_counts);
  m.impl("_histogramdd_from_bin_tensors", from_tensors);
  m.impl("histogram.bins_tensor", histogram_of_edges);
  m.impl("histogram.bin_ct", histogram);
}

}  // namespace

void complete_range(const OpPlan& plan, c10::Stack& stack) {
  const at::Tensor& self = plan.argument(stack, "self").toTensor();
  const int64_t bins = plan.argument(stack, "bins").toInt();
  TORCH_CHECK(bins > 0, "torch.histogram(): bins must be > 0, but got ", bins, " for dimension 0");
  c10::IValue &min = plan.argument(stack, "min"), &max = plan.argument(stack, "max");
  double low = min.toScalar().to<double>(), high = max.toScalar().to<double>();
  if (low == high && self.numel() > 0) {
    const at::Tensor data = extremes(self.reshape({-1, 1}));
    low = data[0][0].item<double>(), high = data[0][1].item<double>();
  }
  if (low == high) low -= 1, high += 1;
  TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histc: range of [", low, ", ", high,
              "] is not finite");
  TORCH_CHECK(low < high, "torch.histc: max must be larger than min");
  min = low, max = high;
}

}  // namespace tpu::torch_shim
