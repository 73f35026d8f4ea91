// Derivatives of gamma and beta samples with respect to their parameters (implicit reparameterisation): for a
// sample x of a distribution with cdf F and density p, dx / da = -(dF / da) / p.
#include <optional>

#include "core/ops/gamma.h"
#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

void gamma_gradients(Table& t);

using namespace hlo;

namespace {

constexpr double kEnd = 1e-17, kSteps = 20000;

// The sum of t_k and its derivative by a parameter a, where t_0 = 1 and
// t_k = t_(k-1) x (top + k - 1) / (bottom + k), without the factor of `top` when there is none. `top` rises
// with a; bottom is a itself or does not depend on it. All f64 of one shape.
struct Series {
  Value sum, slope;
};
Series series(std::optional<Value> top, Value bottom, Value x, bool bottom_is_a) {
  Value zero = full_like(x, 0), one = full_like(x, 1);
  const auto factors = [&top](const Values& v) {
    Value over = top ? v[1] + v[0] : full_like(v[3], 1), under = v[2] + v[0] + 1.0;
    return std::pair(over, under);
  };
  const Values out = while_loop(
      {like(x, 0), top.value_or(one), bottom, x, one, zero, one, zero},
      [&](const Values& v) {
        // Terms may rise before they fall.
        const auto [over, under] = factors(v);
        return (v[0] < kSteps) & any((v[4] > v[6] * kEnd) | (v[3] * over > under));
      },
      [&](const Values& v) -> Values {
        const auto [over, under] = factors(v);
        Value term = v[4] * v[3] * over / under, rate = v[5];  // rate: d log(term) / da
        if (top) rate = rate + 1.0 / over;
        if (bottom_is_a) rate = rate - 1.0 / under;
        return {v[0] + 1.0, v[1], v[2], v[3], term, rate, v[6] + term, v[7] + term * rate};
      });
  return {out[6], out[7]};
}

// With P = x^a exp(-x) / gamma(a + 1) S and p = x^(a - 1) exp(-x) / gamma(a):
// -(dP / da) / p = x / a (S (digamma(a + 1) - log x) - dS / da)
Results gamma_gradient(Call& c) {
  constexpr DType t = DType::F64;
  Value a = c.tensor("self", t), x = c.tensor("output", t);
  const Dims dims = broadcast_dims(a.dims(), x.dims());
  a = broadcast_to(a, dims), x = maximum(broadcast_to(x, dims), c.b.constant(1e-300, t));
  const DType kept = c.dtype_of("self");
  constexpr double kLarge = 1e5;
  Value large = a > kLarge, sa = select(large, full_like(a, 1), a), sx = select(large, full_like(x, 1), x);
  const Series s = series({}, sa, sx, true);
  Value out = sx / sa * (s.sum * (digamma(sa + 1.0) - log(sx)) - s.slope);
  // x = a + sqrt(a) z + (z^2 - 1) / 3 + ... with a normal z
  Value square = (x - a) * (x - a) / a;
  out = select(large, 1.0 + (x - a) / (2.0 * a) - (square - 1.0) / (6.0 * a), out);
  return convert(out, kept);
}

// _dirichlet_grad(x, alpha, total): -(dI / da) / p / (1 - x) for I = I_x(a, b), a = alpha, b = total - alpha.
// I / p = x (1 - x) / a F(x) below the mean; above it the same of 1 - I = I_(1-x)(b, a).
Results beta_gradient(Call& c) {
  constexpr DType t = DType::F64;
  Value x = c.tensor("x", t), a = c.tensor("alpha", t), total = c.tensor("total", t);
  const Dims dims = broadcast_dims(broadcast_dims(x.dims(), a.dims()), total.dims());
  x = broadcast_to(x, dims), a = broadcast_to(a, dims), total = broadcast_to(total, dims);
  x = minimum(maximum(x, like(x, 1e-300)), like(x, 1 - 1e-16));
  Value b = total - a, log_x = log(x), psi = digamma(total);
  Value below = x <= (a + 1.0) / (total + 2.0), zero = full_like(x, 0);
  const Series f = series(total, a, select(below, x, zero), true);
  const Series g = series(total, b, select(below, zero, 1.0 - x), false);
  Value low = -x / a * (f.sum * (log_x - digamma(a + 1.0) + psi) + f.slope);
  Value high = x / b * (g.sum * (log_x - digamma(a) + psi) + g.slope);
  return convert(select(below, low, high), c.dtype_of("x"));
}

}  // namespace

// A part of the special family.
void gamma_gradients(Table& t) {
  t.op("_standard_gamma_grad", gamma_gradient, {.infer = true});
  t.op("_dirichlet_grad", beta_gradient, {.infer = true});
}

}  // namespace tpu::ops
