#include <algorithm>
#include <cmath>

#include "core/ops/math.h"
#include "core/ops/random.h"

namespace tpu::ops {

using namespace hlo;

namespace {

Value rotate(Value x, int by) {
  return shift_left(x, like(x, by)) | shift_right_logical(x, like(x, 32 - by));
}

// The unsigned word as a signed number of `bits` bits: that conversion to float is one machine instruction.
Value fraction(Value word, int bits) {
  const bool wide = word.dtype() == DType::U64;
  Value high = shift_right_logical(word, like(word, (wide ? 64 : 32) - bits));
  Value number = convert(convert(high, wide ? DType::S64 : DType::S32), wide ? DType::F64 : DType::F32);
  return number * std::ldexp(1.0, -bits);
}

// Blocks `count` of the call's stream, [count] words each.
std::pair<Value, Value> blocks(Call& c, int64_t count) {
  const Values state = c.lowering.random(std::max<int64_t>(count, 1));  // 0 would say that none are drawn
  Value low = state[2] + iota(c.b, DType::U32, {count}, 0);
  Value high = state[3] + convert(low < state[2], DType::U32);
  return threefry(state[0], state[1], low, high);
}

// M. Giles, "Approximating the erfinv function" (2010), single precision.
Value erfinv(Value x) {
  Value w = -log1p(-(x * x));
  Value centre = polynomial(w - 2.5, {1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087,
                                      -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08});
  Value tail = polynomial(sqrt(w) - 3.0, {2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773,
                                          -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257});
  return select(w < 5.0, centre, tail) * x;
}

}  // namespace

std::pair<Value, Value> threefry(Value key0, Value key1, Value counter0, Value counter1) {
  constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Value keys[3] = {key0, key1, key0 ^ key1 ^ key0.builder().constant(int64_t{0x1BD11BDA}, DType::U32)};
  Value x = counter0 + keys[0], y = counter1 + keys[1];
  for (int group = 0; group < 5; group++) {
    for (int by : kRotations[group % 2]) {
      x = x + y;
      y = rotate(y, by) ^ x;
    }
    x = x + keys[(group + 1) % 3];
    y = y + (keys[(group + 2) % 3] + like(y, group + 1));
  }
  return {x, y};
}

// The two words of block i are numbers 2 i and 2 i + 1.
Value bits32(Call& c, const Dims& dims) {
  const int64_t n = product(dims), count = (n + 1) / 2;
  auto [x, y] = blocks(c, count);
  Value both;
  if (c.lowering.platform == Platform::Cpu) {
    // Seen as one 64-bit number: XLA's CPU code for a concatenation has every round in it twice.
    Value low = convert(x, DType::U64), high = convert(y, DType::U64);
    both = c.b.emit("stablehlo.bitcast_convert", {shift_left(high, like(high, 32)) | low},
                    Type{DType::U32, {count, 2}});
  } else {
    both = concatenate({unsqueeze(x, 1), unsqueeze(y, 1)}, 1);
  }
  return reshape(slice(reshape(both, {2 * count}), {0}, {n}), dims);
}

Value bits64(Call& c, const Dims& dims) {
  auto [x, y] = blocks(c, product(dims));
  Value high = convert(x, DType::U64), low = convert(y, DType::U64);
  return reshape(shift_left(high, like(high, 32)) | low, dims);
}

Value unit(Value bits) { return fraction(bits, 24); }

// An odd number of 24 bits and a sign: symmetric, never 0 and never 1, so erfinv is finite.
Value gauss(Value bits) {
  Value number = shift_right_arithmetic(bitcast(bits, DType::S32), bits.builder().constant(8, DType::S32));
  Value odd = convert(number, DType::F32) * std::ldexp(1.0, -23) + std::ldexp(1.0, -24);
  return erfinv(odd) * M_SQRT2;
}

Value uniform(Call& c, const Type& type) {
  switch (type.dtype) {
    case DType::F64:
      return fraction(bits64(c, type.dims), 53);
    case DType::F16:
      return fraction(bits32(c, type.dims), 11);
    case DType::BF16:
      return fraction(bits32(c, type.dims), 8);
    default:
      return unit(bits32(c, type.dims));
  }
}

Value normal(Call& c, const Type& type) {
  if (type.dtype != DType::F64) return gauss(bits32(c, type.dims));
  // Box and Muller's pairs: radius from one uniform in (0, 1], angle from another.
  const int64_t n = type.elements(), half = (n + 1) / 2;
  Value u = uniform(c, {DType::F64, {2, half}});
  Value radius = sqrt(-2.0 * log(1.0 - slice(u, {0, 0}, {1, half})));
  Value angle = 2.0 * M_PI * slice(u, {1, 0}, {2, half});
  Value both = reshape(concatenate({radius * cos(angle), radius * sin(angle)}, 0), {2 * half});
  return reshape(slice(both, {0}, {n}), type.dims);
}

Stream stream(Call& c, const Dims& dims) {
  const Values state = c.lowering.random(1);
  auto [key0, key1] = threefry(state[0], state[1], state[2], state[3]);
  return {key0, key1, reshape(iota(c.b, DType::U32, {product(dims)}, 0), dims)};
}

std::pair<Value, Value> draw(const Stream& s, Value round) {
  return threefry(s.key0, s.key1, s.element, round);
}

}  // namespace tpu::ops
