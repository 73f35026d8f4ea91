#include "core/ops/indexing.h"

#include <algorithm>

#include "core/ops/math.h"
#include "core/ops/order.h"
#include "core/ops/scan.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// [shape.., indexed dims]: the index vectors side by side. One alone needs no vector dimension.
Value vectors(const Places& at) {
  if (at.index.size() == 1) return at.index[0];
  Values parts;
  DType t = DType::S32;
  for (const Value& i : at.index)
    if (size_of(i.dtype()) > 4) t = DType::S64;
  for (const Value& i : at.index) parts.push_back(unsqueeze(convert(i, t), i.rank()));
  return concatenate(parts, at.index[0].rank());
}

bool indexed(const Places& at, int dim) {
  return std::find(at.dims.begin(), at.dims.end(), dim) != at.dims.end();
}

// Dimensions of the selection that are whole dimensions of x.
Dims kept(const Places& at, int rank) {
  const int front = at.front(), width = at.index[0].rank();
  Dims out;
  int place = 0;
  for (int d = 0; d < rank; d++) {
    if (indexed(at, d)) continue;
    if (place == front) place += width;
    out.push_back(place++);
  }
  return out;
}

}  // namespace

int Places::front() const {
  for (size_t k = 1; k < dims.size(); k++)
    if (dims[k] != dims[k - 1] + 1) return 0;
  return dims[0];
}

Dims Places::shape(const Dims& x) const {
  Dims out;
  for (size_t d = 0; d < x.size(); d++)
    if (!indexed(*this, static_cast<int>(d))) out.push_back(x[d]);
  const Dims& middle = index[0].dims();
  out.insert(out.begin() + front(), middle.begin(), middle.end());
  return out;
}

Value read(Value x, const Places& at) {
  const Dims result = at.shape(x.dims());
  // Nothing to read: either nothing is asked for, or the shim's check has already refused.
  if (x.elements() == 0 || product(result) == 0) return full(x.builder(), 0, {x.dtype(), result});
  GatherDims d;
  Dims sizes = x.dims();
  for (int i : at.dims) {
    d.collapsed_slice_dims.push_back(i);
    d.start_index_map.push_back(i);
    sizes[i] = 1;
  }
  d.offset_dims = kept(at, x.rank());
  d.index_vector_dim = at.index[0].rank();
  return gather(x, vectors(at), d, sizes, result);
}

Value write(Value x, const Places& at, Value values, const Combine& combine) {
  const Dims shape = at.shape(x.dims());
  values = broadcast_to(values, shape);
  if (x.elements() == 0 || values.elements() == 0) return x;
  ScatterDims d;
  for (int i : at.dims) {
    d.inserted_window_dims.push_back(i);
    d.scatter_dims_to_operand_dims.push_back(i);
  }
  d.update_window_dims = kept(at, x.rank());
  d.index_vector_dim = at.index[0].rank();
  return scatter(x, vectors(at), values, d, combine);
}

Value scatter_along(Value x, int dim, Value index, Value source, const Combine& combine) {
  if (x.rank() == 0) {
    Value out = scatter_along(reshape(x, {1}), 0, reshape(index, {index.elements()}),
                              reshape(source, {source.elements()}), combine);
    return reshape(out, {});
  }
  if (index.elements() == 0) return x;
  // One linear position for each element: other coordinates are the element's own.
  const DType t = position_type(x.elements());
  const Dims strides = row_major(x.dims());
  Value at = convert(index, t) * x.builder().constant(strides[dim], t);
  for (int i = 0; i < x.rank(); i++)
    if (i != dim && index.dims()[i] > 1)
      at = at + iota(x.builder(), t, index.dims(), i) * x.builder().constant(strides[i], t);
  const int64_t n = index.elements();
  Value out = write(reshape(x, {x.elements()}), {{0}, {reshape(at, {n})}}, reshape(source, {n}), combine);
  return reshape(out, x.dims());
}

Value run_numbers(Call& c, Value starts, int64_t n) {
  // Counted where they begin, and summed up. Those past the end count nowhere.
  const DType t = position_type(std::max(n, starts.elements()));
  Value marks = full(c.b, 0, {t, {n}});
  if (starts.elements() == 0 || n == 0) return marks - like(marks, 1);
  ScatterDims d;
  d.inserted_window_dims = {0}, d.scatter_dims_to_operand_dims = {0}, d.index_vector_dim = 1;
  marks = scatter(marks, unsqueeze(starts, 1), full(c.b, 1, {t, starts.dims()}), d, add, false, true);
  return scan_along(marks, 0, add) - c.b.constant(1, t);
}

Combine combination(const std::string& name, DType dtype) {
  if (name == "prod" || name == "multiply") return multiply;
  if (name == "amax") return maximum;
  if (name == "amin") return minimum;
  return dtype == DType::Bool ? logical_or : add;
}

Value neutral(Builder& b, const std::string& name, DType dtype) {
  if (name == "amax") return lowest(b, dtype);
  if (name == "amin") return highest(b, dtype);
  return b.constant(name == "prod" || name == "multiply" ? 1 : 0, dtype);
}

Value reduce_places(Value x, Value source, const std::string& name, bool include_self,
                    const std::function<Value(Value, Value, const Combine&)>& put) {
  Builder& b = x.builder();
  Value start = x, mean_of;
  if (!include_self) {
    Value touched =
        put(full(b, 0, {DType::Bool, x.dims()}), full(b, 1, {DType::Bool, source.dims()}), nullptr);
    start = select(touched, neutral(b, name, x.dtype()), x);
  }
  Value out = put(start, source, combination(name, x.dtype()));
  if (name != "mean") return out;
  Value count = put(full(b, include_self ? 1 : 0, {DType::S32, x.dims()}),
                    full(b, 1, {DType::S32, source.dims()}), add);
  count = convert(maximum(count, like(count, 1)), x.dtype());
  return is_int(x.dtype()) ? floor_divide(out, count) : out / count;
}

}  // namespace tpu::ops
