// Reductions over consecutive segments of a dimension.
#include <cmath>

#include "core/ops/indexing.h"
#include "core/ops/order.h"
#include "core/ops/scan.h"
#include "core/ops/table.h"

namespace tpu::ops {

void segments(Table& t);

using namespace hlo;

namespace {

// Data seen as [outer, extent, inner], cut along its middle by offsets (or lengths) [outer, segments].
struct Segments {
  Segments(Call& c, Value data) {
    const bool by_length = !c.has("offsets");
    Value given = c.tensor(by_length ? "lengths" : "offsets", DType::S64);
    axis = given.rank() - 1;
    const Dims& d = data.dims();
    outer = hlo::product({d.begin(), d.begin() + axis});
    extent = d[axis];
    inner = hlo::product({d.begin() + axis + 1, d.end()});
    count = given.size(axis) - (by_length ? 0 : 1);
    shape = d;
    shape[axis] = count;
    if (count == 0) return;  // the result has no elements
    given = reshape(given, {outer, given.size(axis)});
    // The segment of a position is the number of bounds up to it.
    Value position = iota(c.b, DType::S64, {outer, extent}, 1), segment;
    if (by_length) {
      segment = search(scan_along(given, 1, add), position, true);
      length = given;
    } else {
      segment = search(given, position, true);
      segment = segment - like(segment, 1);
      length = slice_dim(given, 1, 1, count + 1) - slice_dim(given, 1, 0, count);
    }
    // One row past the end of each block takes the positions of no segment.
    Value last = c.b.constant(count, segment.dtype());
    segment = select(segment < like(segment, 0), last, minimum(segment, last));
    const DType t = position_type(outer * (count + 1));
    row = convert(segment, t) + iota(c.b, t, {outer, extent}, 0) * c.b.constant(count + 1, t);
    row = reshape(row, {outer * extent});
  }

  // [outer * extent, inner], reduced into segments that start from `initial`: [outer, count, inner].
  Value reduce(Value rows, Value initial, const Combine& combine) const {
    Value start = broadcast_to(initial, {outer * (count + 1), inner});
    Value out = reshape(write(start, {{0}, {row}}, rows, combine), {outer, count + 1, inner});
    return slice_dim(out, 1, 0, count);
  }
  // [outer, count, inner] brought back to its positions: [outer * extent, inner]; zeros outside of segments.
  Value spread(Value x) const {
    x = pad(x, like(x, 0), {0, 0, 0}, {0, 1, 0});
    return take_rows(reshape(x, {outer * (count + 1), inner}), row);
  }
  Value rows(Value data) const { return reshape(data, {outer * extent, inner}); }
  Value lengths(DType t) const { return unsqueeze(convert(length, t), 2); }

  int axis;
  int64_t outer, extent, inner, count;
  Dims shape;  // the result's
  Value row, length;
};

// segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe, initial)
Results segment_reduce(Call& c) {
  const DType kept = c.dtype_of("data"), t = compute_type(kept);
  Value data = c.tensor("data", t);
  const Segments s(c, data);
  if (hlo::product(s.shape) == 0) return full(c.b, 0, {kept, s.shape});
  const std::string name = c.str("reduce");
  const std::string start = name == "max" ? "amax" : name == "min" ? "amin" : name;
  Value initial = c.has("initial") ? c.scalar("initial", t) : neutral(c.b, start, t);
  Value out = s.reduce(s.rows(data), initial, combination(start, t));
  if (name == "mean") {
    Value n = s.lengths(t), empty = equal(n, like(n, 0));
    Value nothing = c.has("initial") ? initial : c.b.constant(NAN, t);
    out = select(empty, nothing, out / n);
  }
  return convert(reshape(out, s.shape), kept);
}

// The product of the other elements of each one's segment, for elements that are 0 or NaN; `safe` is the
// product of those that are neither.
Value product_of_others(const Segments& s, Value x, Value special, Value initial) {
  const DType t = x.dtype();
  Value none = s.rows(full_like(x, 0)), one = full_like(none, 1);
  Value zero = select(equal(x, like(x, 0)), one, none), nan = select(is_nan(x), one, none);
  const auto others = [&](Value mine) { return s.spread(s.reduce(mine, like(x, 0), add)) - mine; };
  Value safe = s.spread(s.reduce(select(special, one, x), initial, multiply));
  Value out = safe * select(others(zero) > 0.0, like(x, 0), like(x, 1));
  return select(others(nan) > 0.0, x.builder().constant(NAN, t), out);
}

// _segment_reduce_backward(grad, output, data, reduce, lengths, offsets, axis, initial)
Results segment_reduce_backward(Call& c) {
  const DType kept = c.dtype_of("data"), t = compute_type(kept);
  Value data = c.tensor("data", t);
  const Segments s(c, data);
  if (data.elements() == 0 || hlo::product(s.shape) == 0) return full(c.b, 0, {kept, data.dims()});
  const auto blocks = [&](const char* name) {
    return reshape(c.tensor(name, t), {s.outer, s.count, s.inner});
  };
  const std::string name = c.str("reduce");
  Value grad = blocks("grad"), x = s.rows(data), out;
  if (name == "sum") {
    out = s.spread(grad);
  } else if (name == "mean") {
    Value n = s.lengths(t);
    out = s.spread(grad / maximum(n, like(n, 1)));
  } else if (name == "prod") {
    Value initial = c.has("initial") ? c.scalar("initial", t) : c.b.constant(1.0, t);
    Value special = equal(x, like(x, 0)) | is_nan(x), g = s.spread(grad);
    out =
        select(special, g * product_of_others(s, x, special, initial), s.spread(grad * blocks("output")) / x);
  } else {  // max, min: shared by all that reach it; as on the CPU, a negative gradient is not divided
    Value hit = is_nan(x) | equal(x, s.spread(blocks("output")));
    Value number = s.spread(s.reduce(convert(hit, t), like(x, 0), add));
    Value g = s.spread(grad);
    g = select((number >= 2.0) & (g > 0.0), g / number, g);
    out = select(hit, g, like(g, 0));
  }
  return convert(reshape(out, data.dims()), kept);
}

}  // namespace

// A part of the scan family.
void segments(Table& t) {
  t.op("segment_reduce", segment_reduce, {.infer = true});
  t.op("_segment_reduce_backward", segment_reduce_backward, {.infer = true});
}

}  // namespace tpu::ops
