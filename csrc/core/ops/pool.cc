// Pooling: the parts shared by its kinds, and unpooling.
#include "core/ops/pool.h"

#include <algorithm>

namespace tpu::ops {

using namespace hlo;

Value planes(Value x, int n) {
  Dims dims{1};
  for (int i = 0; i < x.rank(); i++)
    if (i < x.rank() - n)
      dims[0] *= x.size(i);
    else
      dims.push_back(x.size(i));
  return reshape(x, dims);
}

Value scatter_planes(Value values, Value index, int64_t size, bool replace) {
  ScatterDims d;
  d.inserted_window_dims = {1}, d.scatter_dims_to_operand_dims = {1};
  d.input_batching_dims = {0}, d.indices_batching_dims = {0}, d.index_vector_dim = 2;
  Value zero = full(values.builder(), 0, Type{values.dtype(), {values.size(0), size}});
  if (values.elements() == 0) return zero;
  return scatter(zero, index, values, d, replace ? Combine{} : Combine{add});
}

Values larger(const Values& l, const Values& r) {
  Value left = (l[0] > r[0]) | (equal(l[0], r[0]) & (l[1] < r[1]));
  if (is_float(l[0].dtype())) {
    Value ln = is_nan(l[0]), rn = is_nan(r[0]);
    left = (left & !rn) | (ln & ((!rn) | (l[1] > r[1])));
  }
  return {select(left, l[0], r[0]), select(left, l[1], r[1])};
}

namespace {

// Values go back to where max pooling found them.
Results unpool(Call& c, int n) {
  Value x = c.tensor("self"), index = c.tensor("indices");
  const int64_t size = hlo::product(c.ints("output_size")), plane = hlo::product(std::span(x.dims()).last(n));
  const int64_t count = plane ? x.elements() / plane : 0;
  if (x.elements() == 0) return full(c.b, 0, c.out());
  index = c.index(reshape(index, {count, plane}), 1, size, false, Code::InvalidArgument);
  return reshape(scatter_planes(reshape(x, {count, plane}), index, size, true), c.out().dims);
}

}  // namespace

void pool(Table& t) {
  average_pool(t);
  fixed_pool(t);
  adaptive_pool(t);
  t.op("max_unpool2d", [](Call& c) { return unpool(c, 2); });
  t.op("max_unpool3d", [](Call& c) { return unpool(c, 3); });
}

}  // namespace tpu::ops
