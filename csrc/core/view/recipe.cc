#include "core/view/recipe.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>

#include "core/base/error.h"
#include "core/view/bits.h"

namespace tpu::view {

using namespace hlo;

namespace {

/// A view as slices of a reshaped array. The array's dims are split and merged into `base` so that each view
/// dimension walks one of them: base dim j is cut to start[j] + i * step[j], i < count[j].
struct Slices {
  Dims base, start, count, step;
  Dims axis;  // for each base dim the view dimension that walks it, or -1
};

struct Walk {
  int dim;
  int64_t stride, size;
};

// The view's dimensions that move (size > 1, stride > 0), largest stride first.
std::vector<Walk> walks(const Layout& v) {
  std::vector<Walk> out;
  for (int i = 0; i < static_cast<int>(v.sizes.size()); i++)
    if (v.sizes[i] > 1 && v.strides[i] > 0) out.push_back({i, v.strides[i], v.sizes[i]});
  std::stable_sort(out.begin(), out.end(), [](const Walk& a, const Walk& b) { return a.stride > b.stride; });
  return out;
}

// nullopt when the view is no box of any factorisation of the array that we look for.
std::optional<Slices> find_slices(const Layout& v, const Dims& cell_dims) {
  const std::vector<Walk> moves = walks(v);
  const int64_t total = product(cell_dims);
  // `cuts` are the strides of the factorisation's dims, descending; the first cut's dim reaches up to
  // `total`.
  Dims cuts;
  const Dims strides = row_major(cell_dims);
  for (size_t i = 0; i < cell_dims.size(); i++)
    if (cell_dims[i] > 1) cuts.push_back(strides[i]);
  if (cuts.empty() || cuts.back() != 1) cuts.push_back(1);
  const auto top_of = [&](size_t j) { return j == 0 ? total : cuts[j - 1]; };
  // A view dimension that crosses the dims (a diagonal) or runs past the top of its dim needs a boundary
  // gone.
  for (const Walk& m : moves) {
    size_t j = 0;
    while (cuts[j] > m.stride) j++;  // the largest cut that is not above the stride
    while (m.stride % cuts[j] != 0) cuts.erase(cuts.begin() + static_cast<int64_t>(j));
    while (j > 0 && v.offset % top_of(j) / m.stride + m.size > (top_of(j) + m.stride - 1) / m.stride) {
      cuts.erase(cuts.begin() + static_cast<int64_t>(j) - 1);
      j--;
    }
  }
  // Two view dimensions in one dim: split it at the larger stride.
  for (size_t i = 0; i + 1 < moves.size(); i++) {
    const int64_t s = moves[i].stride;
    if (s == moves[i + 1].stride) return std::nullopt;  // overlapping
    size_t j = 0;
    while (cuts[j] > s) j++;
    if (cuts[j] > moves[i + 1].stride || cuts[j] == s) continue;  // already apart
    if (s % cuts[j] != 0 || top_of(j) % s != 0) return std::nullopt;
    cuts.insert(cuts.begin() + static_cast<int64_t>(j), s);
  }
  Slices out;
  for (size_t j = 0; j < cuts.size(); j++) {
    if (top_of(j) % cuts[j] != 0) return std::nullopt;
    out.base.push_back(top_of(j) / cuts[j]);
    out.start.push_back(v.offset / cuts[j] % out.base[j]);
    out.count.push_back(1);
    out.step.push_back(1);
    out.axis.push_back(-1);
  }
  for (const Walk& m : moves) {
    size_t j = 0;
    while (cuts[j] > m.stride) j++;
    if (out.axis[j] >= 0 || m.stride % cuts[j] != 0) return std::nullopt;
    out.axis[j] = m.dim;
    out.count[j] = m.size;
    out.step[j] = m.stride / cuts[j];
    if (out.start[j] + (m.size - 1) * out.step[j] >= out.base[j]) return std::nullopt;
  }
  return out;
}

/// A stretch of the flat array, and the view seen in it.
struct Stretch {
  int64_t start, length;
  Layout inner;
};

// A view whose shape the array's length does not fit (a matrix somewhere in a flat buffer) may be slices of a
// stretch of it: one as long as a multiple of the view's largest stride. nullopt when it is not.
std::optional<Stretch> find_stretch(const Layout& v, int64_t total) {
  const std::vector<Walk> moves = walks(v);
  if (moves.empty()) return std::nullopt;
  int64_t extent = 1;
  for (const Walk& m : moves) extent += (m.size - 1) * m.stride;
  const int64_t unit = moves[0].stride, length = (extent + unit - 1) / unit * unit;
  if (length >= total) return std::nullopt;
  Stretch out{std::min(v.offset, total - length), length, v};
  out.inner.offset -= out.start;
  out.inner.cell_dims = {length};
  return find_slices(out.inner, out.inner.cell_dims) ? std::optional(out) : std::nullopt;
}

// The element number in the flat array of each element of the view, as s64 of the given sizes.
Value linear_index(Builder& b, const Layout& v, const Dims& sizes) {
  Value index = full(b, static_cast<double>(v.offset), Type{DType::S64, sizes});
  for (int i = 0; i < static_cast<int>(sizes.size()); i++) {
    if (sizes[i] <= 1 || v.strides[i] == 0) continue;
    index = index + iota(b, DType::S64, sizes, i) * b.constant(v.strides[i], DType::S64);
  }
  return index;
}

// Sizes with the dimensions that do not move (stride 0) cut to one.
Dims moving_sizes(const Layout& v) {
  Dims out = v.sizes;
  for (size_t i = 0; i < out.size(); i++)
    if (v.strides[i] == 0) out[i] = std::min<int64_t>(out[i], 1);
  return out;
}

// From the order of the factorisation's dims to the view's dimensions (moving ones only), as a permutation of
// `kept` axes.
Dims order_of(const Slices& s) {
  Dims axes;
  for (int64_t a : s.axis)
    if (a >= 0) axes.push_back(a);
  return axes;
}

Value read_same_type(Value cell, const Layout& v) {
  Builder& b = cell.builder();
  if (product(v.sizes) == 0) return full(b, 0, Type{cell.dtype(), v.sizes});
  const Dims sizes = moving_sizes(v);
  const auto slices = find_slices(v, cell.dims());
  if (!slices) {
    Value flat = reshape(cell, {cell.elements()});
    if (const auto s = find_stretch(v, cell.elements()))
      return read_same_type(slice(flat, {s->start}, {s->start + s->length}), s->inner);
    Value index = reshape(linear_index(b, v, sizes), {product(sizes)});
    return broadcast_to(reshape(take_rows(flat, index), sizes), v.sizes);
  }
  Dims limit;
  for (size_t j = 0; j < slices->base.size(); j++)
    limit.push_back(slices->start[j] + (slices->count[j] - 1) * slices->step[j] + 1);
  Value x = slice(reshape(cell, slices->base), slices->start, limit, slices->step);
  const Dims axes = order_of(*slices);
  Dims moved;
  for (int64_t a : axes) moved.push_back(v.sizes[a]);
  x = reshape(x, moved);
  Dims sorted = axes, permutation;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t a : sorted) permutation.push_back(std::find(axes.begin(), axes.end(), a) - axes.begin());
  return broadcast_to(reshape(transpose(x, permutation), sizes), v.sizes);
}

Value write_same_type(Value cell, Value update, const Layout& v) {
  Builder& b = cell.builder();
  if (update.elements() == 0) return cell;
  // Elements written through a stride of 0 all land in one place; the last would win, any will do.
  const Dims sizes = moving_sizes(v);
  update = slice(update, Dims(sizes.size(), 0), sizes);
  const auto slices = find_slices(v, cell.dims());
  if (!slices) {
    Value flat = reshape(cell, {cell.elements()});
    if (const auto s = find_stretch(v, cell.elements())) {
      Value part = write_same_type(slice(flat, {s->start}, {s->start + s->length}), update, s->inner);
      return reshape(dynamic_update_slice(flat, part, {b.constant(s->start, DType::S64)}), cell.dims());
    }
    Value index = reshape(linear_index(b, v, sizes), {product(sizes), 1});
    ScatterDims d;
    d.inserted_window_dims = {0};
    d.scatter_dims_to_operand_dims = {0};
    d.index_vector_dim = 1;
    return reshape(scatter(flat, index, reshape(update, {product(sizes)}), d, nullptr), cell.dims());
  }
  const Dims axes = order_of(*slices);
  Dims sorted = axes, moved, permutation;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t a : sorted) moved.push_back(v.sizes[a]);
  for (int64_t a : axes) permutation.push_back(std::find(sorted.begin(), sorted.end(), a) - sorted.begin());
  Value x = reshape(transpose(reshape(update, moved), permutation), slices->count);
  if (slices->count == slices->base) return reshape(x, cell.dims());
  Value base = reshape(cell, slices->base);
  if (std::all_of(slices->step.begin(), slices->step.end(), [](int64_t s) { return s == 1; })) {
    Values start;
    for (int64_t s : slices->start) start.push_back(b.constant(s, DType::S32));
    return reshape(dynamic_update_slice(base, x, start), cell.dims());
  }
  // A strided box: spread the update over its extent and keep the old elements between.
  Dims high, interior;
  for (size_t j = 0; j < slices->base.size(); j++) {
    interior.push_back(slices->step[j] - 1);
    high.push_back(slices->base[j] - slices->start[j] - ((slices->count[j] - 1) * slices->step[j] + 1));
  }
  Value hit =
      pad(full(b, 1, Type{DType::Bool, x.dims()}), b.constant(0, DType::Bool), slices->start, high, interior);
  Value spread = pad(x, like(x, 0), slices->start, high, interior);
  return reshape(select(hit, spread, base), cell.dims());
}

}  // namespace

bool Layout::is_whole() const {
  return cell_dtype == dtype && offset == 0 && sizes == cell_dims && strides == row_major(sizes);
}

bool is_dense(const Dims& sizes, const Dims& strides) {
  if (product(sizes) == 0) return true;
  int64_t expected = 1;
  const Dims order = memory_order(sizes, strides);
  for (size_t k = order.size(); k-- > 0;) {
    const int64_t d = order[k];
    if (sizes[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

Dims memory_order(const Dims& sizes, const Dims& strides) {
  Dims order(sizes.size()), moving;
  std::iota(order.begin(), order.end(), 0);
  // Dims of size 1 may have any stride: they stay where they are, the others are sorted round them.
  std::copy_if(order.begin(), order.end(), std::back_inserter(moving),
               [&](int64_t d) { return sizes[d] != 1; });
  std::stable_sort(moving.begin(), moving.end(),
                   [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  auto next = moving.begin();
  for (int64_t& d : order)
    if (sizes[d] != 1) d = *next++;
  return order;
}

bool covers(const Layout& v) {
  return product(v.sizes) * size_of(v.dtype) == product(v.cell_dims) * size_of(v.cell_dtype) &&
         v.offset == 0 && is_dense(v.sizes, v.strides);
}

Value read(Value cell, const Layout& v) {
  if (v.is_whole()) return cell;
  if (v.cell_dtype == v.dtype) return read_same_type(cell, v);
  const DType unit = common_unit(v.cell_dtype, v.dtype);
  return from_units(read_same_type(to_units(cell, unit), in_units(v, unit)), v.dtype);
}

Value write(Value cell, Value update, const Layout& v) {
  if (v.is_whole()) return update;
  if (v.cell_dtype == v.dtype) return write_same_type(cell, update, v);
  const DType unit = common_unit(v.cell_dtype, v.dtype);
  return from_units(write_same_type(to_units(cell, unit), to_units(update, unit), in_units(v, unit)),
                    v.cell_dtype);
}

}  // namespace tpu::view
