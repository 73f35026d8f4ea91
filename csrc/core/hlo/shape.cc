#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/hlo/functions.h"

namespace tpu::hlo {

Value reshape(Value x, const Dims& dims) {
  if (x.dims() == dims) return x;
  if (product(dims) != x.elements())
    throw Error(Code::Internal, "reshape", text(x.type().str(), " to ", str(dims)));
  return x.builder().emit("stablehlo.reshape", {x}, Type{x.dtype(), dims});
}

Value broadcast_in_dim(Value x, const Dims& dims, const Dims& map) {
  if (x.dims() == dims && std::is_sorted(map.begin(), map.end())) return x;
  return x.builder().emit("stablehlo.broadcast_in_dim", {x}, Type{x.dtype(), dims},
                          "broadcast_dimensions = " + i64_array(map));
}

Dims broadcast_dims(const Dims& a, const Dims& b) {
  if (a == b) return a;
  Dims out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); i++) {
    const int64_t p = i < a.size() ? a[a.size() - 1 - i] : 1, q = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (p != q && p != 1 && q != 1)
      throw Error(Code::Internal, "broadcast", text("shapes ", str(a), " and ", str(b), " do not fit"));
    out[out.size() - 1 - i] = p == 1 ? q : p;
  }
  return out;
}

Value broadcast_to(Value x, const Dims& dims) {
  if (x.dims() == dims) return x;
  const int shift = static_cast<int>(dims.size()) - x.rank();
  if (shift < 0) throw Error(Code::Internal, "broadcast", text(x.type().str(), " to ", str(dims)));
  Dims map(x.rank());
  std::iota(map.begin(), map.end(), shift);
  for (int i = 0; i < x.rank(); i++)
    if (x.dims()[i] != 1 && x.dims()[i] != dims[i + shift])
      throw Error(Code::Internal, "broadcast", text(x.type().str(), " to ", str(dims)));
  return broadcast_in_dim(x, dims, map);
}

Value transpose(Value x, const Dims& permutation) {
  if (std::is_sorted(permutation.begin(), permutation.end())) return x;
  Dims dims;
  for (int64_t p : permutation) dims.push_back(x.dims()[p]);
  return x.builder().emit("stablehlo.transpose", {x}, Type{x.dtype(), dims},
                          "permutation = " + i64_array(permutation));
}

Value swap_dims(Value x, int a, int b) {
  Dims p(x.rank());
  std::iota(p.begin(), p.end(), 0);
  std::swap(p[a < 0 ? a + x.rank() : a], p[b < 0 ? b + x.rank() : b]);
  return transpose(x, p);
}

Value unsqueeze(Value x, int dim) {
  Dims dims = x.dims();
  dims.insert(dims.begin() + (dim < 0 ? dim + x.rank() + 1 : dim), 1);
  return reshape(x, dims);
}

Value squeeze(Value x, int dim) {
  Dims dims = x.dims();
  dims.erase(dims.begin() + (dim < 0 ? dim + x.rank() : dim));
  return reshape(x, dims);
}

Value slice(Value x, const Dims& start, const Dims& limit, const Dims& step) {
  const Dims steps = step.empty() ? Dims(x.rank(), 1) : step;
  Dims dims;
  bool whole = true;
  for (int i = 0; i < x.rank(); i++) {
    dims.push_back(std::max<int64_t>(0, (limit[i] - start[i] + steps[i] - 1) / steps[i]));
    whole &= start[i] == 0 && limit[i] == x.dims()[i] && steps[i] == 1;
  }
  if (whole) return x;
  return x.builder().emit("stablehlo.slice", {x}, Type{x.dtype(), dims},
                          text("start_indices = ", i64_array(start), ", limit_indices = ", i64_array(limit),
                               ", strides = ", i64_array(steps)));
}

Value slice_dim(Value x, int dim, int64_t start, int64_t limit, int64_t step) {
  if (dim < 0) dim += x.rank();
  Dims starts(x.rank(), 0), limits = x.dims(), steps(x.rank(), 1);
  starts[dim] = start, limits[dim] = limit, steps[dim] = step;
  return slice(x, starts, limits, steps);
}

Value pad(Value x, Value fill, const Dims& low, const Dims& high, const Dims& interior) {
  const Dims inside = interior.empty() ? Dims(x.rank(), 0) : interior;
  Dims dims;
  for (int i = 0; i < x.rank(); i++)
    dims.push_back(low[i] + high[i] + x.dims()[i] + std::max<int64_t>(0, x.dims()[i] - 1) * inside[i]);
  return x.builder().emit("stablehlo.pad", {x, fill}, Type{x.dtype(), dims},
                          text("edge_padding_low = ", i64_array(low), ", edge_padding_high = ",
                               i64_array(high), ", interior_padding = ", i64_array(inside)));
}

Value concatenate(const Values& xs, int dim) {
  if (xs.size() == 1) return xs[0];
  if (dim < 0) dim += xs[0].rank();
  Dims dims = xs[0].dims();
  dims[dim] = 0;
  for (const Value& x : xs) dims[dim] += x.dims()[dim];
  return xs[0].builder().emit("stablehlo.concatenate", xs, Type{xs[0].dtype(), dims},
                              text("dimension = ", dim, " : i64"));
}

Value reverse(Value x, const Dims& dims) {
  if (dims.empty()) return x;
  return x.builder().emit("stablehlo.reverse", {x}, x.type(), "dimensions = " + i64_array(dims));
}

Value iota(Builder& b, DType dtype, const Dims& dims, int dim) {
  if (dims.empty()) return b.constant(0, dtype);
  return b.emit("stablehlo.iota", {}, Type{dtype, dims}, text("iota_dimension = ", dim, " : i64"));
}

Value dynamic_slice(Value x, const Values& start, const Dims& sizes) {
  Values operands{x};
  operands.insert(operands.end(), start.begin(), start.end());
  return x.builder().emit("stablehlo.dynamic_slice", operands, Type{x.dtype(), sizes},
                          "slice_sizes = " + i64_array(sizes));
}

Value dynamic_update_slice(Value x, Value update, const Values& start) {
  Values operands{x, update};
  operands.insert(operands.end(), start.begin(), start.end());
  return x.builder().emit("stablehlo.dynamic_update_slice", operands, x.type());
}

}  // namespace tpu::hlo
