// Random numbers for lowerings: Threefry-2x32 with 20 rounds, keyed by the generator's seed and counting from
// its offset. The same seed and offset give the same numbers on every platform.
#pragma once

#include <utility>

#include "core/ops/call.h"

namespace tpu::ops {

/// One block of Threefry-2x32-20 for each counter: two words of 32 random bits. All operands are u32 and
/// broadcast together.
std::pair<Value, Value> threefry(Value key0, Value key1, Value counter0, Value counter1);

/// Uniform u32 of the given shape.
Value bits32(Call& c, const Dims& dims);
/// Uniform u64 of the given shape.
Value bits64(Call& c, const Dims& dims);
/// Uniform floats in [0, 1) with every bit of the type's mantissa random. The values are exact in type.dtype;
/// they come in its compute type (f32 for f16 and bf16).
Value uniform(Call& c, const Type& type);
/// Standard normal floats, in the compute type of type.dtype.
Value normal(Call& c, const Type& type);

/// The generator for rejection loops: a key of its own for this call, from which each round of a loop draws.
/// Key and element numbers are values to pass through the loop's state.
struct Stream {
  Value key0, key1;  // u32 scalars
  Value element;     // u32, the shape of the result
};
Stream stream(Call& c, const Dims& dims);
/// Two words of 32 bits for each element in round `round` (a u32 scalar), independent of other rounds.
std::pair<Value, Value> draw(const Stream& s, Value round);
/// f32 in [0, 1), 24 bits, of u32 words.
Value unit(Value bits);
/// Standard normal f32 of u32 words.
Value gauss(Value bits);

}  // namespace tpu::ops
