// View operators as functions of values, for captured graphs. (Eager views move no data: they are strides,
// see view/recipe.h.)
#include <algorithm>

#include "core/ops/table.h"
#include "core/view/recipe.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// Any view that only regroups dimensions: the result's shape says all.
Results regroup(Call& c) { return reshape(c.tensor("self"), c.out().dims); }

Results identity(Call& c) { return c.tensor("self"); }

Results permuted(Call& c, Dims order) {
  Value x = c.tensor("self");
  for (int64_t& d : order) d = Call::wrap(d, x.rank());
  return transpose(x, order);
}

// [start, end) of a Python slice, with None, negative and overlong bounds resolved.
std::pair<int64_t, int64_t> bounds(Call& c, int64_t size) {
  const auto clamp = [size](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size); };
  const int64_t start = c.has("start") ? clamp(c.integer("start")) : 0;
  const int64_t end = c.has("end") ? clamp(c.integer("end")) : size;
  return {start, std::max(start, end)};
}

Results slice_of(Call& c) {
  Value x = c.tensor("self");
  const int dim = Call::wrap(c.integer("dim"), x.rank());
  const auto [start, end] = bounds(c, x.size(dim));
  return slice_dim(x, dim, start, end, c.integer("step"));
}

Results selected(Call& c) {
  Value x = c.tensor("self");
  const int dim = Call::wrap(c.integer("dim"), x.rank());
  const int64_t i = c.integer("index") < 0 ? c.integer("index") + x.size(dim) : c.integer("index");
  return squeeze(slice_dim(x, dim, i, i + 1), dim);
}

Results pieces(Call& c, const Dims& sizes) {
  Value x = c.tensor("self");
  const int dim = Call::wrap(c.integer("dim"), x.rank());
  Values out;
  int64_t at = 0;
  for (int64_t n : sizes) {
    out.push_back(slice_dim(x, dim, at, at + n));
    at += n;
  }
  return out;
}

Results as_strided_of(Call& c) {
  Value x = c.tensor("self");
  view::Layout layout{x.dtype(), x.dims(), x.dtype(), c.ints("size"), c.ints("stride"), 0};
  if (c.has("storage_offset")) layout.offset = c.integer("storage_offset");
  return view::read(x, layout);
}

Results diagonal_of(Call& c) {
  Value x = c.tensor("self");
  const int a = Call::wrap(c.integer("dim1"), x.rank()), b = Call::wrap(c.integer("dim2"), x.rank());
  const Dims strides = row_major(x.dims());
  const int64_t offset = c.integer("offset");
  view::Layout layout{x.dtype(), x.dims(), x.dtype(),
                      {},        {},       offset >= 0 ? offset * strides[b] : -offset * strides[a]};
  for (int i = 0; i < x.rank(); i++)
    if (i != a && i != b) layout.sizes.push_back(x.size(i)), layout.strides.push_back(strides[i]);
  layout.sizes.push_back(c.out().dims.back());
  layout.strides.push_back(strides[a] + strides[b]);
  if (hlo::product(layout.sizes) == 0) layout.offset = 0;
  return view::read(x, layout);
}

Results windows(Call& c) {
  Value x = c.tensor("self");
  const Dims strides = row_major(x.dims());
  const int dim = Call::wrap(c.integer("dimension"), x.rank());
  view::Layout layout{x.dtype(), x.dims(), x.dtype(), c.out().dims, strides, 0};
  if (x.rank() == 0) {
    layout.strides = {1};
  } else {
    layout.strides[dim] *= c.integer("step");
    layout.strides.push_back(strides[dim]);
  }
  return view::read(x, layout);
}

// The same elements seen as another dtype, unit, or as pairs.
Results reinterpreted(Call& c) {
  Value x = c.tensor("self");
  view::Layout layout{x.dtype(), x.dims(), c.out_dtype(), c.out().dims, row_major(c.out().dims), 0};
  return view::read(x, layout);
}

}  // namespace

void views(Table& t) {
  t.op(
      "view _unsafe_view reshape _reshape_alias unsqueeze squeeze squeeze.dim squeeze.dims "
      "flatten.using_ints unflatten.int "
      "view_as",
      regroup);
  t.op("alias detach lift_fresh lift contiguous", identity);
  t.op("clone", identity);
  t.op("expand expand_as", [](Call& c) -> Results { return broadcast_to(c.tensor("self"), c.out().dims); });
  t.op("permute", [](Call& c) -> Results { return permuted(c, c.ints("dims")); });
  t.op("t", [](Call& c) -> Results {
    return c.tensor("self").rank() < 2 ? c.tensor("self") : swap_dims(c.tensor("self"), 0, 1);
  });
  t.op("transpose.int", [](Call& c) -> Results {
    Value x = c.tensor("self");
    return x.rank() == 0
               ? x
               : swap_dims(x, static_cast<int>(c.integer("dim0")), static_cast<int>(c.integer("dim1")));
  });
  t.op("slice.Tensor", slice_of);
  t.op("select.int", selected);
  t.op("split.Tensor unsafe_split.Tensor", [](Call& c) -> Results {
    const Value x = c.tensor("self");
    const int64_t size = x.size(Call::wrap(c.integer("dim"), x.rank())), step = c.integer("split_size");
    Dims sizes;
    for (int64_t at = 0; at < size; at += step) sizes.push_back(std::min(step, size - at));
    return pieces(c, sizes.empty() ? Dims{0} : sizes);
  });
  t.op("split_with_sizes unsafe_split_with_sizes",
       [](Call& c) -> Results { return pieces(c, c.ints("split_sizes")); });
  t.op("unbind.int", [](Call& c) -> Results {
    Value x = c.tensor("self");
    const int dim = Call::wrap(c.integer("dim"), x.rank());
    Values out;
    for (int64_t i = 0; i < x.size(dim); i++) out.push_back(squeeze(slice_dim(x, dim, i, i + 1), dim));
    return out;
  });
  t.op("as_strided", as_strided_of);
  t.op("diagonal", diagonal_of);
  t.op("unfold", windows);
  t.op("view.dtype view_as_real view_as_complex", reinterpreted);
  t.op("_to_copy", [](Call& c) -> Results { return c.tensor("self"); });
}

}  // namespace tpu::ops
