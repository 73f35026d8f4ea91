#include "core/ops/indexing.h"
#include "core/ops/order.h"
#include "core/ops/scan.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// A 0-d tensor counts as one of one element, as PyTorch's index operators have it.
Value at_least_1d(Value x) { return x.rank() ? x : reshape(x, {1}); }

Value flat(Value x) { return reshape(x, {x.elements()}); }

// What the shapes of index tensors broadcast to; an IndexError when they do not.
Dims common_shape(Call& c, const std::vector<std::optional<Value>>& indices) {
  Dims shape;
  std::string shapes;
  for (const auto& i : indices)
    if (i) shapes += (shapes.empty() ? "" : ", ") + hlo::str(i->dims());
  for (const auto& i : indices) {
    if (!i) continue;
    try {
      shape = broadcast_dims(shape, i->dims());
    } catch (const Error&) {
      throw Error(Code::Index, c.op(),
                  "shape mismatch: indexing tensors could not be broadcast together with shapes " + shapes);
    }
  }
  return shape;
}

// The Tensor?[] argument `indices` of self, broadcast together. Checked, and negative indices count from the
// end; or unchecked and clamped, where a mask decides which of them count.
Places places(Call& c, Value self, bool checked = true) {
  Places at;
  const auto given = c.maybe_tensors("indices");
  const Dims shape = common_shape(c, given);
  for (size_t d = 0; d < given.size(); d++) {
    if (!given[d]) continue;
    const int64_t size = self.dims()[d];
    Value i = *given[d];
    if (checked)
      i = c.index(i, static_cast<int64_t>(d), size, true);
    else
      i = minimum(maximum(i, like(i, 0)), c.b.constant(std::max<int64_t>(size - 1, 0), i.dtype()));
    at.dims.push_back(static_cast<int>(d));
    at.index.push_back(i);
  }
  for (Value& i : at.index) i = broadcast_to(i, shape);
  return at;
}

// self[indices]
Results index_of(Call& c) {
  Value self = c.tensor("self");
  const Places at = places(c, self);
  return at.dims.empty() ? self : read(self, at);
}

// self with `values` where the mask, the only index, is true. They are the same for all of the mask's
// dimensions, which count as one of size 1 in their shape.
Value put_masked(Value self, Value mask, int64_t position, Value values, const Combine& combine) {
  Dims ones(position, 1), shape = values.dims();
  const int64_t after = self.rank() - position - mask.rank();
  while (static_cast<int64_t>(shape.size()) > position + 1 + after) shape.erase(shape.begin());
  while (static_cast<int64_t>(shape.size()) < position + 1 + after) shape.insert(shape.begin(), 1);
  shape.erase(shape.begin() + position);
  shape.insert(shape.begin() + position, mask.rank(), 1);
  values = broadcast_to(reshape(values, shape), self.dims());
  ones.insert(ones.end(), mask.dims().begin(), mask.dims().end());
  ones.insert(ones.end(), after, 1);
  return select(reshape(mask, ones), combine ? combine(self, values) : values, self);
}

// self with self[indices] = values, or += values
Results index_put(Call& c) {
  const bool accumulate = c.flag("accumulate");
  const DType own = c.dtype_of("self"), t = accumulate ? compute_type(own) : own;
  Value self = c.tensor("self", t), values = c.tensor("values", t);
  const auto given = c.maybe_tensors("indices");
  for (size_t d = 0; d < given.size(); d++)
    if (given[d] && given[d]->dtype() == DType::Bool)
      return put_masked(self, *given[d], static_cast<int64_t>(d), values,
                        accumulate ? combination("sum", own) : nullptr);
  const Places at = places(c, self);
  if (at.dims.empty()) {
    values = broadcast_to(values, self.dims());
    return accumulate ? (own == DType::Bool ? self | values : self + values) : values;
  }
  // Leading dimensions of size 1 that the selection lacks do not count.
  Dims dims = values.dims();
  while (static_cast<int>(dims.size()) > static_cast<int>(at.shape(self.dims()).size()))
    dims.erase(dims.begin());
  return write(self, at, reshape(values, dims), accumulate ? combination("sum", own) : nullptr);
}

// Whole slices along `dim` by a 1-d (or 0-d) index. Only index_fill takes negative ones.
struct Slices {
  Slices(Call& c, Value self, bool negative = false, Code code = Code::Index)
      : self(at_least_1d(self)), dim(c.wrap(c.integer("dim"), self.rank())) {
    at = {{dim}, {c.index(at_least_1d(c.tensor("index")), dim, this->self.dims()[dim], negative, code)}};
  }
  /// A source whose size along `dim` is the index's; 0-d counts as one element.
  Value source(Value x) const { return reshape(x, at.shape(self.dims())); }
  Value self;
  int dim;
  Places at;
};

// self.index_add(dim, index, source, alpha): self[index] += alpha * source
Results index_add(Call& c) {
  const DType t = c.compute_dtype();
  Value self = c.tensor("self", t), source = c.tensor("source", t);
  Slices s(c, self, false, self.rank() > 1 ? Code::InvalidArgument : Code::Index);
  if (t == DType::Bool)
    return reshape(write(s.self, s.at, s.source(source) & c.scalar("alpha", t), logical_or), c.out().dims);
  return reshape(write(s.self, s.at, s.source(source * c.scalar("alpha", t)), add), c.out().dims);
}

Results index_reduce(Call& c) {
  const DType t = c.compute_dtype();
  Slices s(c, c.tensor("self", t));
  Value out = reduce_places(s.self, s.source(c.tensor("source", t)), c.str("reduce"), c.flag("include_self"),
                            [&](Value x, Value v, const Combine& f) { return write(x, s.at, v, f); });
  return reshape(out, c.out().dims);
}

// torch.gather's and torch.scatter's index along dim.
Value element_index(Call& c, Value self, int dim) {
  Value index = at_least_1d(c.tensor("index"));
  return c.index(index, dim, at_least_1d(self).dims()[dim], false, Code::InvalidArgument);
}

// scatter's source: the corner of `src` that the index covers, or a number everywhere.
Value scatter_source(Call& c, Value index, DType t) {
  if (c.has("value")) return broadcast_to(c.scalar("value", t), index.dims());
  Value src = at_least_1d(c.tensor("src", t));
  return slice(src, Dims(src.rank(), 0), index.dims());
}

// scatter(self, dim, index, src | value [, reduce]) for every overload.
Results scatter_of(Call& c) {
  const bool two = c.op().rfind("scatter_reduce", 0) == 0, sum = c.op().rfind("scatter_add", 0) == 0;
  const std::string name = sum ? "sum" : c.has("reduce") ? c.str("reduce") : "";
  const DType t = name.empty() ? c.out_dtype() : c.compute_dtype();
  Value self = at_least_1d(c.tensor("self", t));
  const int dim = c.wrap(c.integer("dim"), self.rank());
  Value index = c.tensor("index");
  if (index.elements() == 0) return c.tensor("self");
  index = element_index(c, self, dim);
  Value source = scatter_source(c, index, t);
  const auto put = [&](Value x, Value v, const Combine& f) { return scatter_along(x, dim, index, v, f); };
  if (name.empty()) return reshape(put(self, source, nullptr), c.out().dims);
  return reshape(reduce_places(self, source, name, !two || c.flag("include_self"), put), c.out().dims);
}

// put(self, index, source, accumulate): index into the flattened self.
Results put_of(Call& c) {
  const bool accumulate = c.flag("accumulate");
  const DType own = c.dtype_of("self"), t = accumulate ? compute_type(own) : own;
  Value self = c.tensor("self", t);
  Value index = c.index(flat(c.tensor("index")), 0, self.elements(), true);
  if (index.elements() == 0) return self;
  return reshape(write(flat(self), {{0}, {index}}, flat(c.tensor("source", t)),
                       accumulate ? combination("sum", own) : nullptr),
                 self.dims());
}

Results masked_fill(Call& c) {
  Value self = c.tensor("self", c.out_dtype());
  return select(c.tensor("mask", DType::Bool), reshape(c.tensor("value", c.out_dtype()), {}), self);
}

// The true places take the elements of source in order.
Results masked_scatter(Call& c) {
  Value self = c.tensor("self"), mask = c.tensor("mask", DType::Bool),
        source = flat(c.tensor("source", c.out_dtype()));
  const Dims& dims = c.out().dims;
  self = broadcast_to(convert(self, c.out_dtype()), dims);
  mask = broadcast_to(mask, dims);
  if (source.elements() == 0 || self.elements() == 0) return self;
  // How many are true up to each element, less one: what is before the first true one is not used.
  const DType t = position_type(self.elements());
  Value rank = scan_along(convert(flat(mask), t), 0, add) - c.b.constant(1, t);
  rank = minimum(maximum(rank, like(rank, 0)), c.b.constant(source.elements() - 1, t));
  return select(mask, reshape(take_rows(source, rank), dims), self);
}

// Its gradient for source: the true places' elements first, then zeros, in shape `sizes`.
Results masked_scatter_backward(Call& c) {
  Value grad = c.tensor("grad_output");
  Value mask = broadcast_to(c.tensor("mask", DType::Bool), grad.dims());
  const int64_t wanted = c.out().elements();
  if (grad.elements() == 0 || wanted == 0) return full(c.b, 0, c.out());
  Value values = compact(c, flat(grad), flat(mask));
  Value count = reduce_sum(convert(flat(mask), DType::S64), {0});
  values = select(iota(c.b, DType::S64, values.dims(), 0) < count, values, like(values, 0));
  values = pad(values, like(values, 0), {0}, {wanted - grad.elements()});
  return reshape(values, c.out().dims);
}

// Coordinates [n, rank] in s64 of flat positions in `dims`.
Value coordinates(Value position, const Dims& dims) {
  Builder& b = position.builder();
  if (dims.empty()) return full(b, 0, {DType::S64, {position.elements(), 0}});
  const Dims strides = row_major(dims);
  Values columns;
  for (size_t d = 0; d < dims.size(); d++) {
    Value at = position / b.constant(std::max<int64_t>(strides[d], 1), position.dtype());
    if (d > 0) at = remainder(at, b.constant(std::max<int64_t>(dims[d], 1), position.dtype()));
    columns.push_back(convert(unsqueeze(at, 1), DType::S64));
  }
  return concatenate(columns, 1);
}

}  // namespace

void index(Table& t) {
  t.op("index.Tensor _unsafe_index.Tensor", index_of);
  t.op("index_put _index_put_impl _index_put_impl_ _unsafe_index_put", index_put);
  // _unsafe_masked_index(self, mask, indices, fill): self[indices] where mask, else fill
  t.op("_unsafe_masked_index", [](Call& c) -> Results {
    Value self = c.tensor("self"), mask = c.tensor("mask", DType::Bool),
          fill = c.scalar("fill", self.dtype());
    const Places at = places(c, self, false);
    return select(mask, at.dims.empty() ? self : read(self, at), fill);
  });
  // ..._put_accumulate(self, mask, indices, values): self[indices] += values where mask
  t.op("_unsafe_masked_index_put_accumulate", [](Call& c) -> Results {
    const DType ct = c.compute_dtype();
    Value self = c.tensor("self", ct), mask = c.tensor("mask", DType::Bool), values = c.tensor("values", ct);
    const Places at = places(c, self, false);
    values = select(mask, values, like(values, 0));
    return at.dims.empty() ? self + values : write(self, at, values, add);
  });
  t.op("index_select", [](Call& c) -> Results {
    Slices s(c, c.tensor("self"));
    return reshape(read(s.self, s.at), c.out().dims);
  });
  t.op("index_add", index_add);
  t.op("index_copy", [](Call& c) -> Results {
    Slices s(c, c.tensor("self"));
    return reshape(write(s.self, s.at, s.source(c.tensor("source")), nullptr), c.out().dims);
  });
  t.op("index_fill.int_Scalar index_fill.int_Tensor", [](Call& c) -> Results {
    Slices s(c, c.tensor("self"), true);
    return reshape(write(s.self, s.at, reshape(c.tensor("value", c.out_dtype()), {}), nullptr), c.out().dims);
  });
  t.op("index_reduce", index_reduce);
  t.op("gather", [](Call& c) -> Results {
    Value self = at_least_1d(c.tensor("self"));
    const int dim = c.wrap(c.integer("dim"), self.rank());
    if (c.out().elements() == 0) return full(c.b, 0, c.out());
    return reshape(take_along_dim(self, element_index(c, self, dim), dim), c.out().dims);
  });
  t.op("scatter.src scatter.value scatter.reduce scatter.value_reduce scatter_add scatter_reduce.two",
       scatter_of);
  t.op("take", [](Call& c) -> Results {
    Value self = flat(c.tensor("self"));
    if (c.out().elements() == 0) return full(c.b, 0, c.out());
    Value index = c.index(flat(c.tensor("index")), 0, self.elements(), true);
    return reshape(take_rows(self, index), c.out().dims);
  });
  t.op("put put_", put_of);
  t.op("masked_fill.Scalar masked_fill.Tensor", masked_fill);
  t.op("masked_scatter", masked_scatter);
  t.op("masked_scatter_backward", masked_scatter_backward);
  // nonzero_static(self, size, fill_value): the first `size` of nonzero's rows, then fill
  t.op("nonzero_static", [](Call& c) -> Results {
    Value self = c.tensor("self"), mask = convert(flat(self), DType::Bool);
    const int64_t size = c.integer("size"), n = mask.elements();
    Value fill = c.b.constant(c.integer("fill_value"), DType::S64);
    if (n == 0 || c.out().elements() == 0) return broadcast_to(fill, c.out().dims);
    Value at = compact(c, mask), count = reduce_sum(convert(mask, at.dtype()), {0});
    Value rows = coordinates(at, self.dims());
    rows = select(unsqueeze(iota(c.b, at.dtype(), {n}, 0) < count, 1), rows, fill);
    return pad(rows, fill, {0, 0}, {size - n, 0});
  });

  // For operators whose result's size depends on data: everything at its largest size, and the count.
  // tpu::nonzero_padded(self) -> (s64 [rank, numel], s64 count)
  t.op("tpu::nonzero_padded",
       [](Call& c) -> Results {
         Value self = c.tensor("self"), mask = convert(flat(self), DType::Bool);
         if (mask.elements() == 0)
           return {full(c.b, 0, {DType::S64, {self.rank(), 0}}), c.b.constant(0, DType::S64)};
         return {swap_dims(coordinates(compact(c, mask), self.dims()), 0, 1),
                 reduce_sum(convert(mask, DType::S64), {0})};
       },
       {.infer = true});
  // tpu::masked_select_padded(self, mask) -> (values, s64 count)
  t.op("tpu::masked_select_padded",
       [](Call& c) -> Results {
         Value self = c.tensor("self"), mask = c.tensor("mask", DType::Bool);
         const Dims dims = broadcast_dims(self.dims(), mask.dims());
         self = flat(broadcast_to(self, dims)), mask = flat(broadcast_to(mask, dims));
         if (mask.elements() == 0) return {self, c.b.constant(0, DType::S64)};
         return {compact(c, self, mask), reduce_sum(convert(mask, DType::S64), {0})};
       },
       {.infer = true});
}

}  // namespace tpu::ops
