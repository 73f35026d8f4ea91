// Reductions: sums, extremes, statistics and norms over some or all dimensions.
#include <cmath>

#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// The result with the shape PyTorch expects: reduced dimensions are there as 1 when keepdim is set.
Value shaped(const Call& c, Value x, int i = 0) { return reshape(x, c.out(i).dims); }

// How many elements are reduced into one.
int64_t extent(Value x, const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= x.size(static_cast<int>(d));
  return n;
}

// The dims with their extent 1, so that a reduced value broadcasts against its source.
Value kept(Value reduced, Value source, const Dims& dims) {
  Dims shape = source.dims();
  for (int64_t d : dims) shape[d] = 1;
  return reshape(reduced, shape);
}

// `dim` as one or several dims, or all of them when the operator has none.
Dims reduced_dims(const Call& c, Value x) { return c.dims("dim", x.rank()); }

Results sum(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  return shaped(c, accurate_sum(x, reduced_dims(c, x)));
}
Results nan_sum(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  return shaped(c, accurate_sum(select(is_nan(x), full_like(x, 0), x), reduced_dims(c, x)));
}
Value mean_over(Value x, const Dims& dims) {
  return accurate_sum(x, dims) / static_cast<double>(extent(x, dims));
}
Results mean(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  return shaped(c, mean_over(x, reduced_dims(c, x)));
}
Results product(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  return shaped(c, reduce_prod(x, reduced_dims(c, x)));
}

// amax, amin, max, min: NaN wins
template <Value (*f)(Value, const Dims&)>
Results extreme(Call& c) {
  Value x = c.tensor("self");
  return shaped(c, f(x, reduced_dims(c, x)));
}
Results both_extremes(Call& c) {
  Value x = c.tensor("self");
  const Dims dims = reduced_dims(c, x);
  return {shaped(c, reduce_min(x, dims), 0), shaped(c, reduce_max(x, dims), 1)};
}

// max.dim, min.dim -> (values, indices); argmax, argmin over one dim or all elements
template <bool largest>
std::pair<Value, Value> find_extreme(Call& c) {
  Value x = c.tensor("self");
  if (!c.has("dim")) x = reshape(x, {x.elements()});
  if (x.rank() == 0) return {x, c.b.constant(0, DType::S64)};
  const int dim = c.has("dim") ? Call::wrap(c.integer("dim"), x.rank()) : 0;
  // In two plain reductions, which vectorise where one over (value, index) pairs would not: the extreme, then
  // the first position that holds it (the first NaN if there is one).
  const DType type = x.size(dim) < INT32_MAX ? DType::S32 : DType::S64;
  Value value = largest ? reduce_max(x, {dim}) : reduce_min(x, {dim});
  Value best = kept(value, x, {dim});
  Value hit = equal(x, broadcast_to(best, x.dims())) | is_nan(x);
  Value none = c.b.constant(x.size(dim) - 1, type);
  Value index = hlo::reduce(select(hit, iota(c.b, type, x.dims(), dim), none), none, {dim}, minimum);
  return {value, convert(index, DType::S64)};
}
template <bool largest>
Results extreme_and_index(Call& c) {
  auto [value, index] = find_extreme<largest>(c);
  return {shaped(c, value, 0), shaped(c, index, 1)};
}
template <bool largest>
Results index_of_extreme(Call& c) {
  return shaped(c, find_extreme<largest>(c).second);
}

// all, any; an empty list of dims reduces nothing
template <Value (*f)(Value, const Dims&)>
Results truth(Call& c) {
  Value x = c.tensor("self", DType::Bool);
  const bool none = c.has("dim") && c.ints("dim").empty();
  return shaped(c, none ? x : f(x, reduced_dims(c, x)));
}

Results count_nonzero(Call& c) {
  Value x = convert(c.tensor("self", DType::Bool), DType::S64);
  return shaped(c, reduce_sum(x, reduced_dims(c, x)));
}

// The variance in two passes, and the mean. sum |x - mean|^2 / max(0, n - correction), correction 1 by
// default.
std::pair<Value, Value> variance(Call& c) {
  Value x = c.tensor("self", compute_type(c.dtype_of("self")));
  const Dims dims = reduced_dims(c, x);
  Value center = mean_over(x, dims);
  Value d = x - kept(center, x, dims);
  Value squares = is_complex(x.dtype()) ? real(d) * real(d) + imag(d) * imag(d) : d * d;
  Value n = like(squares, static_cast<double>(extent(x, dims)));
  Value correction = c.has("correction") ? c.scalar("correction", squares.dtype()) : like(squares, 1);
  Value degrees = maximum(n - correction, like(n, 0));
  return {accurate_sum(squares, dims) / degrees, center};
}
template <bool root>
Results spread(Call& c) {
  Value v = variance(c).first;
  return shaped(c, root ? sqrt(v) : v);
}
template <bool root>
Results spread_and_mean(Call& c) {
  auto [v, center] = variance(c);
  return {shaped(c, root ? sqrt(v) : v, 0), shaped(c, center, 1)};
}

// (sum |x|^p)^(1/p) and its limits: p = 0 counts nonzeros, +-inf takes the largest or smallest
Results vector_norm(Call& c, const char* order) {
  Value x = abs(c.tensor("self", [&] {
    const DType t = c.has("dtype") ? c.dtype("dtype", DType::F32) : c.dtype_of("self");
    return is_float(t) || is_complex(t) ? compute_type(t) : c.compute_dtype();
  }()));
  const Dims dims = reduced_dims(c, x);
  const double p = c.has(order) ? c.number(order) : 2;
  if (p == 0) return shaped(c, accurate_sum(convert(convert(x, DType::Bool), x.dtype()), dims));
  if (p == INFINITY) return shaped(c, hlo::reduce(x, like(x, 0), dims, maximum));
  if (p == -INFINITY) return shaped(c, reduce_min(x, dims));
  if (p == 1) return shaped(c, accurate_sum(x, dims));
  if (p == 2) return shaped(c, sqrt(accurate_sum(x * x, dims)));
  return shaped(c, power(accurate_sum(power(x, like(x, p)), dims), like(x, 1 / p)));
}

Results log_sum_exp(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  const Dims dims = reduced_dims(c, x);
  Value top = reduce_max(real(x), dims);
  top = select(is_finite(top), top, full_like(top, 0));
  Value shifted = x - convert(kept(top, x, dims), x.dtype());
  return shaped(c, log(accurate_sum(exp(shifted), dims)) + convert(top, x.dtype()));
}

// hash_tensor: the exclusive or of the elements' bits, as doubles or 64-bit integers.
Results hash(Call& c) {
  Value x = c.tensor("self");
  x = is_float(x.dtype()) ? bitcast(convert(x, DType::F64), DType::U64)
                          : convert(convert(x, DType::S64), DType::U64);
  return shaped(c, hlo::reduce(x, like(x, 0), reduced_dims(c, x), logical_xor));
}

}  // namespace

void reduce(Table& t) {
  t.op("sum sum.dim_IntList", sum);
  t.op("nansum", nan_sum);
  t.op("mean mean.dim", mean);
  t.op("prod prod.dim_int", product);
  t.op("logsumexp", log_sum_exp);
  t.op("count_nonzero count_nonzero.dim_IntList", count_nonzero);

  t.op("amax max", extreme<reduce_max>);
  t.op("amin min", extreme<reduce_min>);
  t.op("aminmax", both_extremes);
  t.op("hash_tensor", hash);
  t.op("max.dim", extreme_and_index<true>);
  t.op("min.dim", extreme_and_index<false>);
  t.op("argmax", index_of_extreme<true>);
  t.op("argmin", index_of_extreme<false>);
  t.op("all all.dim all.dims", truth<reduce_and>);
  t.op("any any.dim any.dims", truth<reduce_or>);

  t.op("var.correction", spread<false>);
  t.op("std.correction", spread<true>);
  t.op("var_mean.correction", spread_and_mean<false>);
  t.op("std_mean.correction", spread_and_mean<true>);
  t.op("linalg_vector_norm", [](Call& c) -> Results { return vector_norm(c, "ord"); }, {.fixed = {"ord"}});
  t.op("norm.Scalar norm.ScalarOpt_dtype norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype",
       [](Call& c) -> Results { return vector_norm(c, "p"); }, {.fixed = {"p"}});
}

}  // namespace tpu::ops
