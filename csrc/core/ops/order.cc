#include "core/ops/order.h"

#include <algorithm>
#include <cmath>

#include "core/ops/scan.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// less(a, b) for a total order with NaN last (first when descending).
Value before(Value a, Value b, bool descending) {
  Value out = descending ? a > b : a < b;
  if (!is_float(a.dtype())) return out;
  return descending ? out | (is_nan(a) & !is_nan(b)) : out | (is_nan(b) & !is_nan(a));
}

// The bits of a float with one zero and one NaN, the positive ones. In integers, as the float comparison with
// zero may flush denormal numbers.
Value canonical_bits(Value x) {
  const DType number = x.dtype() == DType::F64 ? DType::S64 : DType::S32;
  Value bits = bitcast(x, number);
  bits = select(equal(bits, lowest(x.builder(), number)), like(bits, 0), bits);
  return select(is_nan(x), bitcast(x.builder().constant(NAN, x.dtype()), number), bits);
}

// Unsigned integers, u32 or u64, in the order of x.
Value sortable(Value x) {
  const DType t = x.dtype();
  const bool wide = size_of(t) == 8;
  const DType number = wide ? DType::S64 : DType::S32, key = wide ? DType::U64 : DType::U32;
  if (t == DType::Bool || is_unsigned_int(t)) return convert(x, key);
  Value sign = lowest(x.builder(), number);
  if (is_int(t)) return bitcast(convert(x, number) ^ sign, key);
  // Larger negative floats have larger bits: turn those round.
  Value bits = canonical_bits(convert(x, wide ? DType::F64 : DType::F32));
  return bitcast(select(bits < like(bits, 0), !bits, bits | sign), key);
}

// Sorts u32 keys by packing each with its position into one u64: XLA's CPU device sorts a single operand 15
// times as fast as two. Equal keys keep their order. Gives the positions.
Value sort_keys(Value key, int dim) {
  Value wide = convert(key, DType::U64);
  Value packed = shift_left(wide, like(wide, 32)) | iota(key.builder(), DType::U64, key.dims(), dim);
  Value sorted = sort({packed}, dim, false, [](const Values& l, const Values& r) { return l[0] < r[0]; })[0];
  return bitcast(convert(sorted, DType::U32), DType::S32);
}

// Positions of x in stable order; 64-bit keys take two rounds, the low words first.
Value sort_packed(Value x, int dim, bool descending) {
  Value key = sortable(x);
  if (descending) key = !key;
  if (key.dtype() == DType::U32) return sort_keys(key, dim);
  Value first = sort_keys(convert(key, DType::U32), dim);
  Value high = convert(shift_right_logical(key, like(key, 32)), DType::U32);
  Value second = sort_keys(take_along_dim(high, first, dim), dim);
  return take_along_dim(first, second, dim);
}

}  // namespace

Value search(Value sequence, Value values, bool right) {
  Builder& b = sequence.builder();
  const int64_t n = sequence.size(-1), m = values.size(-1),
                rows = product(values.dims()) / std::max<int64_t>(m, 1);
  const DType position = position_type(std::max(sequence.elements(), n));
  if (n == 0 || values.elements() == 0) return full(b, 0, {position, values.dims()});
  const auto passes = [right](Value element, Value value) {
    return !(right ? element > value : element >= value);
  };
  int64_t top = 1;
  while (top * 2 <= n) top *= 2;
  // Steps from the highest power of two down; a step is kept when the element before its end passes.
  Values state = while_loop(
      {full(b, 0, {position, {rows, m}}), b.constant(top, position), reshape(sequence, {rows * n}),
       reshape(values, {rows, m})},
      [](const Values& s) { return s[1] > 0.0; },
      [&](const Values& s) -> Values {
        Builder& in = s[0].builder();
        Value next = s[0] + s[1], limit = in.constant(n, position);
        Value at =
            minimum(next, limit) - like(next, 1) + iota(in, position, {rows, m}, 0) * static_cast<double>(n);
        Value element = reshape(take_rows(s[2], reshape(at, {rows * m})), {rows, m});
        Value go = (next <= limit) & passes(element, s[3]);
        return {select(go, next, s[0]), shift_right_logical(s[1], like(s[1], 1)), s[2], s[3]};
      });
  return reshape(state[0], values.dims());
}

std::pair<Value, Value> order(Call& c, Value x, int dim, bool descending) {
  const int64_t n = x.dims()[dim];
  Value position = iota(c.b, position_type(n), x.dims(), dim);
  if (n <= 1) return {x, position};
  if (c.lowering.platform == Platform::Cpu && n < (int64_t{1} << 31)) {
    position = sort_packed(x, dim, descending);
    return {take_along_dim(x, position, dim), position};
  }
  const bool flags = x.dtype() == DType::Bool;
  Values out =
      sort({flags ? convert(x, DType::U8) : x, position}, dim, true,
           [descending](const Values& l, const Values& r) { return before(l[0], r[0], descending); });
  return {convert(out[0], x.dtype()), out[1]};
}

Value best(Call& c, Value x, int64_t k, bool largest) {
  const int last = x.rank() - 1;
  const DType t = x.dtype();
  const bool fits = size_of(t) < 4 || t == DType::F32;  // exact in f32
  if (!fits || 4 * k > x.size(-1)) return slice_dim(order(c, x, last, largest).second, last, 0, k);
  // top_k has the total order of the bits: give it one zero, and a NaN of the sign that puts it on its end.
  Value bits = canonical_bits(convert(x, DType::F32));
  if (!largest) {
    Value sign = lowest(c.b, DType::S32), flipped = bits ^ sign;
    bits = select(equal(flipped, sign), like(bits, 0), flipped);
  }
  Value key = bitcast(bits, DType::F32);
  Dims dims = x.dims();
  dims[last] = k;
  return c.b.emit("chlo.top_k", {key}, {Type{DType::F32, dims}, Type{DType::S32, dims}},
                  text("k = ", k, " : i64"), {})[1];
}

namespace {

// x without the elements where the mask is false, by a scatter: they are sent past the end.
Value compact_by_scatter(Call& c, Value x, Value mask) {
  const int64_t n = mask.elements();
  const DType t = position_type(2 * n);
  Value place = scan_along(convert(mask, t), 0, add) - c.b.constant(1, t);
  place = select(mask, place, c.b.constant(n, t));
  ScatterDims d;
  d.inserted_window_dims = {0}, d.scatter_dims_to_operand_dims = {0}, d.index_vector_dim = 1;
  return scatter(full_like(x, 0), unsqueeze(place, 1), x, d, nullptr);
}

}  // namespace

Value compact(Call& c, Value mask) {
  const int64_t n = mask.elements();
  const DType t = position_type(2 * n);
  Value position = iota(c.b, t, {n}, 0);
  if (c.lowering.platform == Platform::Cpu) return compact_by_scatter(c, position, mask);
  Value key = select(mask, position, position + c.b.constant(n, t));
  Value sorted = sort({key}, 0, false, [](const Values& l, const Values& r) { return l[0] < r[0]; })[0];
  return minimum(sorted, c.b.constant(std::max<int64_t>(n - 1, 0), t));
}

Value compact(Call& c, Value x, Value mask) {
  if (c.lowering.platform == Platform::Cpu) return compact_by_scatter(c, x, mask);
  return take_rows(x, compact(c, mask));
}

}  // namespace tpu::ops
