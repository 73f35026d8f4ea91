#include "core/ops/gamma.h"

#include <cmath>
#include <limits>

#include "core/ops/math.h"

namespace tpu::ops {

using namespace hlo;

Value digamma(Value x) {
  return select(equal(x, like(x, 0)), copy_sign(full_like(x, INFINITY), -x), apply<"chlo.digamma">(x));
}

Value hurwitz_zeta(Value s, Value q) {
  const Dims dims = broadcast_dims(s.dims(), q.dims());
  s = broadcast_to(s, dims), q = broadcast_to(q, dims);
  Value one = like(q, 1), pole = equal(q, floor(q)) & (q <= 0.0);
  Value undefined = (s < 1.0) | ((q <= 0.0) & not_equal(s, floor(s))) | is_nan(s) | logical_not(is_finite(q));
  Value regular = logical_not(pole | undefined);
  Value first = select(regular, q, full_like(q, 1));

  // The terms up to q + 9, or more for a negative q, one by one.
  const auto open = [](const Values& v) { return (v[1] <= 9.0) | broadcast_to(v[0] < 9.0, v[1].dims()); };
  const Values head = while_loop(
      {like(q, 0), first, power(first, -s), power(first, -s), s},
      [&](const Values& v) { return any(open(v)); },
      [&](const Values& v) -> Values {
        Value more = open(v), a = v[1] + 1.0, term = power(a, -v[4]);
        return {v[0] + 1.0, select(more, a, v[1]), select(more, term, v[2]), select(more, v[3] + term, v[3]),
                v[4]};
      });
  // The rest by the Euler-Maclaurin formula from the last term b = w^-s: B_2k / (2k)! s (s + 1) ... b / w^(2k
  // - 1).
  Value w = head[1], b = head[2], sum = head[3] + b * w / (s - 1.0) - b * 0.5;
  constexpr double kBernoulli[] = {1.0 / 12,
                                   -1.0 / 720,
                                   1.0 / 30240,
                                   -1.0 / 1209600,
                                   1.0 / 47900160,
                                   -691.0 / 1307674368000,
                                   1.0 / 74724249600,
                                   -3617.0 / 10670622842880000,
                                   43867.0 / 5109094217170944000};
  const double epsilon = q.dtype() == DType::F64 ? std::numeric_limits<double>::epsilon()
                                                 : std::numeric_limits<float>::epsilon();
  Value factor = b * (s / w), done = all_bool(q, false);
  double k = 1;
  for (double c : kBernoulli) {
    Value term = factor * c;
    done = done | logical_not(abs(term) > abs(sum) * epsilon);
    sum = select(done, sum, sum + term);
    factor = factor * ((s + k) / w) * ((s + (k + 1)) / w);
    k += 2;
  }
  sum = select(pole | equal(s, one), full_like(q, INFINITY), sum);
  return select(logical_and(undefined, logical_not(pole & (s > 1.0))), full_like(q, NAN), sum);
}

namespace {

// Computed in f64: the power x^a exp(-x) / gamma(a) cancels too many digits of an f32 for large a.
Value incomplete_gamma(Value a, Value x, bool upper) {
  Builder& b = x.builder();
  const Dims dims = broadcast_dims(a.dims(), x.dims());
  constexpr DType t = DType::F64;
  a = broadcast_to(convert(a, t), dims), x = broadcast_to(convert(x, t), dims);
  const Value infinity = b.constant(INFINITY, t), zero = b.constant(0.0, t);
  Value regular = logical_and((a > 0.0) & (x > 0.0), is_finite(a) & is_finite(x));
  Value sa = select(regular, a, full_like(a, 1)), sx = select(regular, x, full_like(x, 1));
  Value power = exp(sa * log(sx) - sx - apply<"chlo.lgamma">(sa));
  Value series = (sx <= 1.0) | (sx <= sa);
  constexpr double kEnd = 1e-17, kSteps = 4000, kLarge = 1e5;

  // P = power / a (1 + x / (a + 1) + x^2 / ((a + 1)(a + 2)) + ...)
  Value px = select(series, sx, full_like(sx, 0));
  const auto small_term = [](const Values& v) { return v[3] > v[4] * kEnd; };
  const Values sum = while_loop(
      {b.constant(0.0, t), sa, px, full_like(sx, 1), full_like(sx, 1)},
      [&](const Values& v) { return (v[0] < kSteps) & any(small_term(v)); },
      [](const Values& v) -> Values {
        Value d = v[1] + 1.0, term = v[3] * v[2] / d;
        return {v[0] + 1.0, d, v[2], term, v[4] + term};
      });
  Value lower_part = power / sa * sum[4];

  // Q = power / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)), by Lentz's method
  Value qx = select(series, sa + 10.0, sx);
  constexpr double kTiny = 1e-300;
  Value start = qx + 1.0 - sa;
  const auto away = [](Value v) { return select(abs(v) < kTiny, full_like(v, kTiny), v); };
  start = away(start);
  Value inverse = 1.0 / start;
  const Values fraction = while_loop(
      {b.constant(1.0, t), sa, qx + 1.0 - sa, full_like(qx, 1 / kTiny), inverse, inverse, full_like(qx, 2)},
      [&](const Values& v) { return (v[0] < kSteps) & any(abs(v[6] - 1.0) > 1e-16); },
      [&](const Values& v) -> Values {
        Value an = v[0] * (v[1] - v[0]), width = v[2] + 2.0;
        Value d = 1.0 / away(an * v[4] + width), k = away(width + an / v[3]);
        Value factor = d * k;
        return {v[0] + 1.0, v[1], width, k, d, v[5] * factor, factor};
      });
  Value upper_part = power * fraction[5];

  // For a large a, where either would take sqrt(a) steps: Temme's expansion about x = a, two terms of it.
  Value excess = (sx - sa) / sa, half_square = excess - log1p(excess);
  Value eta = sqrt(2.0 * half_square);
  eta = select(excess < 0.0, -eta, eta);
  Value tilt = select(abs(excess) < 1e-3, excess / 12 - 1.0 / 3, 1.0 / excess - 1.0 / eta);
  Value tail =
      apply<"chlo.erfc">(eta * sqrt(sa * 0.5)) * 0.5 + exp(-sa * half_square) / sqrt(sa * (2 * M_PI)) * tilt;
  Value large = sa > kLarge;
  upper_part = select(large, tail, upper_part);
  series = logical_and(series, logical_not(large));

  Value y =
      upper ? select(series, 1.0 - lower_part, upper_part) : select(series, lower_part, 1.0 - upper_part);
  // The edges: P(a, 0) = 0, P(0, x) = 1, P(a, inf) = 1, P(inf, x) = 0.
  Value low = full_like(y, upper ? 1 : 0), high = full_like(y, upper ? 0 : 1), none = full_like(y, NAN);
  Value a_zero = equal(a, zero), x_zero = equal(x, zero);
  Value a_far = equal(a, infinity), x_far = equal(x, infinity);
  y = select(x_far | a_zero, high, y);
  y = select(x_zero | a_far, low, y);
  Value undefined = (a_zero & x_zero) | (a_far & x_far) | (a < zero) | (x < zero) | is_nan(a) | is_nan(x);
  return select(undefined, none, y);
}

}  // namespace

Value igamma(Value a, Value x) { return incomplete_gamma(a, x, false); }
Value igammac(Value a, Value x) { return incomplete_gamma(a, x, true); }

}  // namespace tpu::ops
