// The gamma function's relatives, for real floats.
#pragma once

#include "core/ops/call.h"

namespace tpu::ops {

/// -inf at 0 (+inf at -0), NaN at the negative integers.
Value digamma(Value x);
/// sum over k >= 0 of (q + k)^-s: inf at s = 1 and at q = 0, -1, ...; NaN for s < 1 and where a term is no
/// real number.
Value hurwitz_zeta(Value s, Value q);
/// The regularised incomplete gamma functions, P(a, x) and Q(a, x) = 1 - P(a, x); the result is f64.
Value igamma(Value a, Value x);
Value igammac(Value a, Value x);

}  // namespace tpu::ops
