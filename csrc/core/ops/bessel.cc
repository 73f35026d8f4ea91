#include "core/ops/bessel.h"

#include <cmath>

#include "core/ops/bessel_tables.h"

namespace tpu::ops {

using namespace hlo;
using namespace bessel;

Value chebyshev_series(Value x, double low, double high, std::span<const double> c) {
  // Clenshaw's recurrence on 2y.
  Value y = (x - (low + high) / 2) * (4 / (high - low));
  Value b1 = full_like(x, c.back()), b2 = full_like(x, 0);
  for (size_t k = c.size() - 1; k-- > 1;) {
    Value b0 = y * b1 - b2 + c[k];
    b2 = b1, b1 = b0;
  }
  return y * 0.5 * b1 - b2 + c[0];
}

namespace {

// Guards a branch that is not taken from arguments where it would divide by zero or overflow.
Value at_least(Value x, double bound) { return maximum(x, like(x, bound)); }
Value at_most(Value x, double bound) { return minimum(x, like(x, bound)); }

// f(0) = pole, NaN below zero.
Value with_pole(Value x, Value y, double pole) {
  y = select(equal(x, like(x, 0)), full_like(x, pole), y);
  return select(x < 0.0, full_like(x, NAN), y);
}

// exp(-|x|) I_n(x) for x >= 0, from the near and far series.
Value scaled_i(Value size, std::span<const double> near, std::span<const double> far, bool odd) {
  Value low = chebyshev_series(at_most(size, 8), 0, 8, near), wide = at_least(size, 8);
  Value high = chebyshev_series(8.0 / wide, 0, 1, far) / sqrt(wide);
  return select(size <= 8.0, odd ? low * size : low, high);
}

// K_n(x) or exp(x) K_n(x)
Value bessel_k(Value x, bool odd, bool scaled) {
  Value near_x = at_most(at_least(x, 0), 2), far_x = at_least(x, 2);
  Value square = near_x * near_x;
  Value low = chebyshev_series(square, 0, 4, odd ? std::span<const double>(kK1Near) : kK0Near);
  Value half = log(near_x * 0.5);
  low = odd ? low / near_x + half * bessel_i1(near_x) : low - half * bessel_i0(near_x);
  if (scaled) low = low * exp(near_x);
  Value high =
      chebyshev_series(2.0 / far_x, 0, 1, odd ? std::span<const double>(kK1Far) : kK0Far) / sqrt(far_x);
  if (!scaled) high = high * exp(-far_x);
  return with_pole(x, select(x <= 2.0, low, select(is_nan(x), x, high)), INFINITY);
}

// The oscillating part for x >= 8: amplitude times P and Q against cosine and sine of x - shift.
struct Wave {
  Wave(Value x, bool odd) {
    Value inverse = 8.0 / x, square = inverse * inverse;
    Value p = chebyshev_series(square, 0, 1, odd ? std::span<const double>(kP1) : kP0);
    Value q = chebyshev_series(square, 0, 1, odd ? std::span<const double>(kQ1) : kQ0) / x;
    // cos and sin of (x - pi/4) or (x - 3 pi/4) by the addition theorem: x itself is not rounded again.
    Value s = sin(x), k = cos(x);
    Value c = (odd ? s - k : s + k) * M_SQRT1_2, d = (odd ? -(s + k) : s - k) * M_SQRT1_2;
    Value amplitude = sqrt(M_2_PI / x);
    first = amplitude * (p * c - q * d), second = amplitude * (p * d + q * c);
  }
  Value first, second;  // J and Y
};

}  // namespace

Value bessel_i0e(Value x) { return scaled_i(abs(x), kI0Near, kI0Far, false); }
Value bessel_i0(Value x) {
  // exp in two factors, so that it overflows only where the result does.
  Value size = abs(x), half = exp(size * 0.5);
  return bessel_i0e(x) * half * half;
}
Value bessel_i1e(Value x) {
  Value y = scaled_i(abs(x), kI1Near, kI1Far, true);
  return select(x < 0.0, -y, y);
}
Value bessel_i1(Value x) {
  Value half = exp(abs(x) * 0.5);
  return bessel_i1e(x) * half * half;
}

Value bessel_k0(Value x) { return bessel_k(x, false, false); }
Value bessel_k0e(Value x) { return bessel_k(x, false, true); }
Value bessel_k1(Value x) { return bessel_k(x, true, false); }
Value bessel_k1e(Value x) { return bessel_k(x, true, true); }

Value bessel_j0(Value x) {
  Value size = abs(x), near_x = at_most(size, 8);
  Value low = chebyshev_series(near_x * near_x, 0, 64, kJ0Near);
  return select(size <= 8.0, low, Wave(at_least(size, 8), false).first);
}
Value bessel_j1(Value x) {
  Value size = abs(x), near_x = at_most(size, 8);
  Value low = near_x * chebyshev_series(near_x * near_x, 0, 64, kJ1Near);
  Value y = select(size <= 8.0, low, Wave(at_least(size, 8), true).first);
  return select(x < 0.0, -y, y);
}
Value bessel_y0(Value x) {
  Value near_x = at_most(at_least(x, 0), 8);
  Value low = chebyshev_series(near_x * near_x, 0, 64, kY0Near) + M_2_PI * log(near_x) * bessel_j0(near_x);
  Value y = select(x <= 8.0, low, Wave(at_least(x, 8), false).second);
  return with_pole(x, y, -INFINITY);
}
Value bessel_y1(Value x) {
  Value near_x = at_most(at_least(x, 0), 8);
  Value low = near_x * chebyshev_series(near_x * near_x, 0, 64, kY1Near) +
              M_2_PI * (log(near_x) * bessel_j1(near_x) - 1.0 / near_x);
  Value y = select(x <= 8.0, low, Wave(at_least(x, 8), true).second);
  return with_pole(x, y, -INFINITY);
}

Value spherical_bessel_j0(Value x) {
  Value y = select(equal(x, like(x, 0)), full_like(x, 1), sin(x) / x);
  return select(equal(abs(x), like(x, INFINITY)), full_like(x, 0), y);
}

Value airy_ai(Value x) {
  Value middle = chebyshev_series(at_most(at_least(x, -5), 2), -5, 2, kAiryMiddle);
  const auto zeta = [](Value v) { return v * sqrt(v) * (2.0 / 3); };
  const auto zeta_of = [](double v) { return v * std::sqrt(v) * (2.0 / 3); };

  Value up = at_least(x, 2), z = zeta(up);
  Value high = chebyshev_series(zeta_of(2) / z, 0, 1, kAiryFar) * exp(-z) / sqrt(sqrt(up));

  Value down = at_least(-x, 5);
  z = zeta(down);
  Value inverse = zeta_of(5) / z, square = inverse * inverse, angle = z + M_PI_4;
  Value low = (chebyshev_series(square, 0, 1, kAiryP) * sin(angle) -
               chebyshev_series(square, 0, 1, kAiryQ) / z * cos(angle)) /
              sqrt(sqrt(down));
  return select(x > 2.0, high, select(x < -5.0, low, middle));
}

}  // namespace tpu::ops
