// The C++ Meta kernels of PyTorch's structured operators, and ours for what no program starts without.
//
// Importing torch puts Python kernels in their place in the dispatcher. Those take the GIL, a tenth of a
// millisecond a call, and import all of torch._dynamo at the first one.
#include "torch/cpp_meta.h"

#include <ATen/MetaFunctions.h>
#include <ATen/Operators.h>
#include <ATen/ops/empty_strided.h>

#include <unordered_map>

namespace tpu::torch_shim {
namespace {

using Kernels = std::unordered_map<c10::OperatorName, c10::KernelFunction>;

// `function` is the overload of at::meta:: with the schema of at::_ops::`op`.
#define TPU_META(op, function)                                                        \
  kernels.emplace(c10::OperatorName(at::_ops::op::name, at::_ops::op::overload_name), \
                  c10::KernelFunction::makeFromUnboxedRuntimeFunction(                \
                      static_cast<at::_ops::op::ptr_schema>(&at::meta::function)));
#define TPU_META_1(op) TPU_META(op, op)

// For operators whose result is typed like their first argument, whatever the others are.
void like_self(const c10::OperatorHandle& op, c10::DispatchKeySet, c10::Stack* stack) {
  const size_t base = stack->size() - op.schema().arguments().size();
  const at::Tensor& self = (*stack)[base].toTensor();
  at::Tensor result = at::empty_strided(self.sizes(), self.strides(), self.options());
  stack->resize(base);
  stack->emplace_back(std::move(result));
}

Kernels all() {
  Kernels kernels;
  for (const auto& [name, overload] :
       {std::pair("aten::fill", "Scalar"), {"aten::fill", "Tensor"}, {"aten::zero", ""}})
    kernels.emplace(c10::OperatorName(name, overload),
                    c10::KernelFunction::makeFromBoxedFunction<&like_self>());
  // clang-format off
  TPU_META_1(_addmm_activation) TPU_META_1(_linalg_det) TPU_META_1(_linalg_eigh) TPU_META_1(_linalg_slogdet)
  TPU_META_1(_linalg_solve_ex) TPU_META_1(_linalg_svd) TPU_META_1(_log_softmax)
  TPU_META_1(_log_softmax_backward_data) TPU_META_1(_softmax) TPU_META_1(_softmax_backward_data)
  TPU_META_1(acos) TPU_META_1(acosh) TPU_META_1(adaptive_max_pool2d) TPU_META_1(adaptive_max_pool2d_backward)
  TPU_META_1(adaptive_max_pool3d) TPU_META_1(adaptive_max_pool3d_backward) TPU_META_1(addcdiv)
  TPU_META_1(addcmul) TPU_META_1(addmm) TPU_META_1(addmv) TPU_META_1(all) TPU_META_1(amax) TPU_META_1(amin)
  TPU_META_1(aminmax) TPU_META_1(any) TPU_META_1(argmax) TPU_META_1(argmin) TPU_META_1(asin) TPU_META_1(asinh)
  TPU_META_1(atan) TPU_META_1(atan2) TPU_META_1(atanh) TPU_META_1(avg_pool2d) TPU_META_1(avg_pool2d_backward)
  TPU_META_1(avg_pool3d) TPU_META_1(avg_pool3d_backward) TPU_META_1(baddbmm) TPU_META_1(bitwise_not)
  TPU_META_1(bmm) TPU_META_1(cat) TPU_META_1(ceil) TPU_META_1(clamp) TPU_META_1(clamp_max)
  TPU_META_1(clamp_min) TPU_META_1(cos) TPU_META_1(cosh) TPU_META_1(cumprod) TPU_META_1(cumsum)
  TPU_META_1(digamma) TPU_META_1(elu) TPU_META_1(elu_backward) TPU_META_1(erf) TPU_META_1(erfc)
  TPU_META_1(erfinv) TPU_META_1(exp) TPU_META_1(exp2) TPU_META_1(expm1) TPU_META_1(floor) TPU_META_1(fmax)
  TPU_META_1(fmin) TPU_META_1(frac) TPU_META_1(fractional_max_pool2d)
  TPU_META_1(fractional_max_pool2d_backward) TPU_META_1(fractional_max_pool3d) TPU_META_1(gather)
  TPU_META_1(gcd) TPU_META_1(gelu) TPU_META_1(gelu_backward) TPU_META_1(glu) TPU_META_1(hardshrink)
  TPU_META_1(hardshrink_backward) TPU_META_1(hardsigmoid) TPU_META_1(hardsigmoid_backward)
  TPU_META_1(heaviside) TPU_META_1(hypot) TPU_META_1(i0) TPU_META_1(igamma) TPU_META_1(igammac)
  TPU_META_1(index_add) TPU_META_1(index_copy) TPU_META_1(index_reduce) TPU_META_1(isneginf)
  TPU_META_1(isposinf) TPU_META_1(lcm) TPU_META_1(leaky_relu) TPU_META_1(leaky_relu_backward)
  TPU_META_1(lgamma) TPU_META_1(linalg_cholesky_ex) TPU_META_1(linalg_cross) TPU_META_1(linalg_inv_ex)
  TPU_META_1(linalg_ldl_factor_ex) TPU_META_1(linalg_ldl_solve) TPU_META_1(linalg_lu)
  TPU_META_1(linalg_lu_factor_ex) TPU_META_1(linalg_lu_solve) TPU_META_1(linalg_qr)
  TPU_META_1(linalg_vector_norm) TPU_META_1(log) TPU_META_1(log10) TPU_META_1(log1p) TPU_META_1(log2)
  TPU_META_1(logaddexp) TPU_META_1(logaddexp2) TPU_META_1(logit_backward) TPU_META_1(lu_unpack)
  TPU_META_1(max_pool2d_with_indices) TPU_META_1(max_pool2d_with_indices_backward) TPU_META_1(maximum)
  TPU_META_1(minimum) TPU_META_1(mish) TPU_META_1(mm) TPU_META_1(mse_loss) TPU_META_1(neg)
  TPU_META_1(nextafter) TPU_META_1(polygamma) TPU_META_1(reciprocal) TPU_META_1(renorm) TPU_META_1(round)
  TPU_META_1(rsqrt) TPU_META_1(scatter_add) TPU_META_1(sgn) TPU_META_1(sigmoid) TPU_META_1(sigmoid_backward)
  TPU_META_1(sign) TPU_META_1(signbit) TPU_META_1(silu) TPU_META_1(silu_backward) TPU_META_1(sin)
  TPU_META_1(sinc) TPU_META_1(sinh) TPU_META_1(smooth_l1_loss) TPU_META_1(softplus)
  TPU_META_1(softplus_backward) TPU_META_1(softshrink) TPU_META_1(softshrink_backward)
  TPU_META_1(special_airy_ai) TPU_META_1(special_bessel_j0) TPU_META_1(special_bessel_j1)
  TPU_META_1(special_bessel_y0) TPU_META_1(special_bessel_y1) TPU_META_1(special_chebyshev_polynomial_t)
  TPU_META_1(special_chebyshev_polynomial_u) TPU_META_1(special_chebyshev_polynomial_v)
  TPU_META_1(special_chebyshev_polynomial_w) TPU_META_1(special_entr) TPU_META_1(special_erfcx)
  TPU_META_1(special_hermite_polynomial_h) TPU_META_1(special_hermite_polynomial_he) TPU_META_1(special_i0e)
  TPU_META_1(special_i1) TPU_META_1(special_i1e) TPU_META_1(special_laguerre_polynomial_l)
  TPU_META_1(special_legendre_polynomial_p) TPU_META_1(special_log_ndtr)
  TPU_META_1(special_modified_bessel_i0) TPU_META_1(special_modified_bessel_i1)
  TPU_META_1(special_modified_bessel_k0) TPU_META_1(special_modified_bessel_k1) TPU_META_1(special_ndtri)
  TPU_META_1(special_scaled_modified_bessel_k0) TPU_META_1(special_scaled_modified_bessel_k1)
  TPU_META_1(special_shifted_chebyshev_polynomial_t) TPU_META_1(special_shifted_chebyshev_polynomial_u)
  TPU_META_1(special_shifted_chebyshev_polynomial_v) TPU_META_1(special_shifted_chebyshev_polynomial_w)
  TPU_META_1(special_spherical_bessel_j0) TPU_META_1(special_xlog1py) TPU_META_1(special_zeta)
  TPU_META_1(sqrt) TPU_META_1(tan) TPU_META_1(tanh) TPU_META_1(tanh_backward) TPU_META_1(threshold)
  TPU_META_1(threshold_backward) TPU_META_1(triangular_solve) TPU_META_1(trunc)
  TPU_META(_upsample_bicubic2d_aa, _upsample_bicubic2d_aa_symint)
  TPU_META(_upsample_bicubic2d_aa_backward, _upsample_bicubic2d_aa_backward_symint)
  TPU_META(_upsample_bilinear2d_aa, _upsample_bilinear2d_aa_symint)
  TPU_META(_upsample_bilinear2d_aa_backward, _upsample_bilinear2d_aa_backward_symint)
  TPU_META(_upsample_lanczos2d_aa, _upsample_lanczos2d_aa_symint)
  TPU_META(_upsample_lanczos2d_aa_backward, _upsample_lanczos2d_aa_backward_symint)
  TPU_META(_upsample_nearest_exact1d, _upsample_nearest_exact1d_symint)
  TPU_META(_upsample_nearest_exact1d_backward, _upsample_nearest_exact1d_backward_symint)
  TPU_META(_upsample_nearest_exact2d, _upsample_nearest_exact2d_symint)
  TPU_META(_upsample_nearest_exact2d_backward, _upsample_nearest_exact2d_backward_symint)
  TPU_META(_upsample_nearest_exact3d, _upsample_nearest_exact3d_symint)
  TPU_META(_upsample_nearest_exact3d_backward, _upsample_nearest_exact3d_backward_symint)
  TPU_META(add_Tensor, add) TPU_META(all_dim, all) TPU_META(all_dims, all) TPU_META(any_dim, any)
  TPU_META(any_dims, any) TPU_META(bitwise_and_Tensor, bitwise_and)
  TPU_META(bitwise_left_shift_Tensor, bitwise_left_shift) TPU_META(bitwise_or_Tensor, bitwise_or)
  TPU_META(bitwise_right_shift_Tensor, bitwise_right_shift) TPU_META(bitwise_xor_Tensor, bitwise_xor)
  TPU_META(clamp_Tensor, clamp) TPU_META(clamp_max_Tensor, clamp_max) TPU_META(clamp_min_Tensor, clamp_min)
  TPU_META(copysign_Tensor, copysign) TPU_META(div_Tensor, div) TPU_META(div_Tensor_mode, div)
  TPU_META(eq_Scalar, eq) TPU_META(eq_Tensor, eq) TPU_META(fmod_Tensor, fmod) TPU_META(ge_Scalar, ge)
  TPU_META(ge_Tensor, ge) TPU_META(gt_Scalar, gt) TPU_META(gt_Tensor, gt) TPU_META(index_Tensor, index)
  TPU_META(isin_Scalar_Tensor, isin) TPU_META(isin_Tensor_Scalar, isin) TPU_META(isin_Tensor_Tensor, isin)
  TPU_META(le_Scalar, le) TPU_META(le_Tensor, le) TPU_META(lerp_Scalar, lerp) TPU_META(lerp_Tensor, lerp)
  TPU_META(lt_Scalar, lt) TPU_META(lt_Tensor, lt) TPU_META(max_dim, max) TPU_META(mean_dim, mean)
  TPU_META(min_dim, min) TPU_META(mul_Tensor, mul) TPU_META(ne_Scalar, ne) TPU_META(ne_Tensor, ne)
  TPU_META(nll_loss_backward, nll_loss_backward_symint) TPU_META(nll_loss_forward, nll_loss_forward_symint)
  TPU_META(norm_ScalarOpt_dim, norm) TPU_META(norm_ScalarOpt_dim_dtype, norm) TPU_META(pow_Scalar, pow)
  TPU_META(pow_Tensor_Scalar, pow) TPU_META(pow_Tensor_Tensor, pow) TPU_META(prod_dim_int, prod)
  TPU_META(reflection_pad1d, reflection_pad1d_symint)
  TPU_META(reflection_pad1d_backward, reflection_pad1d_backward_symint)
  TPU_META(reflection_pad3d, reflection_pad3d_symint)
  TPU_META(reflection_pad3d_backward, reflection_pad3d_backward_symint) TPU_META(remainder_Tensor, remainder)
  TPU_META(replication_pad1d, replication_pad1d_symint)
  TPU_META(replication_pad1d_backward, replication_pad1d_backward_symint)
  TPU_META(replication_pad2d, replication_pad2d_symint) TPU_META(replication_pad3d, replication_pad3d_symint)
  TPU_META(round_decimals, round) TPU_META(scatter_reduce, scatter)
  TPU_META(scatter_reduce_two, scatter_reduce) TPU_META(scatter_src, scatter) TPU_META(scatter_value, scatter)
  TPU_META(scatter_value_reduce, scatter) TPU_META(sort_stable, sort) TPU_META(sub_Tensor, sub)
  TPU_META(sum_dim_IntList, sum) TPU_META(topk, topk_symint) TPU_META(tril, tril_symint)
  TPU_META(triu, triu_symint) TPU_META(upsample_bicubic2d, upsample_bicubic2d_symint)
  TPU_META(upsample_bicubic2d_backward, upsample_bicubic2d_backward_symint)
  TPU_META(upsample_bilinear2d, upsample_bilinear2d_symint)
  TPU_META(upsample_bilinear2d_backward, upsample_bilinear2d_backward_symint)
  TPU_META(upsample_linear1d, upsample_linear1d_symint)
  TPU_META(upsample_linear1d_backward, upsample_linear1d_backward_symint)
  TPU_META(upsample_nearest1d, upsample_nearest1d_symint)
  TPU_META(upsample_nearest1d_backward, upsample_nearest1d_backward_symint)
  TPU_META(upsample_nearest2d, upsample_nearest2d_symint)
  TPU_META(upsample_nearest2d_backward, upsample_nearest2d_backward_symint)
  TPU_META(upsample_nearest3d, upsample_nearest3d_symint)
  TPU_META(upsample_nearest3d_backward, upsample_nearest3d_backward_symint)
  TPU_META(upsample_trilinear3d, upsample_trilinear3d_symint)
  TPU_META(upsample_trilinear3d_backward, upsample_trilinear3d_backward_symint) TPU_META(xlogy_Tensor, xlogy)
      // clang-format on
      return kernels;
}

}  // namespace

const c10::KernelFunction* cpp_meta(const c10::OperatorName& name) {
  static const auto* kernels = new Kernels(all());
  const auto at = kernels->find(name);
  return at == kernels->end() ? nullptr : &at->second;
}

}  // namespace tpu::torch_shim
