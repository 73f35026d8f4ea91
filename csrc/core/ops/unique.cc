// Runs of equal neighbours and distinct values: everything at its largest size, and the number of what
// counts.
#include "core/ops/indexing.h"
#include "core/ops/order.h"
#include "core/ops/scan.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

Value comparable(Value x) { return x.dtype() == DType::Bool ? convert(x, DType::U8) : x; }
Value flat(Value x) { return reshape(x, {x.elements()}); }

// True where a row of x (an element, when x is 1-d) differs from the one before it; true for the first.
Value starts(Value x) {
  const int64_t n = x.size(0);
  Value differs = not_equal(slice_dim(x, 0, 1, n), slice_dim(x, 0, 0, n - 1));
  if (x.rank() > 1) differs = reduce_or(differs, {1});
  return pad(differs, x.builder().constant(1, DType::Bool), {1}, {0});
}

// Of the runs that begin at `start`: the position of each one's first element, the run of each element, each
// one's length, how many there are. The vectors keep start's length; what lies past the number is
// unspecified.
struct Runs {
  Value from, run, length, number;
};
Runs runs(Call& c, Value start) {
  const int64_t n = start.elements();
  const DType t = position_type(2 * n);
  Value run = scan_along(convert(start, t), 0, add) - c.b.constant(1, t);
  Value last = slice(run, {n - 1}, {n}), number = last + like(last, 1);
  Value from = compact(c, start), j = iota(c.b, t, {n}, 0);
  Value end = pad(slice(from, {1}, {n}), c.b.constant(n, t), {0}, {1});
  end = select(j < last, end, c.b.constant(n, t));
  return {from, convert(run, DType::S64), convert(end - from, DType::S64),
          reshape(convert(number, DType::S64), {})};
}

// For each line of x along its last dimension how many different elements are below each one.
Value dense_ranks(Call& c, Value x) {
  const int last = x.rank() - 1;
  const int64_t n = x.size(last);
  auto [sorted, position] = order(c, x, last, false);
  Value rank =
      convert(not_equal(slice_dim(sorted, last, 1, n), slice_dim(sorted, last, 0, n - 1)), DType::S64);
  rank = scan_along(pad(rank, c.b.constant(0, DType::S64), {0, 1}, {0, 0}), last, add);
  return scatter_along(full_like(rank, 0), last, position, rank, nullptr);
}

// The place of each row of [n, m] in their lexicographic order, equal rows sharing one: neighbouring columns
// are ranked as pairs until one column is left.
Value row_ranks(Call& c, Value x) {
  const int64_t n = x.size(0);
  Value rank = dense_ranks(c, transpose(x, {1, 0}));
  while (rank.size(0) > 1) {
    const int64_t columns = rank.size(0);
    if (columns % 2) rank = pad(rank, c.b.constant(0, DType::S64), {0, 0}, {1, 0});
    Value first = slice_dim(rank, 0, 0, columns, 2), second = slice_dim(rank, 0, 1, columns + columns % 2, 2);
    rank = dense_ranks(c, first * static_cast<double>(n) + second);
  }
  return flat(rank);
}

// Neighbours of x (rows or elements) that are equal, as one. (values, inverse, counts, number)
Results consecutive(Call& c, Value x, const Dims& shape) {
  if (x.size(0) == 0) {
    Value none = full(c.b, 0, {DType::S64, {0}});
    return {x, reshape(none, shape), none, c.b.constant(0, DType::S64)};
  }
  const Runs r = runs(c, starts(comparable(x)));
  return {take_rows(x, r.from), reshape(r.run, shape), r.length, r.number};
}

// All that are equal, in the order of `key`, one number for each row of x.
Results distinct(Call& c, Value x, Value key, const Dims& shape) {
  auto [sorted, position] = order(c, key, 0, false);
  const Runs r = runs(c, starts(sorted));
  Value inverse = write(r.run, {{0}, {position}}, r.run, nullptr);
  return {take_rows(x, take_rows(position, r.from)), reshape(inverse, shape), r.length, r.number};
}

}  // namespace

// A part of the sort family: for operators whose result's size depends on data.
void unique(Table& t) {
  // tpu::unique_padded(self) -> (values, s64 inverse, s64 counts, s64 number), sorted
  t.op("tpu::unique_padded",
       [](Call& c) -> Results {
         Value self = c.tensor("self"), x = flat(self);
         if (x.elements() == 0) return consecutive(c, x, self.dims());
         return distinct(c, x, comparable(x), self.dims());
       },
       {.infer = true});
  // The same for the rows of a matrix that is not empty.
  t.op("tpu::unique_rows_padded",
       [](Call& c) -> Results {
         Value x = c.tensor("self");
         return distinct(c, x, row_ranks(c, comparable(x)), {x.size(0)});
       },
       {.infer = true});
  // tpu::unique_consecutive_padded(self) -> the same for runs of equal neighbours
  t.op("tpu::unique_consecutive_padded",
       [](Call& c) -> Results {
         Value self = c.tensor("self");
         return consecutive(c, flat(self), self.dims());
       },
       {.infer = true});
  t.op("tpu::unique_consecutive_rows_padded",
       [](Call& c) -> Results {
         Value x = c.tensor("self");
         return consecutive(c, x, {x.size(0)});
       },
       {.infer = true});
}

}  // namespace tpu::ops
