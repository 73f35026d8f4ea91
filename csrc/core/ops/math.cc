#include "core/ops/math.h"

#include <cmath>

namespace tpu::ops {

using namespace hlo;

Value conjugate(Value x) { return is_complex(x.dtype()) ? complex(real(x), negate(imag(x))) : x; }

Value all_bool(Value x, bool value) { return full(x.builder(), value, Type{DType::Bool, x.dims()}); }

Value sign_bit(Value x) {
  const DType t = x.dtype();
  if (!is_float(t)) return is_signed_int(t) ? x < 0.0 : all_bool(x, false);
  const DType bits = size_of(t) == 2 ? DType::S16 : size_of(t) == 4 ? DType::S32 : DType::S64;
  return bitcast(x, bits) < 0.0;
}

Value copy_sign(Value x, Value y) {
  Value size = abs(x);
  return select(sign_bit(y), -size, size);
}

Value truncate(Value x) { return is_float(x.dtype()) ? select(x < 0.0, ceil(x), floor(x)) : x; }

Value sigmoid(Value x) { return 1.0 / (1.0 + exp(-x)); }

Value softplus(Value x) { return maximum(x, full_like(x, 0)) + log1p(exp(-abs(x))); }

Value exp2(Value x) {
  if (is_complex(x.dtype())) return exp(x * M_LN2);
  return power(full_like(x, 2), x);
}

std::pair<Value, Value> frexp(Value x) {
  Builder& b = x.builder();
  const DType t = x.dtype();
  const int fraction = t == DType::F64 ? 52 : t == DType::F32 ? 23 : t == DType::F16 ? 10 : 7;
  const int width = 8 * size_of(t), bias = (1 << (width - 2 - fraction)) - 1;
  const DType bits = width == 16 ? DType::S16 : width == 32 ? DType::S32 : DType::S64;
  const auto constant = [&](int64_t v) { return b.constant(v, bits); };
  // Subnormal numbers are scaled up first, so that their exponent field is not zero.
  Value tiny = abs(x) < std::ldexp(1.0, 1 - bias);
  Value scaled = select(tiny, x * std::ldexp(1.0, fraction + 1), x);
  Value raw = bitcast(scaled, bits);
  Value field =
      logical_and(shift_right_logical(raw, constant(fraction)), constant((1 << (width - 1 - fraction)) - 1));
  Value exponent = field - constant(bias - 1) - select(tiny, constant(fraction + 1), constant(0));
  const int64_t keep = ~(((int64_t{1} << (width - 1 - fraction)) - 1) << fraction);
  Value mantissa =
      bitcast(logical_or(logical_and(raw, constant(keep)), constant(int64_t{bias - 1} << fraction)), t);
  Value plain = logical_or(!is_finite(x), equal(x, like(x, 0)));
  return {select(plain, x, mantissa), convert(select(plain, constant(0), exponent), DType::S32)};
}

Value log2(Value x) {
  if (is_complex(x.dtype())) return log(x) / M_LN2;
  auto [mantissa, exponent] = frexp(x);
  // The mantissa is moved to [sqrt(1/2), sqrt(2)), where its logarithm does not cancel against the exponent.
  Value low = mantissa < M_SQRT1_2;
  Value m = select(low, mantissa + mantissa, mantissa);
  Value e = convert(exponent, x.dtype()) - convert(low, x.dtype());
  return e + log(m) / M_LN2;
}

Value log10(Value x) {
  Value y = log(x) / M_LN10;
  if (is_complex(x.dtype())) return y;
  // The quotient may miss an integer by a digit where x is a power of ten.
  Value whole = round_even(y);
  return select(equal(power(full_like(x, 10), whole), x), whole, y);
}

Value log_add_exp(Value x, Value y) {
  if (is_complex(x.dtype())) {
    Value first = real(x) >= real(y);
    Value high = select(first, x, y), low = select(first, y, x);
    return high + log1p(exp(low - high));
  }
  Value high = maximum(x, y);
  Value same = equal(x, y) & !is_finite(x);
  return select(same, x, high + log1p(exp(-abs(x - y))));
}

Value floor_mod(Value x, Value y) {
  Value zero = like(x, 0), r = remainder(x, y);
  if (is_unsigned_int(x.dtype())) return r;
  return select(not_equal(r, zero) & ((y < zero) ^ (r < zero)), r + y, r);
}

Value floor_divide(Value x, Value y) {
  Value zero = like(x, 0), one = like(x, 1);
  if (is_unsigned_int(x.dtype())) return divide(x, y);
  Value r = remainder(x, y);
  Value adjust = not_equal(r, zero) & ((y < zero) ^ (r < zero));
  if (!is_float(x.dtype())) {
    Value q = divide(x, y);
    return select(adjust, q - one, q);
  }
  // From the exact remainder, so that the result is the floor of the true quotient where that can be said.
  Value q = (x - r) / y;
  q = select(adjust, q - one, q);
  Value down = floor(q);
  down = select(q - down > 0.5, down + one, down);
  Value ratio = x / y;
  down = select(equal(q, zero), copy_sign(full_like(q, 0), ratio), down);
  return select(equal(y, zero), ratio, down);
}

Value x_log_y(Value x, Value y, Value (*log)(Value)) {
  Value plain = x * log(y);
  Value value = select(equal(x, like(x, 0)), full_like(plain, 0), plain);
  return select(is_nan(y), y, value);
}

Value accurate_sum(Value x, const Dims& dims) {
  constexpr int64_t kLeaf = 256;  // a sequential sum of this many terms is accurate enough
  if (!is_float(x.dtype()) && !is_complex(x.dtype())) return reduce_sum(x, dims);
  for (size_t i = dims.size(); i-- > 0;) {
    const int dim = static_cast<int>(dims[i]);
    const int64_t n = x.size(dim);
    if (n < 2 * kLeaf) continue;
    const int64_t blocks = n / kLeaf, whole = blocks * kLeaf;
    Dims split = x.dims();
    split[dim] = blocks;
    split.insert(split.begin() + dim + 1, kLeaf);
    Value body = reduce_sum(reshape(slice_dim(x, dim, 0, whole), split), {dim + 1});
    if (whole < n) {
      Value rest = unsqueeze(reduce_sum(slice_dim(x, dim, whole, n), {dim}), dim);
      body = concatenate({body, rest}, dim);
    }
    return accurate_sum(body, dims);
  }
  return reduce_sum(x, dims);
}

Value polynomial(Value x, std::initializer_list<double> coefficients) {
  Value y;
  for (auto c = std::rbegin(coefficients); c != std::rend(coefficients); ++c)
    y = y ? y * x + *c : full_like(x, *c);
  return y;
}

}  // namespace tpu::ops
