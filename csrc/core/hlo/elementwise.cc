#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/hlo/functions.h"

namespace tpu::hlo {
namespace {

Value unary(const char* op, Value x, const char* attributes = "") {
  return x.builder().emit(op, {x}, x.type(), attributes);
}

Value binary(const char* op, Value x, Value y) {
  if (x.dtype() != y.dtype())
    throw Error(Code::Internal, op, text("operands are ", x.type().str(), " and ", y.type().str()));
  const Dims dims = broadcast_dims(x.dims(), y.dims());
  return x.builder().emit(op, {broadcast_to(x, dims), broadcast_to(y, dims)}, Type{x.dtype(), dims});
}

}  // namespace

Value abs(Value x) {
  if (is_unsigned_int(x.dtype()) || x.dtype() == DType::Bool) return x;
  return x.builder().emit("stablehlo.abs", {x}, Type{real_of(x.dtype()), x.dims()});
}
Value negate(Value x) { return unary("stablehlo.negate", x); }
Value exp(Value x) { return unary("stablehlo.exponential", x); }
Value expm1(Value x) { return unary("stablehlo.exponential_minus_one", x); }
Value log(Value x) { return unary("stablehlo.log", x); }
Value log1p(Value x) { return unary("stablehlo.log_plus_one", x); }
Value sqrt(Value x) { return unary("stablehlo.sqrt", x); }
Value rsqrt(Value x) { return unary("stablehlo.rsqrt", x); }
Value cbrt(Value x) { return unary("stablehlo.cbrt", x); }
Value sin(Value x) { return unary("stablehlo.sine", x); }
Value cos(Value x) { return unary("stablehlo.cosine", x); }
Value tan(Value x) { return unary("stablehlo.tan", x); }
Value tanh(Value x) { return unary("stablehlo.tanh", x); }
Value logistic(Value x) { return unary("stablehlo.logistic", x); }
Value erf(Value x) { return unary("chlo.erf", x); }
Value floor(Value x) { return unary("stablehlo.floor", x); }
Value ceil(Value x) { return unary("stablehlo.ceil", x); }
Value round_even(Value x) { return unary("stablehlo.round_nearest_even", x); }
Value sign(Value x) {
  if (is_unsigned_int(x.dtype())) return minimum(x, like(x, 1));
  if (x.dtype() == DType::Bool) return x;
  return unary("stablehlo.sign", x);
}
Value logical_not(Value x) { return unary("stablehlo.not", x); }
Value popcount(Value x) { return unary("stablehlo.popcnt", x); }
Value count_leading_zeros(Value x) { return unary("stablehlo.count_leading_zeros", x); }
Value is_finite(Value x) { return x.builder().emit("stablehlo.is_finite", {x}, Type{DType::Bool, x.dims()}); }
Value is_nan(Value x) {
  if (is_complex(x.dtype())) return is_nan(real(x)) | is_nan(imag(x));
  if (!is_float(x.dtype())) return full(x.builder(), 0, Type{DType::Bool, x.dims()});
  return not_equal(x, x);
}
Value real(Value x) {
  return is_complex(x.dtype()) ? x.builder().emit("stablehlo.real", {x}, Type{real_of(x.dtype()), x.dims()})
                               : x;
}
Value imag(Value x) {
  return is_complex(x.dtype()) ? x.builder().emit("stablehlo.imag", {x}, Type{real_of(x.dtype()), x.dims()})
                               : full_like(x, 0);
}

Value add(Value x, Value y) { return binary("stablehlo.add", x, y); }
Value subtract(Value x, Value y) { return binary("stablehlo.subtract", x, y); }
Value multiply(Value x, Value y) { return binary("stablehlo.multiply", x, y); }
Value divide(Value x, Value y) { return binary("stablehlo.divide", x, y); }
Value remainder(Value x, Value y) { return binary("stablehlo.remainder", x, y); }
Value maximum(Value x, Value y) { return binary("stablehlo.maximum", x, y); }
Value minimum(Value x, Value y) { return binary("stablehlo.minimum", x, y); }
Value power(Value x, Value y) { return binary("stablehlo.power", x, y); }
Value atan2(Value y, Value x) { return binary("stablehlo.atan2", y, x); }
Value logical_and(Value x, Value y) { return binary("stablehlo.and", x, y); }
Value logical_or(Value x, Value y) { return binary("stablehlo.or", x, y); }
Value logical_xor(Value x, Value y) { return binary("stablehlo.xor", x, y); }
Value shift_left(Value x, Value y) { return binary("stablehlo.shift_left", x, y); }
Value shift_right_arithmetic(Value x, Value y) { return binary("stablehlo.shift_right_arithmetic", x, y); }
Value shift_right_logical(Value x, Value y) { return binary("stablehlo.shift_right_logical", x, y); }
Value complex(Value re, Value im) {
  const Dims dims = broadcast_dims(re.dims(), im.dims());
  return re.builder().emit("stablehlo.complex", {broadcast_to(re, dims), broadcast_to(im, dims)},
                           Type{complex_of(re.dtype()), dims});
}

Value compare(Value x, Value y, Compare direction) {
  if (x.dtype() != y.dtype())
    throw Error(Code::Internal, "compare", text("operands are ", x.type().str(), " and ", y.type().str()));
  if (is_complex(x.dtype()) && direction != Compare::EQ && direction != Compare::NE)
    throw Error(Code::Unimplemented, "compare", "complex numbers have no order");
  static const char* names[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
  const DType t = x.dtype();
  const char* kind = is_float(t) || is_complex(t) ? "FLOAT" : is_signed_int(t) ? "SIGNED" : "UNSIGNED";
  const Dims dims = broadcast_dims(x.dims(), y.dims());
  return x.builder().emit(
      "stablehlo.compare", {broadcast_to(x, dims), broadcast_to(y, dims)}, Type{DType::Bool, dims},
      text("comparison_direction = #stablehlo<comparison_direction ", names[static_cast<int>(direction)],
           ">, compare_type = #stablehlo<comparison_type ", kind, ">"));
}

Value select(Value condition, Value x, Value y) {
  if (x.dtype() != y.dtype())
    throw Error(Code::Internal, "select", text("branches are ", x.type().str(), " and ", y.type().str()));
  const Dims dims = broadcast_dims(condition.dims(), broadcast_dims(x.dims(), y.dims()));
  return x.builder().emit("stablehlo.select",
                          {broadcast_to(condition, dims), broadcast_to(x, dims), broadcast_to(y, dims)},
                          Type{x.dtype(), dims});
}

Value like(Value x, double value) { return x.builder().constant(value, x.dtype()); }

Value convert(Value x, DType dtype) {
  const DType from = x.dtype();
  if (from == dtype) return x;
  if (dtype == DType::Bool) return not_equal(x, like(x, 0));
  if (is_complex(from) && !is_complex(dtype)) return convert(real(x), dtype);
  if (!is_complex(from) && is_complex(dtype)) {
    Value re = convert(x, real_of(dtype));
    return complex(re, full_like(re, 0));
  }
  // Through a wide signed integer, as the CPU does: values out of range wrap and do not saturate.
  if (is_float(from) && is_int(dtype) && size_of(dtype) < 4) return convert(convert(x, DType::S32), dtype);
  if (is_float(from) && dtype == DType::U32) return convert(convert(x, DType::S64), dtype);
  return x.builder().emit("stablehlo.convert", {x}, Type{dtype, x.dims()});
}

Value bitcast(Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return x.builder().emit("stablehlo.bitcast_convert", {x}, Type{dtype, x.dims()});
}

Value full(Builder& b, double value, const Type& type) {
  return broadcast_to(b.constant(value, type.dtype), type.dims);
}
Value full_like(Value x, double value) { return full(x.builder(), value, x.type()); }

Value lowest(Builder& b, DType t) {
  if (is_float(t)) return b.constant(-INFINITY, t);
  if (t == DType::Bool || is_unsigned_int(t)) return b.constant(0, t);
  return b.constant(std::numeric_limits<int64_t>::min() >> (64 - 8 * size_of(t)), t);
}
Value highest(Builder& b, DType t) {
  if (is_float(t)) return b.constant(INFINITY, t);
  if (t == DType::Bool) return b.constant(1, t);
  if (is_unsigned_int(t)) return b.constant(int64_t{-1}, t);
  return b.constant(std::numeric_limits<int64_t>::max() >> (64 - 8 * size_of(t)), t);
}

}  // namespace tpu::hlo
