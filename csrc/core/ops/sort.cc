#include <algorithm>
#include <cmath>

#include "core/ops/indexing.h"
#include "core/ops/order.h"
#include "core/ops/scan.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

// Distinct values and counts in bins; parts of the sort family.
void unique(Table& t);
void histogram(Table& t);

namespace {

Value flat(Value x) { return reshape(x, {x.elements()}); }
Value at_least_1d(Value x) { return x.rank() ? x : reshape(x, {1}); }
int dim_of(Call& c, Value x) { return c.wrap(c.integer("dim"), x.rank()); }

// sort(self, dim, descending) and sort.stable: always stable.
Results sort_of(Call& c) {
  Value x = c.tensor("self");
  if (x.elements() == 0 || x.rank() == 0) return {x, full(c.b, 0, c.out(1))};
  auto [values, positions] = order(c, x, dim_of(c, x), c.flag("descending"));
  return {values, positions};
}

// topk(self, k, dim, largest, sorted)
Results topk(Call& c) {
  Value x = at_least_1d(c.tensor("self"));
  const int dim = dim_of(c, x);
  const int64_t k = c.integer("k");
  if (c.out().elements() == 0) return {full(c.b, 0, c.out(0)), full(c.b, 0, c.out(1))};
  const bool largest = c.flag("largest");
  if (k == 1) {
    auto [value, position] = arg_reduce(x, dim, largest, DType::S64);
    return {reshape(value, c.out(0).dims), reshape(position, c.out(1).dims)};
  }
  Value line = swap_dims(x, dim, -1), positions = best(c, line, k, largest);
  Value values = take_along_dim(line, positions, -1);
  return {reshape(swap_dims(values, dim, -1), c.out(0).dims),
          reshape(swap_dims(positions, dim, -1), c.out(1).dims)};
}

// Values and positions of the element at `place` of each sorted line; place has size 1 along dim.
Results pick(Call& c, const std::pair<Value, Value>& sorted, Value place, int dim) {
  Value values = take_along_dim(sorted.first, place, dim);
  if (c.outs() == 1) return reshape(values, c.out().dims);
  return {reshape(values, c.out(0).dims), reshape(take_along_dim(sorted.second, place, dim), c.out(1).dims)};
}

Results kthvalue(Call& c) {
  Value x = at_least_1d(c.tensor("self"));
  const int dim = dim_of(c, x);
  if (c.out().elements() == 0) return {full(c.b, 0, c.out(0)), full(c.b, 0, c.out(1))};
  auto [values, positions] = order(c, x, dim, false);
  const int64_t k = c.integer("k");
  return {reshape(slice_dim(values, dim, k - 1, k), c.out(0).dims),
          reshape(slice_dim(positions, dim, k - 1, k), c.out(1).dims)};
}

// The lower of two middle elements. median: NaN when there is one; nanmedian: of the others.
template <bool skip_nan>
Results median(Call& c) {
  Value x = at_least_1d(c.tensor("self"));
  const bool whole = !c.has("dim");
  if (whole) x = flat(x);
  const int dim = whole ? 0 : dim_of(c, x);
  const int64_t n = x.dims()[dim];
  if (x.elements() == 0) {
    if (!whole) return {full(c.b, 0, c.out(0)), full(c.b, 0, c.out(1))};
    const DType t = c.out_dtype();
    return is_float(t) ? c.b.constant(NAN, t) : lowest(c.b, t);
  }
  const auto sorted = order(c, x, dim, false);
  const DType t = position_type(n);
  Dims line = x.dims();
  line[dim] = 1;
  Value place = full(c.b, static_cast<double>((n - 1) / 2), {t, line});
  if (is_float(x.dtype())) {
    // NaNs are sorted last: the count of the others is the place of the first of them.
    Value valid = unsqueeze(reduce_sum(convert(!is_nan(x), t), {dim}), dim);
    if (skip_nan)
      place = shift_right_arithmetic(maximum(valid - like(valid, 1), like(valid, 0)), like(valid, 1));
    else
      place = select(valid < c.b.constant(n, t), valid, place);
  }
  return pick(c, sorted, place, dim);
}

// The most frequent value, the smallest of several; the position of its last occurrence.
Results mode(Call& c) {
  Value x = at_least_1d(c.tensor("self"));
  const int dim = dim_of(c, x);
  if (c.out().elements() == 0) return {full(c.b, 0, c.out(0)), full(c.b, 0, c.out(1))};
  const auto sorted = order(c, x, dim, false);
  const int64_t n = x.dims()[dim];
  const DType t = position_type(n);
  Value place = iota(c.b, t, x.dims(), dim);
  if (n > 1) {
    Value same = equal(slice_dim(sorted.first, dim, 1, n), slice_dim(sorted.first, dim, 0, n - 1));
    Dims low(x.rank(), 0), high(x.rank(), 0);
    low[dim] = 1;
    same = pad(same, c.b.constant(0, DType::Bool), low, high);
    Value start = scan_along(select(same, like(place, 0), place), dim, maximum);
    place = unsqueeze(arg_reduce(place - start, dim, true, t).second, dim);
  }
  return pick(c, sorted, place, dim);
}

// searchsorted(sorted_sequence, self, out_int32, right, side, sorter) and bucketize(self, boundaries, ...)
Results searchsorted(Call& c) {
  const char* name = c.has("boundaries") ? "boundaries" : "sorted_sequence";
  const DType t = c.promoted({name, "self"});
  Value sequence = c.tensor(name, t), values = c.tensor("self", t);
  if (c.has("sorter")) {
    Value sorter = c.tensor("sorter");
    if (sequence.elements()) {
      sorter = c.index(sorter, -1, sequence.size(-1), false, Code::InvalidArgument);
      sequence = take_along_dim(sequence, sorter, -1);
    }
  }
  const bool right = c.flag("right") || (c.has("side") && c.str("side") == "right");
  if (sequence.rank() == 1) values = flat(values);
  const Dims dims = c.out().dims;
  return reshape(search(sequence, values, right), dims);
}

// isin(elements, test_elements, assume_unique, invert)
Results isin(Call& c) {
  const char* element = c.has("elements") ? "elements" : "element";
  const char* test = c.has("test_elements") ? "test_elements" : "test_element";
  const DType t = c.promoted({element, test});
  Value x = flat(c.tensor(element, t)), among = flat(c.tensor(test, t)), found;
  const int64_t n = among.elements();
  constexpr int64_t kCompared = 8;
  if (n == 0 || x.elements() == 0) {
    found = full(c.b, 0, {DType::Bool, x.dims()});
  } else if (n <= kCompared) {
    found = reduce_or(equal(unsqueeze(x, 1), unsqueeze(among, 0)), {1});
  } else {
    among = order(c, among, 0, false).first;
    Value at = search(among, x, false);
    found = equal(take_rows(among, minimum(at, c.b.constant(n - 1, at.dtype()))), x);
  }
  if (c.flag("invert")) found = !found;
  return reshape(found, c.out().dims);
}

}  // namespace

void sort(Table& t) {
  t.op("sort sort.stable", sort_of);
  t.op("topk", topk);
  t.op("kthvalue", kthvalue);
  t.op("median median.dim", median<false>);
  t.op("nanmedian nanmedian.dim", median<true>);
  t.op("mode", mode);
  t.op("searchsorted.Tensor searchsorted.Scalar bucketize.Tensor bucketize.Scalar", searchsorted);
  t.op("isin.Tensor_Tensor isin.Tensor_Scalar isin.Scalar_Tensor", isin);

  // tpu::equal(self, other): of one shape and not empty; true when all elements are equal
  t.op("tpu::equal",
       [](Call& c) -> Results {
         const DType common = c.promoted({"self", "other"});
         return reduce_and(hlo::equal(flat(c.tensor("self", common)), flat(c.tensor("other", common))), {0});
       },
       {.infer = true});
  unique(t);
  histogram(t);
}

}  // namespace tpu::ops
