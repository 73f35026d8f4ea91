// Tensors made of numbers: fills, ranges, identity, index lists; and the dtype-converting copy.
#include <cmath>

#include "core/ops/indexing.h"
#include "core/ops/math.h"
#include "core/ops/scan.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// The type a range of floats is computed in, wide enough that start + i * step is rounded once. A TPU has no
// f64 unit, and uses f32.
DType range_type(const Call& c) {
  const DType t = c.out_dtype();
  if (is_complex(t)) return t;
  if (!is_float(t)) return DType::S64;
  return t == DType::F64 || c.lowering.platform == Platform::Cpu ? DType::F64 : DType::F32;
}

// arange, range: start + i * step, as many as the result holds
Results arithmetic(Call& c) {
  const DType t = range_type(c);
  Value i = convert(iota(c.b, DType::S64, c.out().dims, 0), t);
  if (c.has("step")) i = i * c.scalar("step", t);
  return c.has("start") ? i + c.scalar("start", t) : i;
}

// linspace: from both ends, so that the last element is `end` exactly
Value evenly_spaced(Call& c) {
  const DType out = c.out_dtype();
  const DType t = is_float(out) || is_complex(out) ? c.compute_dtype() : DType::F64;
  const int64_t n = c.integer("steps");
  Value start = c.tensor("start", t), end = c.tensor("end", t);
  if (n <= 1) return broadcast_to(start, c.out().dims);
  Value step = (end - start) / static_cast<double>(n - 1);
  Value index = iota(c.b, DType::S64, {n}, 0);
  Value forward = convert(index, t), backward = convert(c.b.constant(n - 1, DType::S64) - index, t);
  return select(index < c.b.constant(n / 2, DType::S64), start + step * forward, end - step * backward);
}
Results linspace(Call& c) { return evenly_spaced(c); }
// logspace: base^linspace
Results logspace(Call& c) {
  Value exponent = evenly_spaced(c);
  return power(c.scalar("base", exponent.dtype()), exponent);
}

Results identity(Call& c) {
  const Dims& dims = c.out().dims;
  return equal(iota(c.b, DType::S64, dims, 0), iota(c.b, DType::S64, dims, 1));
}

// The row and column of every element on and below (above) a diagonal, row by row: [2, n].
// n elements are told their row by counting the row starts up to them.
template <bool lower>
Results triangle(Call& c) {
  const int64_t n = c.out().dims[1], rows = c.integer("row"), columns = c.integer("col"),
                offset = c.integer("offset");
  if (n == 0) return full(c.b, 0, Type{DType::S64, {2, 0}});
  const auto number = [&](int64_t v) { return c.b.constant(v, DType::S64); };
  Value zero = number(0), width = number(columns);
  Value edge = iota(c.b, DType::S64, {rows}, 0) + number(offset + (lower ? 1 : 0));
  edge = minimum(maximum(edge, zero), width);  // one past the last column below, the first column above
  Value length = lower ? edge : width - edge;
  Value start = scan_along(length, 0, hlo::add) - length;
  Value row = convert(run_numbers(c, start, n), DType::S64);
  Value column = iota(c.b, DType::S64, {n}, 0) - take_rows(start, row);
  if (!lower) column = column + take_rows(edge, row);
  return concatenate({reshape(row, {1, n}), reshape(column, {1, n})}, 0);
}

}  // namespace

void creation(Table& t) {
  t.op("fill.Scalar fill.Tensor",
       [](Call& c) -> Results { return broadcast_to(c.tensor("value", c.out_dtype()), c.out().dims); });
  t.op("zero _efficientzerotensor", [](Call& c) -> Results { return full(c.b, 0, c.out()); });
  t.op("copy", [](Call& c) -> Results { return broadcast_to(c.tensor("src", c.out_dtype()), c.out().dims); });

  // The numbers decide the result's shape, so they are a part of the key.
  const Options numbers{.fixed = {"start", "end", "step"}};
  t.op("arange arange.start arange.start_step range range.step", arithmetic, numbers);
  t.op("tpu::arange", arithmetic);  // of a length that is known: start and step are runtime parameters
  t.op("linspace linspace.Tensor_Tensor linspace.Tensor_Scalar linspace.Scalar_Tensor", linspace);
  t.op("logspace logspace.Tensor_Tensor logspace.Tensor_Scalar logspace.Scalar_Tensor", logspace);
  t.op("eye eye.m", identity);
  t.op("tril_indices", triangle<true>);
  t.op("triu_indices", triangle<false>);
}

}  // namespace tpu::ops
