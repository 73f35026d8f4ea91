#include <algorithm>

#include "core/base/error.h"
#include "core/hlo/functions.h"

namespace tpu::hlo {
namespace {

using PairwiseBody = std::function<Values(const Values&, const Values&)>;

// Block arguments are all left elements, then all right ones.
Builder::Region pairwise(const Values& xs, const PairwiseBody& body) {
  std::vector<Type> scalars;
  for (int side = 0; side < 2; side++)
    for (const Value& x : xs) scalars.push_back(Type{x.dtype(), {}});
  const size_t n = xs.size();
  return {scalars, [body, n](const Values& a) {
            return body(Values(a.begin(), a.begin() + n), Values(a.begin() + n, a.end()));
          }};
}

PairwiseBody single(const Reducer& body) {
  return [body](const Values& left, const Values& right) { return Values{body(left[0], right[0])}; };
}

}  // namespace

Values reduce(const Values& xs, const Values& inits, const Dims& dims, const PairwiseBody& body) {
  Dims kept;
  for (int i = 0; i < xs[0].rank(); i++)
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) kept.push_back(xs[0].dims()[i]);
  std::vector<Type> results;
  for (const Value& x : xs) results.push_back(Type{x.dtype(), kept});
  Values operands = xs;
  operands.insert(operands.end(), inits.begin(), inits.end());
  return xs[0].builder().emit("stablehlo.reduce", operands, results, "dimensions = " + i64_array(dims),
                              {pairwise(xs, body)});
}

Value reduce(Value x, Value init, const Dims& dims, const Reducer& body) {
  if (dims.empty()) return x;
  return reduce(Values{x}, Values{init}, dims, single(body))[0];
}

Value reduce_sum(Value x, const Dims& dims) { return reduce(x, like(x, 0), dims, add); }
Value reduce_prod(Value x, const Dims& dims) { return reduce(x, like(x, 1), dims, multiply); }
Value reduce_max(Value x, const Dims& dims) {
  return reduce(x, lowest(x.builder(), x.dtype()), dims, maximum);
}
Value reduce_min(Value x, const Dims& dims) {
  return reduce(x, highest(x.builder(), x.dtype()), dims, minimum);
}
Value reduce_and(Value x, const Dims& dims) {
  return reduce(x, x.builder().constant(int64_t{-1}, x.dtype()), dims, logical_and);
}
Value reduce_or(Value x, const Dims& dims) { return reduce(x, like(x, 0), dims, logical_or); }

Values reduce_window(const Values& xs, const Values& inits, const Window& w, const PairwiseBody& body) {
  const int rank = xs[0].rank();
  const Dims ones(rank, 1);
  const Dims stride = w.stride.empty() ? ones : w.stride,
             base = w.base_dilation.empty() ? ones : w.base_dilation,
             dilation = w.dilation.empty() ? ones : w.dilation;
  Dims dims;
  std::string padding;
  for (int i = 0; i < rank; i++) {
    const auto [low, high] = w.padding.empty() ? std::pair<int64_t, int64_t>{0, 0} : w.padding[i];
    const int64_t extent = xs[0].dims()[i] == 0 ? 0 : (xs[0].dims()[i] - 1) * base[i] + 1;
    const int64_t room = extent + low + high - ((w.size[i] - 1) * dilation[i] + 1);
    dims.push_back(room < 0 ? 0 : room / stride[i] + 1);
    padding += text(i ? ", " : "", "[", low, ", ", high, "]");
  }
  std::vector<Type> results;
  for (const Value& x : xs) results.push_back(Type{x.dtype(), dims});
  Values operands = xs;
  operands.insert(operands.end(), inits.begin(), inits.end());
  return xs[0].builder().emit(
      "stablehlo.reduce_window", operands, results,
      text("window_dimensions = ", i64_array(w.size), ", window_strides = ", i64_array(stride),
           ", base_dilations = ", i64_array(base), ", window_dilations = ", i64_array(dilation),
           ", padding = dense<[", padding, "]> : tensor<", rank, "x2xi64>"),
      {pairwise(xs, body)});
}

Value reduce_window(Value x, Value init, const Window& w, const Reducer& body) {
  return reduce_window(Values{x}, Values{init}, w, single(body))[0];
}

std::pair<Value, Value> arg_reduce(Value x, int dim, bool largest, DType index_type) {
  Builder& b = x.builder();
  if (dim < 0) dim += x.rank();
  if (x.dtype() == DType::Bool) {
    auto [value, index] = arg_reduce(convert(x, DType::U8), dim, largest, index_type);
    return {convert(value, DType::Bool), index};
  }
  Value position = iota(b, index_type, x.dims(), dim);
  Value worst = largest ? lowest(b, x.dtype()) : highest(b, x.dtype());
  // The first of the best wins: the strictly better, or among equals (and among NaNs) the smaller position.
  // The start has the largest position, so that any real element equal to it is preferred.
  Values out = reduce({x, position}, {worst, highest(b, index_type)}, {dim},
                      [largest](const Values& l, const Values& r) -> Values {
                        Value better = largest ? l[0] > r[0] : l[0] < r[0];
                        Value same = equal(l[0], r[0]);
                        if (is_float(l[0].dtype())) {
                          Value ln = is_nan(l[0]), rn = is_nan(r[0]);
                          better = (better & !rn) | (ln & !rn);
                          same = same | (ln & rn);
                        }
                        Value left = better | (same & (l[1] < r[1]));
                        return {select(left, l[0], r[0]), select(left, l[1], r[1])};
                      });
  return {out[0], out[1]};
}

}  // namespace tpu::hlo
