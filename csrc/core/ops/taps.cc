#include "core/ops/taps.h"

#include <algorithm>
#include <cstdio>

namespace tpu::ops {

using namespace hlo;

namespace {

// Up to here each tap is a term of its own, fused with the rest; beyond, taps are a dimension that is summed.
constexpr size_t kUnrolled = 8;

// A vector along dimension `dim` of x.
Value along(Value vector, Value x, int dim) {
  Dims dims(x.rank(), 1);
  dims[dim] = vector.size(0);
  return reshape(vector, dims);
}

// Tap k of every row: its position, its weight, and whether the row has that many.
struct Column {
  std::vector<int64_t> index;
  std::vector<double> weight;
  std::vector<int64_t> present;
  bool plain = true, full = true;
};

Column column(const Taps& taps, size_t k) {
  Column c;
  for (const auto& row : taps.rows) {
    const bool there = k < row.size();
    c.index.push_back(there ? row[k].first : row.empty() ? 0 : row[0].first);
    c.weight.push_back(there ? row[k].second : 0);
    c.present.push_back(there);
    c.plain &= !there || row[k].second == 1;
    c.full &= there;
  }
  return c;
}

Value term(Value x, int dim, const Column& k) {
  Builder& b = x.builder();
  Value v = take(x, k.index, dim);
  if (!k.plain) v = v * along(reals(b, k.weight, x.dtype()), v, dim);
  if (!k.full)
    v = select(broadcast_to(along(b.constants(k.present, DType::Bool), v, dim), v.dims()), v,
               full_like(v, 0));
  return v;
}

// As a product with the dense matrix [out, in], which a TPU prefers to picking elements.
Value dense(Value x, int dim, const Taps& taps, size_t width) {
  Builder& b = x.builder();
  Value at = iota(b, DType::S32, {taps.out(), taps.in}, 1), matrix;
  for (size_t k = 0; k < width; k++) {
    const Column c = column(taps, k);
    Value hit = equal(at, unsqueeze(b.constants(c.index, DType::S32), 1));
    Value weight = broadcast_to(unsqueeze(reals(b, c.weight, x.dtype()), 1), hit.dims());
    Value part = select(hit, weight, full_like(weight, 0));
    matrix = matrix ? matrix + part : part;
  }
  Value y = dot_general(x, matrix, {}, {}, {dim}, {1});  // the new dimension comes last
  Dims order;
  for (int i = 0; i < x.rank(); i++) order.push_back(i < dim ? i : i == dim ? x.rank() - 1 : i - 1);
  return transpose(y, order);
}

}  // namespace

Taps Taps::transposed() const {
  Taps t{out(), {}};
  t.rows.resize(in);
  for (int64_t i = 0; i < out(); i++)
    for (auto [at, weight] : rows[i]) t.rows[at].push_back({i, weight});
  return t;
}

Value reals(Builder& b, const std::vector<double>& values, DType dtype) {
  if (!is_float(dtype)) return b.constants({values.begin(), values.end()}, dtype);
  const Type type{dtype, {static_cast<int64_t>(values.size())}};
  std::string list;
  char number[40];
  for (double v : values) {
    std::snprintf(number, sizeof number, "%s%.*e", list.empty() ? "" : ", ", dtype == DType::F64 ? 17 : 9, v);
    list += number;
  }
  return b.emit("stablehlo.constant", {}, type,
                text("value = dense<", values.empty() ? "" : "[" + list + "]", "> : ", type.str()));
}

Value take(Value x, const std::vector<int64_t>& index, int dim) {
  GatherDims d;
  Dims sizes = x.dims(), result = x.dims();
  sizes[dim] = 1, result[dim] = static_cast<int64_t>(index.size());
  for (int i = 0; i < x.rank(); i++)
    if (i != dim) d.offset_dims.push_back(i);
  d.collapsed_slice_dims = {dim}, d.start_index_map = {dim}, d.index_vector_dim = 1;
  return gather(x, x.builder().constants(index, DType::S32), d, sizes, result);
}

Value apply(Call& c, Value x, int dim, const Taps& taps) {
  size_t width = 0;
  bool same = taps.out() == taps.in;
  for (int64_t i = 0; i < taps.out(); i++) {
    const auto& row = taps.rows[i];
    width = std::max(width, row.size());
    same &= row.size() == 1 && row[0] == std::pair<int64_t, double>{i, 1};
  }
  if (same) return x;
  Dims dims = x.dims();
  dims[dim] = taps.out();
  if (width == 0 || x.elements() == 0) return full(c.b, 0, Type{x.dtype(), dims});
  if (width > 1 && is_float(x.dtype()) && c.lowering.platform == Platform::Tpu)
    return dense(x, dim, taps, width);
  if (width <= kUnrolled) {
    Value sum;
    for (size_t k = 0; k < width; k++) {
      Value v = term(x, dim, column(taps, k));
      sum = sum ? sum + v : v;
    }
    return sum;
  }
  Taps flat{taps.in, {}};  // every tap of every row is a result, then rows are summed
  for (const auto& row : taps.rows)
    for (size_t k = 0; k < width; k++)
      flat.rows.push_back(k < row.size() ? std::vector{row[k]} : std::vector<std::pair<int64_t, double>>{});
  Value v = term(x, dim, column(flat, 0));
  dims.insert(dims.begin() + dim + 1, static_cast<int64_t>(width));
  return reduce_sum(reshape(v, dims), {dim + 1});
}

}  // namespace tpu::ops
