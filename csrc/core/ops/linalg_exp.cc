// The matrix exponential.
#include <cmath>

#include "core/ops/linalg.h"
#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// The Taylor polynomial of degree 16, as one of degree 4 in a^4 (Paterson and Stockmeyer 1973).
Value taylor(Value a) {
  Value square = times(a, a);
  const Value powers[] = {eye(a.builder(), a.dtype(), a.size(1), a.size(1)), a, square, times(square, a)};
  Value fourth = times(square, square), sum = fourth * (1 / std::tgamma(17.0));
  for (int block = 12; block >= 0; block -= 4) {
    for (int i = 0; i < 4; i++) sum = sum + powers[i] * (1 / std::tgamma(block + i + 1.0));
    if (block > 0) sum = times(sum, fourth);
  }
  return sum;
}

// Scaling and squaring: exp(a) = exp(a / 2^s)^(2^s), with s of each matrix such that the polynomial is exact
// to rounding.
Results matrix_exp(Call& c) {
  Value a = matrices(c, "self");
  if (a.elements() == 0) return a;
  a = as_batch(a);
  const bool wide = real_of(a.dtype()) == DType::F64;
  const double reach = wide ? 0.8 : 1.5;
  Value norm = reshape(reduce_max(reduce_sum(abs(a), {1}), {1}), {a.size(0), 1, 1});
  // Beyond that even the square roots overflow; NaN is not scaled.
  Value most = like(norm, wide ? 1024 : 128);
  Value halvings = ceil(log2(norm / reach));
  halvings = select(halvings > 0.0, minimum(halvings, most), like(norm, 0));
  Value result = taylor(a * cast_like(exp2(negate(halvings)), a));
  Value rounds = convert(halvings, DType::S32);
  result = repeat(c.b.constant(0, DType::S32), reduce_max(rounds, {0, 1, 2}), {result}, {rounds},
                  [](Value i, const Values& state, const Values& in) -> Values {
                    return {select(in[0] > i, times(state[0], state[0]), state[0])};
                  })[0];
  return reshape(result, c.out().dims);
}

}  // namespace

void linalg_exp(Table& t) { t.op("linalg_matrix_exp", matrix_exp); }

}  // namespace tpu::ops
