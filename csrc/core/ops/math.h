// Scalar maths that several families share, beyond the operations StableHLO has. Operands have one compute
// dtype.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/ops/call.h"

namespace tpu::ops {

/// The name of an operation as a template argument.
template <size_t N>
struct OpName {
  char text[N];
  constexpr OpName(const char (&name)[N]) { std::copy_n(name, N, text); }
};

/// One operation of one operand by its MLIR name, e.g. apply<"chlo.asin">.
template <OpName name>
Value apply(Value x) {
  return x.builder().emit(name.text, {x}, x.type());
}

/// The complex conjugate; a real x as it is.
Value conjugate(Value x);
/// Bool: every element true (or false).
Value all_bool(Value x, bool value);
/// Bool: x is below zero or is -0.0 (or a NaN with its sign set); false for unsigned types and bool.
Value sign_bit(Value x);
/// |x| with the sign bit of y; floats.
Value copy_sign(Value x, Value y);
/// Nearest integer towards zero; keeps -0.0.
Value truncate(Value x);
/// 1 / (1 + exp(-x)), to full relative precision in both tails.
Value sigmoid(Value x);
/// log(1 + exp(x)) without overflow.
Value softplus(Value x);
/// 2^x; the logarithms to base 2 and 10, exact at the powers of their base.
Value exp2(Value x);
Value log2(Value x);
Value log10(Value x);
/// log(exp(x) + exp(y)) without overflow; infinities as CPU torch has them. Real or complex.
Value log_add_exp(Value x, Value y);
/// Python's x // y and x % y: rounding down, the sign of the divisor. Integers and floats.
Value floor_divide(Value x, Value y);
Value floor_mod(Value x, Value y);
/// x == 0 ? 0 : x * log(y), and NaN where y is NaN; `log` may be log1p.
Value x_log_y(Value x, Value y, Value (*log)(Value));
/// Mantissa in [0.5, 1) and exponent (S32) with x = mantissa * 2^exponent; f16, bf16, f32 and f64.
std::pair<Value, Value> frexp(Value x);
/// The sum over dims (they are removed), in x's dtype. Long extents are summed in levels, so that rounding
/// errors grow with the logarithm of the extent and not with the extent.
Value accurate_sum(Value x, const Dims& dims);
/// c[0] + c[1] x + c[2] x^2 + ...
Value polynomial(Value x, std::initializer_list<double> coefficients);

}  // namespace tpu::ops
