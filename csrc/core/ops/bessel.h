// Bessel and Airy functions of real floats, to about the precision of the type.
#pragma once

#include <span>

#include "core/ops/call.h"

namespace tpu::ops {

/// sum c[k] T_k(y), y = the interval [low, high] mapped to [-1, 1].
Value chebyshev_series(Value x, double low, double high, std::span<const double> c);

Value bessel_i0(Value x);
Value bessel_i0e(Value x);  // exp(-|x|) I0(x)
Value bessel_i1(Value x);
Value bessel_i1e(Value x);
Value bessel_k0(Value x);   // +inf at 0, NaN below
Value bessel_k0e(Value x);  // exp(x) K0(x)
Value bessel_k1(Value x);
Value bessel_k1e(Value x);
Value bessel_j0(Value x);
Value bessel_j1(Value x);
Value bessel_y0(Value x);  // -inf at 0, NaN below
Value bessel_y1(Value x);
Value spherical_bessel_j0(Value x);
Value airy_ai(Value x);

}  // namespace tpu::ops
