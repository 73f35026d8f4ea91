// Counts in bins: bincount, histc, histogram and histogramdd.
#include "core/ops/indexing.h"
#include "core/ops/order.h"
#include "core/ops/table.h"

namespace tpu::ops {

void histogram(Table& t);

using namespace hlo;

namespace {

Value flat(Value x) { return reshape(x, {x.elements()}); }

// How many of `bin` are 0, 1, ..., bins - 1 (others count nowhere), each with its weight.
Value count_bins(Value bin, Value weight, int64_t bins) {
  Builder& b = bin.builder();
  if (bin.elements() == 0 || bins == 0) return full(b, 0, {weight.dtype(), {bins}});
  // One place past the end takes those that count nowhere.
  Value place = select((bin >= like(bin, 0)) & (bin < b.constant(bins, bin.dtype())), bin,
                       b.constant(bins, bin.dtype()));
  Value out = write(full(b, 0, {weight.dtype(), {bins + 1}}), {{0}, {place}}, weight, add);
  return slice(out, {0}, {bins});
}

// Each counts once.
Value count_bins(Value bin, int64_t bins) {
  return count_bins(bin, full(bin.builder(), 1, {DType::S32, bin.dims()}), bins);
}

// histc(self, bins, min, max): equal bins over [min, max], which the shim has made a proper range.
Results histc(Call& c) {
  const DType own = c.dtype_of("self"), t = is_float(own) ? compute_type(own) : DType::F64;
  Value x = flat(c.tensor("self", t));
  const int64_t bins = c.integer("bins");
  if (x.elements() == 0) return full(c.b, 0, c.out());
  Value low = c.scalar("min", t), high = c.scalar("max", t);
  Value bin = convert((x - low) * static_cast<double>(bins) / (high - low), DType::S32);
  bin = minimum(bin, c.b.constant(bins - 1, DType::S32));
  bin = select((x >= low) & (x <= high), bin, like(bin, -1));
  return count_bins(bin, bins);
}

// tpu::bincount_sized(self, weights, [size]): bincount for a size that holds every value; f32 or f64 weights.
Results bincount(Call& c) {
  Value x = c.tensor("self", DType::S64);
  const int64_t size = c.ints("size")[0];
  if (!c.has("weights")) return convert(count_bins(x, size), DType::S64);
  Value weights = c.tensor("weights");
  if (weights.dtype() != DType::F32) weights = convert(weights, DType::F64);
  return count_bins(x, weights, size);
}

// tpu::histogramdd(self [m, n], bins, weight, density): the points of n dimensions counted between the edges
// that `bins` has for each dimension. The last bin of a dimension includes its right edge.
Results histogramdd(Call& c) {
  const DType kept = c.dtype_of("self"), t = compute_type(kept);
  Value x = c.tensor("self", t);
  const Values edges = c.tensors("bins", t);
  const int64_t m = x.size(0);
  Dims shape;
  for (const Value& e : edges) shape.push_back(e.size(0) - 1);
  const int64_t cells = product(shape);
  if (m == 0 || cells == 0) return full(c.b, 0, {kept, shape});

  const DType position = position_type(cells);
  Value place, inside;
  for (size_t d = 0; d < edges.size(); d++) {
    const int column = static_cast<int>(d);
    const int64_t bins = shape[d];
    Value e = edges[d], v = reshape(slice_dim(x, 1, column, column + 1), {m});
    Value at = convert(search(e, v, true), position) - c.b.constant(1, position);
    at = minimum(at, c.b.constant(bins - 1, position));
    Value in = (v >= reshape(slice(e, {0}, {1}), {})) & (v <= reshape(slice(e, {bins}, {bins + 1}), {}));
    place = place ? place * c.b.constant(bins, position) + at : at;
    inside = inside ? inside & in : in;
  }
  place = select(inside, place, like(place, -1));
  Value hist = c.has("weight") ? count_bins(place, flat(c.tensor("weight", t)), cells)
                               : convert(count_bins(place, cells), t);
  if (c.flag("density")) hist = hist / reduce_sum(hist, {0});
  hist = reshape(hist, shape);
  if (c.flag("density"))
    for (size_t d = 0; d < edges.size(); d++) {
      Value width = slice(edges[d], {1}, {shape[d] + 1}) - slice(edges[d], {0}, {shape[d]});
      hist = hist / broadcast_in_dim(width, shape, {static_cast<int64_t>(d)});
    }
  return convert(hist, kept);
}

}  // namespace

void histogram(Table& t) {
  t.op("histc", histc);
  t.op("tpu::bincount_sized", bincount, {.infer = true});
  t.op("tpu::histogramdd", histogramdd, {.infer = true});
}

}  // namespace tpu::ops
