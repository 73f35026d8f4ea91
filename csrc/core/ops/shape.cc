#include <algorithm>
#include <numeric>

#include "core/ops/indexing.h"
#include "core/ops/scan.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

// The distances between points; a part of the shape family.
void distance(Table& t);

namespace {

// cat(tensors, dim): in the promoted type; 1-d tensors of no elements are skipped, whatever the others' rank.
Results cat(Call& c) {
  Values parts;
  for (Value x : c.tensors("tensors", c.out_dtype()))
    if (!(x.rank() == 1 && x.dims()[0] == 0)) parts.push_back(x);
  if (parts.empty()) return full(c.b, 0, c.out());
  return parts.size() == 1 ? parts[0] : concatenate(parts, c.wrap(c.integer("dim"), parts[0].rank()));
}

Results stack(Call& c) {
  Values parts;
  const int dim = c.wrap(c.integer("dim"), c.out().rank());
  for (Value x : c.tensors("tensors", c.out_dtype())) parts.push_back(unsqueeze(x, dim));
  return concatenate(parts, dim);
}

// roll(self, shifts, dims): without dims the flattened tensor rolls.
Results roll(Call& c) {
  Value x = c.tensor("self");
  Dims shifts = c.ints("shifts"), dims = c.ints("dims");
  if (x.elements() == 0) return x;
  if (dims.empty()) x = reshape(x, {x.elements()}), dims = {0};
  for (size_t i = 0; i < dims.size() && x.rank() > 0; i++) {
    const int dim = c.wrap(dims[i], x.rank());
    const int64_t n = x.dims()[dim], by = ((shifts[i] % n) + n) % n;
    if (by) x = concatenate({slice_dim(x, dim, n - by, n), slice_dim(x, dim, 0, n - by)}, dim);
  }
  return reshape(x, c.out().dims);
}

// repeat(self, repeats): each dimension becomes (repeats, size).
Results repeat(Call& c) {
  Value x = c.tensor("self");
  const Dims repeats = c.ints("repeats");
  const size_t lead = repeats.size() - x.rank();
  Dims wide, map;
  for (size_t i = 0; i < repeats.size(); i++) {
    wide.push_back(repeats[i]);
    if (i >= lead) map.push_back(static_cast<int64_t>(wide.size())), wide.push_back(x.dims()[i - lead]);
  }
  return reshape(broadcast_in_dim(x, wide, map), c.out().dims);
}

// column - row of the last two dimensions, s32 [rows, columns]
Value offsets(Builder& b, int64_t rows, int64_t columns) {
  return iota(b, DType::S32, {rows, columns}, 1) - iota(b, DType::S32, {rows, columns}, 0);
}

template <bool lower>
Results triangle(Call& c) {
  Value x = c.tensor("self");
  Value at = offsets(c.b, x.size(-2), x.size(-1));
  const int64_t most = int64_t{1} << 30;
  Value k = c.b.constant(std::clamp(c.integer("diagonal"), -most, most), DType::S32);
  return select(lower ? at <= k : at >= k, x, like(x, 0));
}

// The permutation that brings two dimensions to the end.
Dims to_end(int rank, int dim1, int dim2) {
  Dims out;
  for (int d = 0; d < rank; d++)
    if (d != dim1 && d != dim2) out.push_back(d);
  out.push_back(dim1), out.push_back(dim2);
  return out;
}

Dims inverse(const Dims& permutation) {
  Dims out(permutation.size());
  for (size_t i = 0; i < permutation.size(); i++) out[permutation[i]] = static_cast<int64_t>(i);
  return out;
}

// base with the diagonal over dim1, dim2 replaced by source [.., length].
Value write_diagonal(Value base, Value source, int64_t offset, int dim1, int dim2) {
  const Dims order = to_end(base.rank(), dim1, dim2);
  base = transpose(base, order);
  const int64_t rows = base.size(-2), columns = base.size(-1), length = source.size(-1);
  Dims low(source.rank(), 0), high(source.rank(), 0);
  // The diagonal runs along the rows from row 0, or (below the main one) along the columns from column 0.
  high.back() = (offset >= 0 ? rows : columns) - length;
  source =
      unsqueeze(pad(source, like(source, 0), low, high), offset >= 0 ? source.rank() : source.rank() - 1);
  Value on = equal(offsets(base.builder(), rows, columns), base.builder().constant(offset, DType::S32));
  return transpose(select(on, source, base), inverse(order));
}

Value write_diagonal(Call& c, Value base, Value source, const char* offset) {
  const int rank = base.rank();
  return write_diagonal(base, source, c.integer(offset), c.wrap(c.integer("dim1"), rank),
                        c.wrap(c.integer("dim2"), rank));
}

// A slice start:end:step of a dimension of size n, clamped as Python does.
struct Range {
  Range(Call& c, int64_t n) : step(c.integer("step")) {
    const auto clamp = [n](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + n : v, 0, n); };
    start = c.has("start") ? clamp(c.integer("start")) : 0;
    const int64_t end = std::max(start, c.has("end") ? clamp(c.integer("end")) : n);
    count = (end - start + step - 1) / step;
  }
  int64_t step, start, count;
};

// `part` at start, start + step, ... of dimension dim of size n; `fill` (0-d) between and around.
Value spread(Value part, Value fill, int dim, int64_t n, int64_t start, int64_t step) {
  Dims low(part.rank(), 0), high(part.rank(), 0), interior(part.rank(), 0);
  const int64_t count = part.dims()[dim];
  low[dim] = start;
  interior[dim] = step - 1;
  high[dim] = n - start - (count ? (count - 1) * step + 1 : 0);
  return pad(part, fill, low, high, interior);
}

Results slice_scatter(Call& c) {
  Value self = c.tensor("self"), source = c.tensor("src", c.out_dtype());
  const int dim = c.wrap(c.integer("dim"), self.rank());
  const int64_t n = self.dims()[dim];
  const Range r(c, n);
  if (r.count == 0) return self;
  Value mask =
      spread(full(c.b, 1, {DType::Bool, {r.count}}), c.b.constant(0, DType::Bool), 0, n, r.start, r.step);
  return select(broadcast_in_dim(mask, self.dims(), {dim}),
                spread(source, like(self, 0), dim, n, r.start, r.step), self);
}

Results select_scatter(Call& c) {
  Value self = c.tensor("self");
  const int dim = c.wrap(c.integer("dim"), self.rank());
  const int64_t n = self.dims()[dim], at = c.integer("index"), index = at < 0 ? at + n : at;
  Value here = equal(iota(c.b, DType::S64, self.dims(), dim), c.b.constant(index, DType::S64));
  return select(here, unsqueeze(c.tensor("src", c.out_dtype()), dim), self);
}

// unfold_backward(grad_in, input_sizes, dim, size, step): sums the windows back where they came from.
Results unfold_backward(Call& c) {
  const DType t = c.compute_dtype();
  Value grad = c.tensor("grad_in", t);
  if (c.out().rank() == 0) return reduce_sum(grad, {0});
  const int dim = c.wrap(c.integer("dim"), c.out().rank());
  const int64_t size = c.integer("size"), step = c.integer("step"), n = c.out().dims[dim];
  Value out = full(c.b, 0, {t, c.out().dims});
  if (grad.elements() == 0) return out;
  constexpr int64_t kUnrolled = 16;
  const int last = grad.rank() - 1;
  if (size <= kUnrolled) {
    for (int64_t k = 0; k < size; k++)
      out = out + spread(squeeze(slice_dim(grad, last, k, k + 1), last), like(grad, 0), dim, n, k, step);
    return out;
  }
  // [.., windows, .., size] -> [.., windows * size, ..], added at window * step + k
  Dims order(grad.rank());
  std::iota(order.begin(), order.end(), 0);
  order.pop_back();
  order.insert(order.begin() + dim + 1, last);
  const int64_t windows = grad.dims()[dim];
  Dims merged = c.out().dims;
  merged[dim] = windows * size;
  const Dims both{windows, size};
  Value at = iota(c.b, DType::S32, both, 0) * c.b.constant(step, DType::S32) + iota(c.b, DType::S32, both, 1);
  return write(out, {{dim}, {reshape(at, {windows * size})}}, reshape(transpose(grad, order), merged), add);
}

Results block_diag(Call& c) {
  Values rows;
  int64_t before = 0;
  const int64_t width = c.out().dims[1];
  for (Value x : c.tensors("tensors", c.out_dtype())) {
    if (x.rank() < 2) x = reshape(x, {1, x.elements()});
    rows.push_back(pad(x, like(x, 0), {0, before}, {0, width - before - x.size(1)}));
    before += x.size(1);
  }
  return concatenate(rows, 0);
}

Results cross(Call& c) {
  const DType t = c.compute_dtype();
  const Dims& dims = c.out().dims;
  const int dim = c.wrap(c.integer("dim"), static_cast<int>(dims.size()));
  Value x = broadcast_to(c.tensor("self", t), dims), y = broadcast_to(c.tensor("other", t), dims);
  Values parts;
  for (int i = 0; i < 3; i++) {
    const auto part = [&](Value v, int k) { return slice_dim(v, dim, k % 3, k % 3 + 1); };
    parts.push_back(part(x, i + 1) * part(y, i + 2) - part(x, i + 2) * part(y, i + 1));
  }
  return concatenate(parts, dim);
}

}  // namespace

void shape(Table& t) {
  t.op("cat", cat);
  t.op("stack _stack", stack);
  t.op("flip", [](Call& c) -> Results {
    Value x = c.tensor("self");
    Dims dims = c.ints("dims");
    for (int64_t& d : dims) d = c.wrap(d, x.rank());
    return x.rank() == 0 || dims.empty() ? x : reverse(x, dims);
  });
  t.op("roll", roll);
  t.op("repeat", repeat);
  // repeat_interleave(repeats): i repeated repeats[i] times, for an output whose size is known
  t.op("repeat_interleave.Tensor", [](Call& c) -> Results {
    Value repeats = c.tensor("repeats", DType::S64);
    if (c.out().elements() == 0) return full(c.b, 0, c.out());
    Value starts = scan_along(repeats, 0, add) - repeats;
    return run_numbers(c, starts, c.out().elements());
  });
  t.op("tril", triangle<true>);
  t.op("triu", triangle<false>);
  t.op("trace", [](Call& c) -> Results {
    Value x = c.tensor("self", c.compute_dtype());
    const int64_t n = std::min(x.size(0), x.size(1)), step = x.size(1) + 1;
    if (n == 0) return full(c.b, 0, {c.compute_dtype(), {}});
    return reduce_sum(slice(reshape(x, {x.elements()}), {0}, {(n - 1) * step + 1}, {step}), {0});
  });
  t.op("diag_embed", [](Call& c) -> Results {
    return write_diagonal(c, full(c.b, 0, c.out()), c.tensor("self"), "offset");
  });
  t.op("diagonal_backward", [](Call& c) -> Results {
    return write_diagonal(c, full(c.b, 0, c.out()), c.tensor("grad_output", c.out_dtype()), "offset");
  });
  t.op("diagonal_scatter", [](Call& c) -> Results {
    return write_diagonal(c, c.tensor("self"), c.tensor("src", c.out_dtype()), "offset");
  });
  t.op("slice_scatter", slice_scatter);
  t.op("select_scatter", select_scatter);
  t.op("slice_backward", [](Call& c) -> Results {
    Value grad = c.tensor("grad_output");
    const int dim = c.wrap(c.integer("dim"), c.out().rank());
    const int64_t n = c.out().dims[dim];
    const Range r(c, n);
    return spread(grad, like(grad, 0), dim, n, r.start, r.step);
  });
  t.op("select_backward", [](Call& c) -> Results {
    const int dim = c.wrap(c.integer("dim"), c.out().rank());
    const int64_t n = c.out().dims[dim], at = c.integer("index");
    Value grad = unsqueeze(c.tensor("grad_output"), dim);
    return spread(grad, like(grad, 0), dim, n, at < 0 ? at + n : at, 1);
  });
  t.op("unfold_backward", unfold_backward);
  t.op("block_diag", block_diag);
  t.op("linalg_cross", cross);
  distance(t);
}

}  // namespace tpu::ops
