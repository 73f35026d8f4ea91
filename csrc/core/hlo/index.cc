#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/hlo/functions.h"

namespace tpu::hlo {
namespace {

Dims range(int64_t from, int64_t to) {
  Dims out(std::max<int64_t>(0, to - from));
  std::iota(out.begin(), out.end(), from);
  return out;
}

}  // namespace

Value gather(Value x, Value indices, const GatherDims& d, const Dims& slice_sizes, const Dims& result,
             bool sorted) {
  return x.builder().emit(
      "stablehlo.gather", {x, indices}, Type{x.dtype(), result},
      text("dimension_numbers = #stablehlo.gather<offset_dims = ", str(d.offset_dims),
           ", collapsed_slice_dims = ", str(d.collapsed_slice_dims), ", operand_batching_dims = ",
           str(d.operand_batching_dims), ", start_indices_batching_dims = ", str(d.indices_batching_dims),
           ", start_index_map = ", str(d.start_index_map), ", index_vector_dim = ", d.index_vector_dim,
           ">, slice_sizes = ", i64_array(slice_sizes),
           ", indices_are_sorted = ", sorted ? "true" : "false"));
}

Value scatter(Value x, Value indices, Value updates, const ScatterDims& d, const Combine& combine,
              bool unique, bool sorted) {
  const Type scalar{x.dtype(), {}};
  Builder::Region body{{scalar, scalar},
                       [&combine](const Values& a) { return Values{combine ? combine(a[0], a[1]) : a[1]}; }};
  return x.builder().emit(
      "stablehlo.scatter", {x, indices, updates}, {x.type()},
      text("scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = ", str(d.update_window_dims),
           ", inserted_window_dims = ", str(d.inserted_window_dims), ", input_batching_dims = ",
           str(d.input_batching_dims), ", scatter_indices_batching_dims = ", str(d.indices_batching_dims),
           ", scatter_dims_to_operand_dims = ", str(d.scatter_dims_to_operand_dims),
           ", index_vector_dim = ", d.index_vector_dim, ">, indices_are_sorted = ", sorted ? "true" : "false",
           ", unique_indices = ", unique ? "true" : "false"),
      {body})[0];
}

Value take_rows(Value x, Value index) {
  Dims sizes = x.dims(), result = x.dims();
  sizes[0] = 1;
  result[0] = index.dims()[0];
  GatherDims d;
  d.offset_dims = range(1, x.rank());
  d.collapsed_slice_dims = {0};
  d.start_index_map = {0};
  d.index_vector_dim = 1;
  return gather(x, index, d, sizes, result);
}

Value take_along_dim(Value x, Value index, int dim) {
  if (dim < 0) dim += x.rank();
  // Batching over every other dimension; where the index is smaller than x there, x is cut to it.
  Dims limits = x.dims();
  for (int i = 0; i < x.rank(); i++)
    if (i != dim) limits[i] = index.dims()[i];
  x = slice(x, Dims(x.rank(), 0), limits);
  GatherDims d;
  for (int i = 0; i < x.rank(); i++)
    if (i != dim) d.operand_batching_dims.push_back(i), d.indices_batching_dims.push_back(i);
  d.collapsed_slice_dims = {dim};
  d.start_index_map = {dim};
  d.index_vector_dim = x.rank();
  return gather(x, index, d, Dims(x.rank(), 1), index.dims());
}

}  // namespace tpu::hlo
