#include "torch/linalg.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_linalg_check_errors.h>
#include <ATen/ops/_linalg_det.h>
#include <ATen/ops/_linalg_eigvals.h>
#include <ATen/ops/_linalg_slogdet.h>
#include <ATen/ops/_linalg_solve_ex.h>
#include <ATen/ops/_linalg_svd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include <limits>
#include <map>

#include "torch/decompose.h"
#include "torch/engine.h"
#include "torch/errors.h"
#include "torch/transfer.h"

namespace tpu::torch_shim {
namespace {

// What CPU torch calls the operator in its errors.
const char* api_name(const std::string& op) {
  static const std::map<std::string, const char*> names = {
      {"linalg_cholesky_ex", "linalg.cholesky_ex"},
      {"linalg_inv_ex", "linalg.inv_ex"},
      {"linalg_lu_factor_ex", "torch.linalg.lu_factor_ex"},
      {"linalg_ldl_factor_ex", "torch.linalg.ldl_factor_ex"}};
  return names.at(op.substr(6, op.find('.') - 6));
}

// One int of each matrix: 1 where the entry finds its fault, 0 elsewhere. On the host.
at::Tensor faults(const char* entry, const at::Tensor& a) {
  return download(run_internal(entry, {"self"}, {a.resolve_conj()}, 1)[0]);
}

}  // namespace

void run_checked(const OpPlan& plan, c10::Stack* stack) {
  const bool wanted = plan.argument(*stack, "check_errors").toBool();
  const size_t first = stack->size() - plan.arguments.size();
  const bool is_matrix = (*stack)[first].toTensor().dim() == 2;
  run(plan, stack);
  if (wanted) at::_linalg_check_errors(stack->back().toTensor(), api_name(plan.name), is_matrix);
}

void check_svd(const OpPlan& plan, c10::Stack& stack) {
  TORCH_CHECK(
      plan.argument(stack, "driver").isNone(),
      "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
  const at::Tensor& a = plan.argument(stack, "A").toTensor();
  if (a.dim() < 2 || a.numel() == 0) return;
  // LAPACK's code for an argument with such numbers.
  at::_linalg_check_errors(faults("tpu::not_finite", a) * -4, "linalg.svd", a.dim() == 2);
}

void check_eig(const OpPlan& plan, c10::Stack& stack) {
  const at::Tensor& a = plan.argument(stack, "self").toTensor();
  if (a.dim() < 2 || a.numel() == 0) return;
  TORCH_CHECK(!faults("tpu::not_finite", a).any().item<bool>(),
              "torch.linalg.eig: input tensor should not contain infs or NaNs.");
}

void check_eigh(const OpPlan& plan, c10::Stack& stack) {
  const at::Tensor& a = plan.argument(stack, "A").toTensor();
  if (a.dim() < 2 || a.numel() == 0 || plan.argument(stack, "compute_v").toBool()) return;
  at::_linalg_check_errors(faults("tpu::not_finite", a), "linalg.eigh", a.dim() == 2);
}

void check_cholesky_inverse(const OpPlan& plan, c10::Stack& stack) {
  const at::Tensor& a = plan.argument(stack, "self").toTensor();
  if (a.dim() < 2 || a.numel() == 0 || a.size(-1) != a.size(-2)) return;
  at::_linalg_check_errors(faults("tpu::zero_on_diagonal", a), "cholesky_inverse", a.dim() == 2);
}

namespace {

void assign(at::Tensor& out, const at::Tensor& value) {
  TORCH_CHECK(c10::canCast(value.scalar_type(), out.scalar_type()), "result type ", value.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  at::native::resize_output(out, value.sizes());
  out.copy_(value);
}

// Operators that are decompositions in Python. PyTorch would call their out= forms, which have none.
void decomposed(const c10::OperatorHandle& op, c10::Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(run_decomposed(op, stack), op.operator_name().name,
                              ": its decomposition was not installed");
}

void solve_ex(const c10::OperatorHandle& op, c10::Stack* stack) {
  const bool wanted = stack->back().toBool();
  const bool is_matrix = (*stack)[stack->size() - 4].toTensor().dim() == 2;
  decomposed(op, stack);
  if (wanted) at::_linalg_check_errors(stack->back().toTensor(), "torch.linalg.solve_ex", is_matrix);
}

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> det_out(const at::Tensor& a, at::Tensor& result,
                                                          at::Tensor& lu, at::Tensor& pivots) {
  const auto [r, l, p] = at::_linalg_det(a);
  assign(result, r), assign(lu, l), assign(pivots, p);
  return {result, lu, pivots};
}

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&, at::Tensor&> slogdet_out(
    const at::Tensor& a, at::Tensor& sign, at::Tensor& logabsdet, at::Tensor& lu, at::Tensor& pivots) {
  const auto [s, d, l, p] = at::_linalg_slogdet(a);
  assign(sign, s), assign(logabsdet, d), assign(lu, l), assign(pivots, p);
  return {sign, logabsdet, lu, pivots};
}

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&, at::Tensor&> solve_ex_out(
    const at::Tensor& a, const at::Tensor& b, bool left, bool check_errors, at::Tensor& result,
    at::Tensor& lu, at::Tensor& pivots, at::Tensor& info) {
  const auto [r, l, p, i] = at::_linalg_solve_ex(a, b, left, check_errors);
  assign(result, r), assign(lu, l), assign(pivots, p), assign(info, i);
  return {result, lu, pivots, info};
}

at::Tensor cholesky(const at::Tensor& self, bool upper) {
  const auto [l, info] = at::linalg_cholesky_ex(self, upper);
  at::_linalg_check_errors(info, "cholesky", self.dim() == 2);
  return l;
}
at::Tensor& cholesky_out(const at::Tensor& self, bool upper, at::Tensor& out) {
  assign(out, cholesky(self, upper));
  return out;
}

at::Tensor& eigvals_out(const at::Tensor& self, at::Tensor& out) {
  assign(out, at::_linalg_eigvals(self));
  return out;
}

/// What torch.linalg.lstsq returns. Undefined: not computed by this driver.
struct LeastSquares {
  at::Tensor solution, rank, singular_values;
};

// By QR, or LQ, of a matrix of full rank.
LeastSquares by_qr(const at::Tensor& a, const at::Tensor& b) {
  const bool wide = a.size(-2) < a.size(-1);
  const auto [q, r] = at::linalg_qr(wide ? a.mH() : a);
  // As LAPACK reports it: the first zero on the diagonal, counted from 1.
  const at::Tensor zero = r.diagonal(0, -2, -1).eq(0);
  if (zero.numel() > 0) {
    const at::Tensor first = zero.to(at::kInt).argmax(-1) + 1;
    at::_linalg_check_errors(at::where(zero.any(-1), first, 0).to(at::kInt), "torch.linalg.lstsq",
                             a.dim() == 2);
  }
  if (wide) return {at::matmul(q, at::linalg_solve_triangular(r.mH(), b, /*upper=*/false)), {}, {}};
  return {at::linalg_solve_triangular(r, at::matmul(q.mH(), b), /*upper=*/true), {}, {}};
}

// Of least norm, with singular values up to rcond times the largest counted as zero.
LeastSquares by_svd(const at::Tensor& a, const at::Tensor& b, double rcond) {
  const auto [u, s, vh] = at::_linalg_svd(a, /*full_matrices=*/false);
  const at::Tensor kept = s.size(-1) ? s.gt(s.amax(-1, /*keepdim=*/true) * rcond) : s.to(at::kBool);
  const at::Tensor weight = at::where(kept, s.reciprocal(), 0).unsqueeze(-1);
  return {at::matmul(vh.mH(), at::matmul(u.mH(), b) * weight.to(a.scalar_type())), kept.sum(-1), s};
}

using Four = std::tuple<at::Tensor&, at::Tensor&, at::Tensor&, at::Tensor&>;

Four lstsq_out(const at::Tensor& input, const at::Tensor& other, std::optional<double> rcond,
               std::optional<c10::string_view> driver, at::Tensor& solution, at::Tensor& residuals,
               at::Tensor& rank, at::Tensor& singular_values) {
  TORCH_CHECK(input.dim() >= 2, "torch.linalg.lstsq: input must have at least 2 dimensions.");
  TORCH_CHECK(other.dim() >= 1, "torch.linalg.lstsq: other must have at least 1 dimension.");
  TORCH_CHECK(input.scalar_type() == other.scalar_type(),
              "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype ",
              input.scalar_type(), " and other's dtype ", other.scalar_type());
  const int64_t missing = input.dim() - other.dim();
  TORCH_CHECK(0 <= missing && missing <= 1,
              "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - "
              "other.dim()) "
              "<= 1");
  const at::Tensor b = missing ? other.unsqueeze(-1) : other;
  TORCH_CHECK(input.size(-2) == b.size(-2),
              missing ? "torch.linalg.lstsq: input.size(-2) should match other.size(-1)"
                      : "torch.linalg.lstsq: input.size(-2) should match other.size(-2)");
  const std::string method(driver.value_or("gelsy"));
  const bool with_values = method == "gelsd" || method == "gelss";
  TORCH_CHECK(with_values || method == "gels" || method == "gelsy",
              "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  const int64_t m = input.size(-2), n = input.size(-1);
  const c10::ScalarType real = c10::toRealValueType(input.scalar_type());
  const double epsilon =
      real == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const LeastSquares r =
      method == "gels" ? by_qr(input, b)
                       : by_svd(input, b, rcond.value_or(epsilon * static_cast<double>(std::max(m, n))));
  const auto nothing = [&](const at::Tensor& like) { return at::empty({0}, like.options()); };
  const bool full_rank = !with_values || m <= n || r.rank.eq(n).all().item<bool>();
  if (m > n && method != "gelsy" && full_rank) {
    const at::Tensor difference = (at::matmul(input, r.solution) - b).abs();
    assign(residuals, difference.mul(difference).sum(-2));
  } else {
    assign(residuals, nothing(residuals));
  }
  assign(solution, missing ? r.solution.squeeze(-1) : r.solution);
  assign(rank, r.rank.defined() ? r.rank : nothing(rank));
  assign(singular_values, with_values ? r.singular_values : nothing(singular_values));
  return {solution, residuals, rank, singular_values};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_linalg_det", torch::CppFunction::makeFromBoxedFunction<&decomposed>());
  m.impl("_linalg_slogdet", torch::CppFunction::makeFromBoxedFunction<&decomposed>());
  m.impl("_linalg_solve_ex", torch::CppFunction::makeFromBoxedFunction<&solve_ex>());
  m.impl("_linalg_det.result", det_out);
  m.impl("_linalg_slogdet.sign", slogdet_out);
  m.impl("_linalg_solve_ex.result", solve_ex_out);
  m.impl("cholesky", cholesky);
  m.impl("cholesky.out", cholesky_out);
  m.impl("linalg_eigvals.out", eigvals_out);
  m.impl("linalg_lstsq.out", lstsq_out);
}

}  // namespace
}  // namespace tpu::torch_shim
