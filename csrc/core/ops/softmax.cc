// Softmax and log-softmax over one dimension, and their backwards.
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

Value sum_over(Value x, int dim) { return unsqueeze(reduce_sum(x, {dim}), dim); }

Value shifted(Value x, int dim) { return x - unsqueeze(reduce_max(x, {dim}), dim); }

// In x's own type; a row of -inf only gives NaN, as on the CPU.
Value softmax_of(Value x, int dim) {
  if (x.elements() == 0) return x;
  Value e = exp(shifted(x, dim));
  return e / sum_over(e, dim);
}

// Runs f on x with at least one dimension.
template <typename F>
Value over_dim(Call& c, Value x, F f) {
  const Dims dims = x.dims();
  if (dims.empty()) x = reshape(x, {1});
  return reshape(f(x, Call::wrap(c.integer("dim"), x.rank())), dims);
}

DType wide(Call& c) { return c.compute_dtype(); }

// Where `_masked_softmax`'s mask (true: left out) is smaller than the scores: 0 is a mask of [L, L], 1 one of
// [B, L] over the last dimension, 2 has their shape.
Value full_mask(Call& c, const Dims& dims) {
  Value mask = c.tensor("mask", DType::Bool);
  if (mask.dims() == dims) return mask;
  if (dims.size() == 4 && mask.rank() == 2 && c.has("mask_type") && c.integer("mask_type") == 1)
    mask = reshape(mask, {mask.size(0), 1, 1, mask.size(1)});
  return broadcast_to(mask, dims);
}

int masked_dim(Call& c, int rank) {
  return c.has("dim") ? Call::wrap(c.integer("dim"), rank) : std::max(rank - 1, 0);
}

}  // namespace

void softmax(Table& t) {
  t.op("_softmax", [](Call& c) -> Results { return over_dim(c, c.tensor("self", wide(c)), softmax_of); });
  t.op("_log_softmax", [](Call& c) -> Results {
    return over_dim(c, c.tensor("self", wide(c)), [](Value x, int dim) {
      if (x.elements() == 0) return x;
      Value y = shifted(x, dim);
      return y - log(sum_over(exp(y), dim));
    });
  });
  // A row of -inf only gives zeros.
  t.op("_safe_softmax", [](Call& c) -> Results {
    return over_dim(c, c.tensor("self", wide(c)), [](Value x, int dim) {
      if (x.elements() == 0) return x;
      Value empty = equal(unsqueeze(reduce_max(x, {dim}), dim), lowest(x.builder(), x.dtype()));
      return select(empty, full_like(x, 0), softmax_of(x, dim));
    });
  });
  // (grad - sum(grad * output)) * output
  t.op("_softmax_backward_data", [](Call& c) -> Results {
    Value y = c.tensor("output", compute_type(c.dtype_of("output")));
    return over_dim(c, y, [&c](Value y, int dim) {
      Value g = reshape(c.tensor("grad_output", y.dtype()), y.dims());
      Value gy = g * y;
      return gy - y * sum_over(gy, dim);
    });
  });
  // grad - exp(output) * sum(grad)
  t.op("_log_softmax_backward_data", [](Call& c) -> Results {
    Value y = c.tensor("output", compute_type(c.dtype_of("output")));
    return over_dim(c, y, [&c](Value y, int dim) {
      Value g = reshape(c.tensor("grad_output", y.dtype()), y.dims());
      return g - exp(y) * sum_over(g, dim);
    });
  });
  t.op("_masked_softmax",
       [](Call& c) -> Results {
         Value x = c.tensor("self");
         const DType kept = x.dtype();
         x = convert(x, compute_type(kept));
         if (x.elements() == 0) return convert(x, kept);
         const int dim = masked_dim(c, x.rank());
         x = select(full_mask(c, x.dims()), broadcast_to(lowest(c.b, x.dtype()), x.dims()), x);
         return convert(softmax_of(x, dim), kept);
       },
       {.infer = true});
  t.op("_masked_softmax_backward",
       [](Call& c) -> Results {
         Value g = c.tensor("grad_output");
         const DType kept = g.dtype(), t = compute_type(kept);
         Value y = c.tensor("output", t), gy = convert(g, t) * y;
         const int dim = masked_dim(c, y.rank());
         Value x = gy - y * sum_over(gy, dim);
         return convert(select(broadcast_to(c.tensor("mask", DType::Bool), x.dims()), full_like(x, 0), x),
                        kept);
       },
       {.infer = true});
}

}  // namespace tpu::ops
