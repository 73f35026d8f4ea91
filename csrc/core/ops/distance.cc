#include <cmath>

#include "core/ops/order.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// The p-norm over the last dimension.
Value norm(Value x, double p) {
  const Dims last{x.rank() - 1};
  Value size = abs(x);
  if (p == 0) return reduce_sum(convert(not_equal(x, like(x, 0)), x.dtype()), last);
  if (p == 1) return reduce_sum(size, last);
  if (p == 2) return sqrt(reduce_sum(x * x, last));
  if (std::isinf(p)) return reduce(size, like(size, 0), last, maximum);
  Value sum = reduce_sum(power(size, like(size, p)), last);
  return power(sum, like(sum, 1 / p));
}

// x [.., P, M], y [.., R, M] -> x - y [.., P, R, M]
Value differences(Value x, Value y) { return unsqueeze(x, x.rank() - 1) - unsqueeze(y, y.rank() - 2); }

// sqrt(|x|^2 + |y|^2 - 2 x.y)
Value euclidean(Value x, Value y) {
  const int rank = x.rank();
  Dims batch;
  for (int d = 0; d < rank - 2; d++) batch.push_back(d);
  Value product = dot_general(x, y, batch, batch, {rank - 1}, {rank - 1});
  Value xx = unsqueeze(reduce_sum(x * x, {rank - 1}), rank - 1),
        yy = unsqueeze(reduce_sum(y * y, {rank - 1}), rank - 2);
  Value square = xx + yy - 2.0 * product;
  return sqrt(maximum(square, like(square, 0)));
}

// d distance / d difference, times grad: all [.., P, R, M] after broadcasting distance and grad.
Value gradient(Value difference, Value distance, Value grad, double p) {
  distance = unsqueeze(distance, distance.rank()), grad = unsqueeze(grad, grad.rank());
  Value zero = like(grad, 0);
  if (p == 0) return full_like(difference, 0);
  if (p == 1) return sign(difference) * grad;
  if (std::isinf(p)) return select(equal(abs(difference), distance), sign(difference) * grad, zero);
  Value slope;
  if (p == 2)
    slope = difference / distance;
  else
    slope = sign(difference) * power(abs(difference) / distance, like(difference, p - 1));
  Value none = equal(distance, zero);
  if (p < 1) none = none | equal(difference, zero);
  return select(none, zero, slope * grad);
}

// Batches of x1 and x2 broadcast to one.
std::pair<Value, Value> operands(Call& c, DType t) {
  Value x = c.tensor("x1", t), y = c.tensor("x2", t);
  Dims batch = broadcast_dims({x.dims().begin(), x.dims().end() - 2}, {y.dims().begin(), y.dims().end() - 2});
  const auto expand = [&batch](Value v) {
    Dims dims = batch;
    dims.insert(dims.end(), v.dims().end() - 2, v.dims().end());
    return broadcast_to(v, dims);
  };
  return {expand(x), expand(y)};
}

// _cdist_forward(x1, x2, p, compute_mode): p = 2 goes through a matrix product when the mode (1: always, 2:
// never) or the sizes say so.
Results cdist(Call& c) {
  const double p = c.number("p");
  auto [x, y] = operands(c, c.compute_dtype());
  if (c.out().elements() == 0 || x.size(-1) == 0) return full(c.b, 0, c.out());
  const int64_t mode = c.has("compute_mode") ? c.integer("compute_mode") : 0;
  const bool product = mode == 1 || (mode == 0 && (x.size(-2) > 25 || y.size(-2) > 25));
  return p == 2 && product ? euclidean(x, y) : norm(differences(x, y), p);
}

Results cdist_backward(Call& c) {
  const DType t = c.compute_dtype();
  auto [x, y] = operands(c, t);
  if (c.out().elements() == 0 || y.size(-2) == 0) return full(c.b, 0, c.out());
  Value distance = c.tensor("cdist", t), grad = c.tensor("grad", t);
  Value all = gradient(differences(x, y), distance, grad, c.number("p"));
  return reshape(reduce_sum(all, {x.rank() - 1}), c.out().dims);
}

// The pairs i < j of n, in row order: their i and j as 1-d index vectors.
std::pair<Value, Value> pairs(Builder& b, int64_t n) {
  const int64_t count = n * (n - 1) / 2;
  Value i = iota(b, DType::S64, {n}, 0);
  Value start = i * static_cast<double>(n) - shift_right_arithmetic(i * (i + 1.0), b.constant(1, DType::S64));
  Value k = iota(b, DType::S64, {count}, 0);
  Value row = convert(search(start, k, true), DType::S64) - 1.0;
  return {row, k - take_rows(start, row) + row + 1.0};
}

Results pdist(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  if (c.out().elements() == 0 || x.size(1) == 0) return full(c.b, 0, c.out());
  auto [i, j] = pairs(c.b, x.size(0));
  return norm(take_rows(x, i) - take_rows(x, j), c.number("p"));
}

Results pdist_backward(Call& c) {
  const DType t = c.compute_dtype();
  Value x = c.tensor("self", t), grad = c.tensor("grad", t), distance = c.tensor("pdist", t);
  const int64_t n = x.size(0);
  if (x.elements() == 0 || n < 2) return full(c.b, 0, c.out());
  // The pair of every (row, column), in either order; the diagonal takes any.
  const Dims square{n, n};
  Value row = iota(c.b, DType::S64, square, 0), column = iota(c.b, DType::S64, square, 1);
  Value i = minimum(row, column), j = maximum(row, column);
  Value start =
      i * static_cast<double>(n) - shift_right_arithmetic(i * (i + 1.0), c.b.constant(1, DType::S64));
  Value k = minimum(maximum(start + j - i - 1.0, like(i, 0)), c.b.constant(n * (n - 1) / 2 - 1, DType::S64));
  const auto whole = [&](Value v) { return reshape(take_rows(v, reshape(k, {n * n})), square); };
  Value all = gradient(differences(x, x), whole(distance), whole(grad), c.number("p"));
  return reduce_sum(all, {1});
}

}  // namespace

void distance(Table& t) {
  t.op("_cdist_forward", cdist, {.fixed = {"p"}});
  t.op("_cdist_backward", cdist_backward, {.fixed = {"p"}});
  t.op("_pdist_forward", pdist, {.fixed = {"p"}});
  t.op("_pdist_backward", pdist_backward, {.fixed = {"p"}});
}

}  // namespace tpu::ops
