// Element-wise functions of one tensor.
#include <cmath>

#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

constexpr double kDegree = M_PI / 180;

// -1, 0 or 1; 0 for NaN, as CPU torch has it.
Value sign_of(Value x) {
  if (is_unsigned_int(x.dtype()) || x.dtype() == DType::Bool) return hlo::sign(x);
  return convert(x > 0.0, x.dtype()) - convert(x < 0.0, x.dtype());
}

// x / |x|, 0 at 0, for complex numbers.
Value direction(Value x) {
  if (!is_complex(x.dtype())) return sign_of(x);
  Value size = abs(x);
  Value unit = complex(real(x) / size, imag(x) / size);
  return select(equal(size, like(size, 0)), full_like(x, 0), unit);
}

Value round_to_integer(Value x) { return is_float(x.dtype()) ? round_even(x) : x; }
Value round_down(Value x) { return is_float(x.dtype()) ? floor(x) : x; }
Value round_up(Value x) { return is_float(x.dtype()) ? ceil(x) : x; }
Value fraction(Value x) { return x - truncate(x); }
Value reciprocal(Value x) { return 1.0 / x; }
Value to_degrees(Value x) { return x * (1 / kDegree); }
Value to_radians(Value x) { return x * kDegree; }

Value sinc(Value x) {
  Value y = x * M_PI;
  return select(equal(x, like(x, 0)), full_like(x, 1), sin(y) / y);
}

// Is one part of x, as a bool, what `test` looks for; integers never are.
template <Value (*test)(Value)>
Results any_part(Call& c) {
  Value x = c.tensor("self");
  if (is_complex(x.dtype())) return test(real(x)) | test(imag(x));
  return is_float(x.dtype()) ? test(x) : all_bool(x, false);
}
Value infinite(Value x) { return equal(abs(x), like(x, INFINITY)); }
Value positive_infinite(Value x) { return equal(x, like(x, INFINITY)); }
Value negative_infinite(Value x) { return equal(x, like(x, -INFINITY)); }

// The largest finite value of a float type.
double largest(DType t) {
  switch (t) {
    case DType::F16:
      return 65504;
    case DType::BF16:
      return 0x1.fep127;
    case DType::F64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

// nan_to_num(Tensor self, float? nan, float? posinf, float? neginf)
Results nan_to_num(Call& c) {
  Value x = c.tensor("self");
  if (!is_float(x.dtype()) && !is_complex(x.dtype())) return x;
  const auto replace = [&](Value part) {
    const auto given = [&](const char* name, double fallback) {
      return c.has(name) ? c.scalar(name, part.dtype()) : like(part, fallback);
    };
    const double top = largest(part.dtype());
    Value y = select(is_nan(part), given("nan", 0), part);
    y = select(positive_infinite(part), given("posinf", top), y);
    return select(negative_infinite(part), given("neginf", -top), y);
  };
  return is_complex(x.dtype()) ? complex(replace(real(x)), replace(imag(x))) : replace(x);
}

// round.decimals: to a power of ten, half to even.
Results round_decimals(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  const int64_t decimals = c.integer("decimals");
  if (!is_float(x.dtype())) return x;
  if (decimals == 0) return round_even(x);
  Value ten = like(x, std::pow(10.0, std::abs(static_cast<double>(decimals))));
  return decimals > 0 ? round_even(x * ten) / ten : round_even(x / ten) * ten;
}

// angle: of the complex number x; for reals 0 or pi.
Results angle(Call& c) {
  Value x = c.tensor("self");
  if (is_complex(x.dtype())) return atan2(imag(x), real(x));
  x = convert(x, c.compute_dtype());
  return select(is_nan(x), x, select(x < 0.0, full_like(x, M_PI), full_like(x, 0)));
}

// logit(Tensor self, float? eps): log(x / (1 - x)), x clamped to [eps, 1 - eps].
Results logit(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  if (c.has("eps")) {
    Value low = c.scalar("eps", x.dtype()), high = 1.0 - low;
    x = select(x < low, low, select(x > high, high, x));
  }
  return log(x / (1.0 - x));
}

}  // namespace

void unary(Table& t) {
  t.unary<hlo::negate>("neg");
  t.unary<hlo::exp>("exp");
  t.unary<exp2>("exp2");
  t.unary<hlo::expm1>("expm1");
  t.unary<hlo::log>("log");
  t.unary<log2>("log2");
  t.unary<log10>("log10");
  t.unary<hlo::log1p>("log1p");
  t.unary<hlo::sqrt>("sqrt");
  t.unary<hlo::rsqrt>("rsqrt");
  t.unary<reciprocal>("reciprocal");

  t.unary<hlo::sin>("sin");
  t.unary<hlo::cos>("cos");
  t.unary<hlo::tan>("tan");
  t.unary<apply<"chlo.asin">>("asin");
  t.unary<apply<"chlo.acos">>("acos");
  t.unary<apply<"chlo.atan">>("atan");
  t.unary<apply<"chlo.sinh">>("sinh");
  t.unary<apply<"chlo.cosh">>("cosh");
  t.unary<hlo::tanh>("tanh");
  t.unary<apply<"chlo.asinh">>("asinh");
  t.unary<apply<"chlo.acosh">>("acosh");
  t.unary<apply<"chlo.atanh">>("atanh");
  t.unary<sinc>("sinc");
  t.unary<to_degrees>("rad2deg");
  t.unary<to_radians>("deg2rad");
  t.op("angle", angle);

  t.unary<sigmoid>("sigmoid");
  t.op("logit", logit);

  t.unary<round_down>("floor");
  t.unary<round_up>("ceil");
  t.unary<truncate>("trunc");
  t.unary<round_to_integer>("round");
  t.op("round.decimals", round_decimals);
  t.unary<fraction>("frac");

  // |x|; the modulus of a complex number is real
  t.op("abs",
       [](Call& c) -> Results { return hlo::abs(c.tensor("self", compute_type(c.dtype_of("self")))); });
  t.unary<sign_of>("sign");
  t.unary<direction>("sgn");
  t.op("signbit", [](Call& c) -> Results { return sign_bit(c.tensor("self")); });
  t.unary<conjugate>("_conj_physical conj_physical.out conj_physical_");
  t.op("nan_to_num", nan_to_num);
  t.op("frexp.Tensor", [](Call& c) -> Results {
    auto [mantissa, exponent] = frexp(c.tensor("self"));
    return {mantissa, exponent};
  });

  t.op("bitwise_not", [](Call& c) -> Results { return !c.tensor("self"); });
  t.op("logical_not", [](Call& c) -> Results { return !c.tensor("self", DType::Bool); });
  t.op("isnan", [](Call& c) -> Results { return is_nan(c.tensor("self")); });
  t.op("isinf", any_part<infinite>);
  t.op("isposinf", any_part<positive_infinite>);
  t.op("isneginf", any_part<negative_infinite>);
}

}  // namespace tpu::ops
