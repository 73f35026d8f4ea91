// Distributions drawn by rejection: a loop in which each round makes one attempt for every element.
#include <cmath>

#include "core/ops/math.h"
#include "core/ops/random.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// One round: two words of random bits for each element, the parameters and the state so far -> the next
// state. The state's first value is the result; `done` marks elements that are finished.
struct Attempt {
  Value first, second, done;  // u32, u32, bool
  Values parameters, state;
};
using Round = std::function<Values(const Attempt&)>;  // {done, state...}

Values reject(Call& c, const Values& parameters, const Values& start, Value done, const Round& round) {
  const Stream s = stream(c, start[0].dims());
  Values carried{c.b.constant(0, DType::U32), s.key0, s.key1, s.element, done};
  const size_t fixed = carried.size(), states = fixed + parameters.size();
  carried.insert(carried.end(), parameters.begin(), parameters.end());
  carried.insert(carried.end(), start.begin(), start.end());
  Values out = while_loop(
      carried,
      [](const Values& v) {
        Dims all;
        for (int d = 0; d < v[4].rank(); d++) all.push_back(d);
        return !reduce_and(v[4], all);
      },
      [&](const Values& v) {
        auto [first, second] = draw({v[1], v[2], v[3]}, v[0]);
        const Attempt a{
            first, second, v[4], {v.begin() + fixed, v.begin() + states}, {v.begin() + states, v.end()}};
        const Values made = round(a);
        Values next(v.begin(), v.begin() + states);
        next[0] = v[0] + v[0].builder().constant(1, DType::U32);
        next[4] = v[4] | made[0];
        for (size_t i = 1; i < made.size(); i++) next.push_back(select(v[4], a.state[i - 1], made[i]));
        return next;
      });
  return {out.begin() + states, out.end()};
}

// (0, 1) in f64 from 32 bits.
Value open_unit(Value bits) { return convert(bits, DType::F64) * 0x1p-32 + 0x1p-33; }
Value log_factorial(Value k) { return apply<"chlo.lgamma">(k + 1.0); }

// Both hat-function methods below transform a uniform point (u - 1/2, v) to k = floor((2 a / us + b) u +
// centre) and accept at once inside a box. W. Hoermann, "The transformed rejection method for generating
// Poisson random variables" (1993) and "The generation of binomial random variates" (1993).
struct Point {
  Point(const Attempt& at, Value a, Value b, Value centre)
      : u(open_unit(at.first) - 0.5), v(open_unit(at.second)) {
    us = 0.5 - abs(u);
    k = floor((2.0 * a / us + b) * u + centre);
  }
  Value u, v, us, k;
};

// poisson(self): from 10 up by transformed rejection, below by counting uniform factors until their product
// falls under exp(-rate).
Results poisson(Call& c) {
  Value rate = c.tensor("self", DType::F64), zero = like(rate, 0);
  Value none = full_like(rate, 0), done = !(rate > zero);
  Values out = reject(c, {rate}, {none, full_like(rate, 1)}, done, [](const Attempt& at) -> Values {
    Value rate = at.parameters[0], count = at.state[0], product = at.state[1];
    Value large = rate >= 10.0;
    // The small rates: two factors a round.
    Value limit = exp(-rate), one = product * open_unit(at.first), two = one * open_unit(at.second);
    Value first_in = convert(one > limit, DType::F64), second_in = convert(two > limit, DType::F64);
    Value root = sqrt(rate), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    Point p(at, a, b, rate + 0.43);
    Value box = (p.us >= 0.07) & (p.v <= 0.9277 - 3.6224 / (b - 2.0));
    Value inside = !((p.k < 0.0) | ((p.us < 0.013) & (p.v > p.us)));
    Value bound = p.k * log(rate) - rate - log_factorial(maximum(p.k, like(p.k, 0)));
    Value test = log(p.v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (p.us * p.us) + b)) <= bound;
    return {select(large, box | (inside & test), !(two > limit)),
            select(large, p.k, count + first_in + second_in), select(large, product, two)};
  });
  return select(is_nan(rate), rate, out[0]);
}

// binomial(count, prob): with at least 10 successes (of the rarer outcome) expected by transformed rejection,
// else by adding geometric waiting times until they pass count.
Results binomial(Call& c) {
  Value n = c.tensor("count", DType::F64), given = c.tensor("prob", DType::F64);
  const Dims dims = broadcast_dims(n.dims(), given.dims());
  n = broadcast_to(n, dims), given = broadcast_to(given, dims);
  Value flipped = given > 0.5, p = select(flipped, 1.0 - given, given), nothing = full_like(n, 0);
  Value done = !((n > 0.0) & (p > 0.0));
  Values out = reject(c, {n, p}, {nothing, nothing}, done, [](const Attempt& at) -> Values {
    Value n = at.parameters[0], p = at.parameters[1], count = at.state[0], waited = at.state[1];
    Value large = n * p >= 10.0, q = 1.0 - p;
    Value sum = waited + ceil(log(open_unit(at.first)) / log1p(-p)), over = sum > n;
    Value spread = sqrt(n * p * q), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
    Point x(at, a, b, n * p + 0.5);
    Value box = (x.us >= 0.07) & (x.v <= 0.92 - 4.2 / b);
    Value inside = (x.k >= 0.0) & (x.k <= n);
    Value k = minimum(maximum(x.k, like(n, 0)), n), m = floor((n + 1.0) * p);
    Value bound = log_factorial(m) + log_factorial(n - m) - log_factorial(k) - log_factorial(n - k) +
                  (k - m) * log(p / q);
    Value alpha = (2.83 + 5.1 / b) * spread;
    Value test = log(x.v * alpha / (a / (x.us * x.us) + b)) <= bound;
    return {select(large, box | (inside & test), over), select(large, k, select(over, count, count + 1.0)),
            select(large, waited, sum)};
  });
  Value hits = select(flipped, n - out[0], out[0]);
  return convert(select(is_nan(given) | is_nan(n), full_like(n, NAN), hits), c.dtype_of("count"));
}

// Gamma(alpha, 1) in alpha's type, f32 or f64. G. Marsaglia and W. Tsang, "A simple method for generating
// gamma variables" (2000); alpha below 1 goes through alpha + 1 and a power of a uniform.
Value gamma(Call& c, Value alpha) {
  const DType t = alpha.dtype();
  Value small = alpha < 1.0, boosted = select(small, alpha + 1.0, alpha);
  Value start = full_like(alpha, 0), done = !(alpha > 0.0);
  Value sample = reject(c, {boosted - 1.0 / 3.0}, {start}, done, [t](const Attempt& at) -> Values {
    Value d = at.parameters[0];
    Value x = convert(gauss(at.first), t), u = convert(open_unit(at.second), t);
    Value root = 1.0 + x / sqrt(9.0 * d), v = root * root * root;
    Value positive = root > 0.0, safe = select(positive, v, like(v, 1));
    Value accept = positive & (log(u) < 0.5 * x * x + d - d * v + d * log(safe));
    return {accept, d * v};
  })[0];
  Value u = maximum(uniform(c, {t, alpha.dims()}), c.b.constant(0x1p-25, t));
  sample = select(small, sample * power(u, 1.0 / select(small, alpha, like(alpha, 1))), sample);
  return select(is_nan(alpha), alpha, sample);
}

// The smallest normal number of a type: samples are positive.
Value tiny(Call& c, DType t) {
  return c.b.constant(t == DType::F64 ? 0x1p-1022 : t == DType::F16 ? 0x1p-14 : 0x1p-126, compute_type(t));
}

}  // namespace

void rejection(Table& t) {
  t.op("poisson", poisson);
  t.op("binomial", binomial, {.infer = true});
  t.op("_standard_gamma", [](Call& c) -> Results {
    return maximum(gamma(c, c.tensor("self", c.compute_dtype())), tiny(c, c.out_dtype()));
  });
  // Gamma variables over their sum, along the last dimension.
  t.op("_sample_dirichlet",
       [](Call& c) -> Results {
         const DType own = c.dtype_of("self");
         Value x = maximum(gamma(c, c.tensor("self", compute_type(own))), tiny(c, own));
         Value total = unsqueeze(reduce_sum(x, {x.rank() - 1}), x.rank() - 1);
         return convert(maximum(x / total, tiny(c, own)), own);
       },
       {.infer = true});
}

}  // namespace tpu::ops
