// Element-wise functions of two or three tensors or numbers.
#include <cmath>

#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// The type a function with a float result computes in: integers take the result's type.
DType float_type(const Call& c, std::initializer_list<std::string_view> names) {
  const DType t = c.promoted(names);
  if (is_float(t) || is_complex(t)) return compute_type(t);
  return is_float(c.out_dtype()) ? c.compute_dtype() : DType::F32;
}

// out = f(self, other) in floats, also for integers.
template <Value (*f)(Value, Value)>
Results in_floats(Call& c) {
  const DType t = float_type(c, {"self", "other"});
  return f(c.tensor("self", t), c.tensor("other", t));
}

// f of the operands as bools.
template <Value (*f)(Value, Value)>
Results in_bools(Call& c) {
  return f(c.tensor("self", DType::Bool), c.tensor("other", DType::Bool));
}

// alpha * y; the common alpha = 1 is known when the program is built.
bool is_one(double alpha) { return alpha == 1; }
bool is_unit(const Call& c, std::string_view name) {
  return c.is_fixed(name) && !is_complex(c.dtype_of(name)) && c.number(name) == 1;
}
Value scaled(const Call& c, Value y) {
  if (is_unit(c, "alpha")) return y;
  Value alpha = c.scalar("alpha", y.dtype());
  return y.dtype() == DType::Bool ? alpha & y : alpha * y;
}

Value plus(Value x, Value y) { return x.dtype() == DType::Bool ? x | y : x + y; }
Value times(Value x, Value y) { return x.dtype() == DType::Bool ? x & y : x * y; }

Results add_scaled(Call& c) {
  const DType t = compute_type(c.promoted({"self", "other"}));
  return plus(c.tensor("self", t), scaled(c, c.tensor("other", t)));
}
Results subtract_scaled(Call& c) {
  const DType t = compute_type(c.promoted({"self", "other"}));
  return c.tensor("self", t) - scaled(c, c.tensor("other", t));
}
Results reverse_subtract_scaled(Call& c) {
  const DType t = compute_type(c.promoted({"self", "other"}));
  return c.tensor("other", t) - scaled(c, c.tensor("self", t));
}

// div.Tensor_mode(self, other, str? rounding_mode): None, "trunc" or "floor"
Results divide_rounded(Call& c) {
  if (!c.has("rounding_mode")) return in_floats<divide>(c);
  const DType t = compute_type(c.promoted({"self", "other"}));
  Value x = c.tensor("self", t), y = c.tensor("other", t);
  return c.str("rounding_mode") == "floor" ? floor_divide(x, y) : truncate(divide(x, y));
}

// pow(self, exponent). Integers: by repeated squaring, wrapping; a negative exponent gives 1, -1 or 0.
Results power_of(Call& c) {
  const DType t = compute_type(c.promoted({"self", "exponent"}));
  return power(c.tensor("self", t), c.tensor("exponent", t));
}
// The exponents that need no logarithm.
Results power_of_number(Call& c) {
  if (!c.is_fixed("exponent") || is_complex(c.dtype_of("exponent"))) return power_of(c);
  const DType t = compute_type(c.promoted({"self", "exponent"}));
  Value x = c.tensor("self", t);
  const double p = c.number("exponent");
  if (p == 0) return full_like(x, 1);
  if (p == 1) return x;
  if (p == 2) return times(x, x);
  if (p == 3) return x * x * x;
  if (is_float(t) || is_complex(t)) {
    if (p == 0.5) return sqrt(x);
    if (p == -0.5) return is_complex(t) ? 1.0 / sqrt(x) : rsqrt(x);
    if (p == -1) return 1.0 / x;
    if (p == -2) return 1.0 / (x * x);
  }
  return power_of(c);
}
bool is_simple_power(double p) {
  return p == 0 || p == 1 || p == 2 || p == 3 || p == 0.5 || p == -0.5 || p == -1 || p == -2;
}

Value x_log(Value x, Value y) { return x_log_y(x, y, hlo::log); }
Value x_log_one_plus(Value x, Value y) { return x_log_y(x, y, hlo::log1p); }

// NaN only where both are.
Value fmax(Value x, Value y) { return select(is_nan(x), y, select(is_nan(y), x, maximum(x, y))); }
Value fmin(Value x, Value y) { return select(is_nan(x), y, select(is_nan(y), x, minimum(x, y))); }

// sqrt(x^2 + y^2) without overflow; infinite when either is, also beside a NaN.
Value hypotenuse(Value x, Value y) {
  Value a = abs(x), b = abs(y), zero = like(x, 0), infinity = like(x, INFINITY);
  Value high = maximum(a, b), low = minimum(a, b), ratio = low / high;
  Value size = select(equal(high, zero), high, high * sqrt(1.0 + ratio * ratio));
  return select(equal(a, infinity) | equal(b, infinity), infinity, size);
}

// gcd by Euclid's algorithm on all elements at once; not negative.
Value gcd(Value x, Value y) {
  const Dims dims = broadcast_dims(x.dims(), y.dims());
  Dims all;
  for (size_t i = 0; i < dims.size(); i++) all.push_back(static_cast<int64_t>(i));
  return while_loop(
      {hlo::abs(broadcast_to(x, dims)), hlo::abs(broadcast_to(y, dims))},
      [&](const Values& v) {
        Value open = not_equal(v[1], like(v[1], 0));
        return all.empty() ? open : reduce_or(open, all);
      },
      [](const Values& v) -> Values {
        Value zero = like(v[0], 0), done = equal(v[1], zero);
        Value divisor = select(done, full_like(v[1], 1), v[1]);
        return {select(done, v[0], v[1]), select(done, v[1], hlo::remainder(v[0], divisor))};
      })[0];
}
Value lcm(Value x, Value y) {
  Value g = gcd(x, y), zero = like(x, 0);
  Value none = equal(g, zero);
  return select(none, full_like(g, 0), hlo::abs(divide(x, select(none, full_like(g, 1), g)) * y));
}

// x with the sign of y; numbers in y's place keep their -0.0.
Results copy_sign_of(Call& c) {
  const DType t = float_type(c, {"self", "other"});
  return copy_sign(c.tensor("self", t), c.tensor("other", t));
}

// 0 below zero, 1 above it, `values` at it; NaN counts as below.
Results heaviside(Call& c) {
  const DType t = c.promoted({"self", "values"});
  Value x = c.tensor("self", t), step = convert(hlo::compare(x, like(x, 0), Compare::GT), t);
  return select(equal(x, like(x, 0)), c.tensor("values", t), step);
}

Value log_add_exp2(Value x, Value y) {
  Value high = maximum(x, y);
  Value same = equal(x, y) & !is_finite(x);
  return select(same, x, high + log1p(exp2(-abs(x - y))) / M_LN2);
}

// Shifts by a negative amount, or by the width and more, give 0 (or the sign's fill), as on the CPU.
Value shift_left_of(Value x, Value y) {
  Value outside = (y < like(y, 0)) | (y >= like(y, 8 * size_of(y.dtype())));
  return select(outside, full_like(x, 0), shift_left(x, select(outside, full_like(y, 0), y)));
}
Value shift_right_of(Value x, Value y) {
  const int width = 8 * size_of(y.dtype());
  Value outside = (y < like(y, 0)) | (y >= like(y, width));
  if (is_unsigned_int(x.dtype()))
    return select(outside, full_like(x, 0), shift_right_logical(x, select(outside, full_like(y, 0), y)));
  return shift_right_arithmetic(x, select(outside, full_like(y, width - 1), y));
}

// self + value * tensor1 op tensor2
template <Value (*f)(Value, Value)>
Results add_scaled_pair(Call& c) {
  const DType t = compute_type(c.promoted({"self", "tensor1", "tensor2"}));
  Value first = c.tensor("tensor1", t);
  if (!is_unit(c, "value")) first = times(c.scalar("value", t), first);
  return plus(c.tensor("self", t), f(first, c.tensor("tensor2", t)));
}

// lerp: from the nearer end, so that weight 0 and 1 give the ends exactly.
Results interpolate(Call& c) {
  const DType t = c.compute_dtype();
  Value x = c.tensor("self", t), y = c.tensor("end", t), w = c.tensor("weight", t);
  return select(abs(w) < 0.5, x + w * (y - x), y - (y - x) * (1.0 - w));
}

// clamp, clamp_min, clamp_max with numbers or tensors; a NaN on any side wins, and max wins over min.
Results clamp_both(Call& c) {
  const DType t = compute_type(c.promoted({"self", "min", "max"}));
  Value x = c.tensor("self", t);
  if (c.has("min")) x = maximum(x, c.tensor("min", t));
  if (c.has("max")) x = minimum(x, c.tensor("max", t));
  return x;
}

template <Compare direction>
Value compare_to(Value x, Value y) {
  return hlo::compare(x, y, direction);
}

// Both names of a comparison, or of any operator with a Tensor and a Scalar form.
std::string both(const std::string& name) { return name + ".Tensor " + name + ".Scalar"; }
std::string all_three(const std::string& name) { return both(name) + " " + name + ".Scalar_Tensor"; }

}  // namespace

void binary(Table& t) {
  const Options unit_alpha{.fixed = {"alpha"}, .fixed_when = is_one};
  const Options unit_value{.fixed = {"value"}, .fixed_when = is_one};

  t.op("add.Tensor add.Scalar", add_scaled, unit_alpha);
  t.op("sub.Tensor sub.Scalar", subtract_scaled, unit_alpha);
  t.op("rsub.Tensor rsub.Scalar", reverse_subtract_scaled, unit_alpha);
  t.op(
      "_add_relu.Tensor _add_relu.Scalar",
      [](Call& c) -> Results {
        Value x = add_scaled(c)[0];
        return maximum(x, like(x, 0));
      },
      unit_alpha);
  t.binary<times>("mul.Tensor mul.Scalar");
  t.op("div.Tensor div.Scalar", in_floats<divide>);
  t.op("div.Tensor_mode div.Scalar_mode", divide_rounded);
  t.binary<floor_divide>("floor_divide floor_divide.Scalar");
  t.binary<floor_mod>("remainder.Tensor remainder.Scalar remainder.Scalar_Tensor");
  t.binary<hlo::remainder>("fmod.Tensor fmod.Scalar");
  t.op("pow.Tensor_Tensor pow.Scalar", power_of);
  t.op("pow.Tensor_Scalar", power_of_number, {.fixed = {"exponent"}, .fixed_when = is_simple_power});

  t.binary<hlo::maximum>("maximum");
  t.binary<hlo::minimum>("minimum");
  t.binary<fmax>("fmax");
  t.binary<fmin>("fmin");
  t.op("clamp clamp.Tensor clamp_min clamp_min.Tensor clamp_max clamp_max.Tensor", clamp_both);

  t.op("atan2", in_floats<hlo::atan2>);
  t.binary<hypotenuse>("hypot");
  t.op("copysign.Tensor copysign.Scalar", copy_sign_of);
  t.op("nextafter", [](Call& c) -> Results {
    const DType type = c.promoted({"self", "other"});
    const Dims& dims = c.out().dims;
    Value x = broadcast_to(c.tensor("self", type), dims), y = broadcast_to(c.tensor("other", type), dims);
    return c.b.emit("chlo.next_after", {x, y}, x.type());
  });
  t.binary<gcd>("gcd");
  t.binary<lcm>("lcm");
  t.op("heaviside", heaviside);
  t.op("xlogy.Tensor xlogy.Scalar_Self xlogy.Scalar_Other", in_floats<x_log>);
  t.op("special_xlog1py special_xlog1py.self_scalar special_xlog1py.other_scalar", in_floats<x_log_one_plus>);
  t.op("logaddexp", in_floats<log_add_exp>);
  t.op("logaddexp2", in_floats<log_add_exp2>);

  t.binary<hlo::logical_and>(all_three("bitwise_and"));
  t.binary<hlo::logical_or>(all_three("bitwise_or"));
  t.binary<hlo::logical_xor>(all_three("bitwise_xor"));
  t.binary<shift_left_of>(
      "bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar bitwise_left_shift.Scalar_Tensor "
      "__lshift__.Tensor __lshift__.Scalar __ilshift__.Tensor __ilshift__.Scalar");
  t.binary<shift_right_of>(
      "bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar bitwise_right_shift.Scalar_Tensor "
      "__rshift__.Tensor __rshift__.Scalar __irshift__.Tensor __irshift__.Scalar");

  t.binary<compare_to<Compare::EQ>>(both("eq"));
  t.binary<compare_to<Compare::NE>>(both("ne"));
  t.binary<compare_to<Compare::LT>>(both("lt"));
  t.binary<compare_to<Compare::LE>>(both("le"));
  t.binary<compare_to<Compare::GT>>(both("gt"));
  t.binary<compare_to<Compare::GE>>(both("ge"));
  t.op("logical_and", in_bools<hlo::logical_and>);
  t.op("logical_or", in_bools<hlo::logical_or>);
  t.op("logical_xor", in_bools<hlo::logical_xor>);

  t.op("addcmul", add_scaled_pair<times>, unit_value);
  t.op("addcdiv", add_scaled_pair<hlo::divide>, unit_value);
  t.op("lerp.Scalar lerp.Tensor", interpolate);
  t.op("where.self", [](Call& c) -> Results {
    const DType type = c.promoted({"self", "other"});
    return select(c.tensor("condition", DType::Bool), c.tensor("self", type), c.tensor("other", type));
  });
  t.op("complex", [](Call& c) -> Results {
    const DType part = real_of(c.out_dtype());
    return complex(c.tensor("real", part), c.tensor("imag", part));
  });
  t.op("polar", [](Call& c) -> Results {
    const DType part = real_of(c.out_dtype());
    Value size = c.tensor("abs", part), angle = c.tensor("angle", part);
    return complex(size * cos(angle), size * sin(angle));
  });
}

}  // namespace tpu::ops
