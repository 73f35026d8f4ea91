// arange, range and their kin: the length is known on the host, start and step are runtime parameters.
#include <ATen/native/Resize.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/logspace.h>
#include <ATen/ops/randperm.h>
#include <torch/library.h>

#include <cmath>

#include "torch/engine.h"
#include "torch/errors.h"

namespace tpu::torch_shim {
namespace {

// ceil((end - start) / step), in the type the range counts in; `inclusive` is the deprecated torch.range.
int64_t range_length(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step,
                     c10::ScalarType type, bool inclusive) {
  TORCH_CHECK_VALUE(step.toDouble() != 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(start.toDouble()) && std::isfinite(end.toDouble()),
              "unsupported range: ", start.toDouble(), " -> ", end.toDouble());
  const bool up = step.toDouble() > 0;
  TORCH_CHECK(up ? end.toDouble() >= start.toDouble() : end.toDouble() <= start.toDouble(),
              "upper bound and lower bound inconsistent with step sign");
  if (c10::isIntegralType(type, true) && start.isIntegral(true) && end.isIntegral(true) &&
      step.isIntegral(true)) {
    const int64_t s = step.toLong(), span = end.toLong() - start.toLong();
    return inclusive ? span / s + 1 : (span + s - (s > 0 ? 1 : -1)) / s;
  }
  const double steps = (end.toDouble() - start.toDouble()) / step.toDouble();
  TORCH_CHECK(steps <= 9.2e18, "invalid size, possible overflow?");
  return static_cast<int64_t>(inclusive ? std::floor(steps) + 1 : std::ceil(steps));
}

void fill_range(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out,
                bool inclusive) {
  const int64_t n = range_length(start, end, step, out.scalar_type(), inclusive);
  if (out.numel() != n) out.resize_({n});
  if (n == 0) return;
  run_internal("tpu::arange", {"self!", "start", "step"}, {out, start, step});
}

at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step,
                       at::Tensor& out) {
  return guarded([&]() -> at::Tensor& {
    fill_range(start, end, step, out, false);
    return out;
  });
}

at::Tensor& range_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step,
                      at::Tensor& out) {
  return guarded([&]() -> at::Tensor& {
    fill_range(start, end, step, out, true);
    return out;
  });
}

// The out= forms whose functional ones make their result from options: made, then copied.
at::Tensor& write_to(at::Tensor& out, const at::Tensor& made) {
  at::native::resize_output(out, made.sizes());
  return out.copy_(made);
}

// An out tensor of as many elements keeps its shape.
at::Tensor& write_elements(at::Tensor& out, const at::Tensor& made) {
  if (out.numel() != made.numel()) out.resize_(made.sizes());
  return out.copy_(made.view(out.sizes()));
}

at::Tensor& linspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps, at::Tensor& out) {
  return write_elements(out, at::linspace(start, end, steps, out.options()));
}

at::Tensor& logspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps, double base,
                         at::Tensor& out) {
  return write_elements(out, at::logspace(start, end, steps, base, out.options()));
}

at::Tensor& randperm_out(int64_t n, std::optional<at::Generator> generator, at::Tensor& out) {
  return write_to(out, at::randperm(n, std::move(generator), out.options()));
}

at::Tensor& eye_out(int64_t n, at::Tensor& out) { return write_to(out, at::eye(n, out.options())); }
at::Tensor& eye_m_out(int64_t n, int64_t m, at::Tensor& out) {
  return write_to(out, at::eye(n, m, out.options()));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("linspace.out", linspace_out);
  m.impl("logspace.out", logspace_out);
  m.impl("randperm.generator_out", randperm_out);
  m.impl("eye.out", eye_out);
  m.impl("eye.m_out", eye_m_out);
  m.impl("arange.start_out", arange_out);
  m.impl("range.out", range_out);
}

}  // namespace
}  // namespace tpu::torch_shim
