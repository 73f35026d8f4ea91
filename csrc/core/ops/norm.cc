// Batch, layer, group and root-mean-square normalisation and their backwards.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/contract.h"
#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

void batch_norm(Table& t);  // batch_norm.cc

using namespace hlo;

namespace {

Dims range(int from, int to) {
  Dims out(std::max(to - from, 0));
  std::iota(out.begin(), out.end(), from);
  return out;
}

// x's mean over dims, which stay with size 1.
Value mean_over(Call& c, Value x, const Dims& dims) {
  Dims kept = x.dims();
  double count = 1;
  for (int64_t d : dims) count *= kept[d], kept[d] = 1;
  return reshape(fast_sum(c, x, dims) / count, kept);
}

struct Normalised {
  Value x, mean, rstd;
};

// Two passes: the variance is that of the centred values, which loses no digits to the mean.
Normalised normalise(Call& c, Value x, const Dims& dims, Value eps) {
  Value mean = mean_over(c, x, dims), centred = x - mean;
  Value rstd = rsqrt(mean_over(c, centred * centred, dims) + eps);
  return {centred * rstd, mean, rstd};
}

// The gradient of x, given that of the normalised x: what changes mean and variance is taken out.
Value input_gradient(Call& c, Value grad, Value normal, Value rstd, const Dims& dims) {
  return rstd * (grad - mean_over(c, grad, dims) - normal * mean_over(c, grad * normal, dims));
}

DType wide(Value x) { return compute_type(x.dtype()); }

Results layer_norm(Call& c) {
  Value x = c.tensor("input");
  const DType t = wide(x);
  x = convert(x, t);
  const Dims dims = range(x.rank() - static_cast<int>(c.ints("normalized_shape").size()), x.rank());
  Normalised n = normalise(c, x, dims, c.scalar("eps", t));
  Value y = n.x;
  if (c.has("weight")) y = y * c.tensor("weight", t);
  if (c.has("bias")) y = y + c.tensor("bias", t);
  return {y, reshape(n.mean, c.out(1).dims), reshape(n.rstd, c.out(2).dims)};
}

Results layer_norm_backward(Call& c) {
  Value x = c.tensor("input");
  const DType t = wide(x);
  x = convert(x, t);
  Value grad = c.tensor("grad_out", t), rstd = c.tensor("rstd", t);
  const int axis = x.rank() - static_cast<int>(c.ints("normalized_shape").size());
  Dims kept = x.dims();
  std::fill(kept.begin() + axis, kept.end(), 1);
  rstd = reshape(rstd, kept);
  Value normal = (x - reshape(c.tensor("mean", t), kept)) * rstd;
  const std::vector<bool> wanted = c.flags("output_mask");
  Values out(3);
  if (wanted[0])
    out[0] = input_gradient(c, c.has("weight") ? grad * c.tensor("weight", t) : grad, normal, rstd,
                            range(axis, x.rank()));
  if (wanted[1]) out[1] = fast_sum(c, grad * normal, range(0, axis));
  if (wanted[2]) out[2] = fast_sum(c, grad, range(0, axis));
  return out;
}

// Channels in groups: [N, G, C/G, positions].
Dims grouped(Call& c) {
  const int64_t groups = c.integer("group");
  return {c.integer("N"), groups, c.integer("C") / groups, c.integer("HxW")};
}

Results group_norm(Call& c) {
  Value x = c.tensor("input");
  const DType t = wide(x);
  const Dims split = grouped(c), channels{1, split[1], split[2], 1};
  Normalised n = normalise(c, reshape(convert(x, t), split), {2, 3}, c.scalar("eps", t));
  Value y = n.x;
  if (c.has("weight")) y = y * reshape(c.tensor("weight", t), channels);
  if (c.has("bias")) y = y + reshape(c.tensor("bias", t), channels);
  return {reshape(y, x.dims()), reshape(n.mean, {split[0], split[1]}), reshape(n.rstd, {split[0], split[1]})};
}

Results group_norm_backward(Call& c) {
  Value x = c.tensor("input");
  const DType t = wide(x);
  const Dims split = grouped(c), each{split[0], split[1], 1, 1}, channels{1, split[1], split[2], 1};
  Value rstd = reshape(c.tensor("rstd", t), each), grad = reshape(c.tensor("grad_out", t), split);
  Value normal = (reshape(convert(x, t), split) - reshape(c.tensor("mean", t), each)) * rstd;
  const std::vector<bool> wanted = c.flags("output_mask");
  Values out(3);
  if (wanted[0]) {
    Value scaled = c.has("weight") ? grad * reshape(c.tensor("weight", t), channels) : grad;
    out[0] = reshape(input_gradient(c, scaled, normal, rstd, {2, 3}), x.dims());
  }
  const Dims flat{split[1] * split[2]};
  if (wanted[1]) out[1] = reshape(fast_sum(c, grad * normal, {0, 3}), flat);
  if (wanted[2]) out[2] = reshape(fast_sum(c, grad, {0, 3}), flat);
  return out;
}

// y = x / sqrt(mean(x^2) + eps) * weight, and the reciprocal root.
Results rms_norm(Call& c) {
  Value x = c.tensor("input");
  const DType kept = x.dtype(), t = wide(x);
  x = convert(x, t);
  const Dims dims = range(x.rank() - static_cast<int>(c.ints("normalized_shape").size()), x.rank());
  const auto epsilon = [&]() -> Value {
    if (c.has("eps")) return c.scalar("eps", t);
    return c.b.constant(t == DType::F64 ? 2.220446049250313e-16 : 1.1920928955078125e-07, t);
  };
  Value rstd = rsqrt(mean_over(c, x * x, dims) + epsilon());
  Value y = x * rstd;
  if (c.has("weight")) y = y * c.tensor("weight", t);
  return {convert(y, kept), rstd};
}

Results rms_norm_backward(Call& c) {
  Value x = c.tensor("input");
  const DType t = wide(x);
  x = convert(x, t);
  Value grad = c.tensor("grad_out", t);
  const int axis = x.rank() - static_cast<int>(c.ints("normalized_shape").size());
  Dims kept = x.dims();
  std::fill(kept.begin() + axis, kept.end(), 1);
  Value rstd = reshape(c.tensor("rstd", t), kept), normal = x * rstd;
  const std::vector<bool> wanted = c.flags("output_mask");
  Values out(2);
  if (wanted[0]) {
    Value scaled = c.has("weight") ? grad * c.tensor("weight", t) : grad;
    out[0] = rstd * (scaled - normal * mean_over(c, scaled * normal, range(axis, x.rank())));
  }
  if (wanted[1]) out[1] = fast_sum(c, grad * normal, range(0, axis));
  return out;
}

Value vector_norm(Value x, double p, const Dims& dims) {
  Value a = abs(x);
  if (p == 0) return reduce_sum(convert(not_equal(a, like(a, 0)), a.dtype()), dims);
  if (p == 1) return reduce_sum(a, dims);
  if (p == 2) return sqrt(reduce_sum(a * a, dims));
  if (std::isinf(p)) return p > 0 ? reduce_max(a, dims) : reduce_min(a, dims);
  return power(reduce_sum(power(a, like(a, p)), dims), like(a, 1 / p));
}

// _weight_norm_interface_backward(grad_w, saved_v, saved_g, saved_norms, dim), where w = g v / |v| with the
// norm over all dimensions but `dim`.
Results weight_norm_backward(Call& c) {
  Value v = c.tensor("saved_v");
  const DType kept = v.dtype(), t = compute_type(kept);
  v = convert(v, t);
  const int dim = Call::wrap(c.integer("dim"), v.rank());
  Dims others, shape(v.rank(), 1);
  for (int d = 0; d < v.rank(); d++)
    if (d != dim) others.push_back(d);
  shape[dim] = v.size(dim);
  const Dims g_dims = c.tensor("saved_g").dims();
  Value grad = c.tensor("grad_w", t), norm = reshape(c.tensor("saved_norms", t), shape);
  Value along = reshape(accurate_sum(grad * v, others), shape) / norm;
  Value grad_v = reshape(c.tensor("saved_g", t), shape) / norm * (grad - v * along / norm);
  return {convert(grad_v, kept), convert(reshape(along, g_dims), c.dtype_of("saved_g"))};
}

}  // namespace

void norm(Table& t) {
  batch_norm(t);
  t.op("native_layer_norm", layer_norm);
  t.op("native_layer_norm_backward", layer_norm_backward);
  t.op("native_group_norm", group_norm);
  t.op("native_group_norm_backward", group_norm_backward);
  t.op("_fused_rms_norm", rms_norm);
  t.op("_fused_rms_norm_backward", rms_norm_backward);
  t.op("_weight_norm_interface_backward", weight_norm_backward, {.infer = true});
  // Each slice along dim with a p-norm over maxnorm is scaled down to it.
  t.op("renorm",
       [](Call& c) -> Results {
         Value x = c.tensor("self", c.compute_dtype());
         const int dim = Call::wrap(c.integer("dim"), x.rank());
         Dims others, kept(x.rank(), 1);
         for (int i = 0; i < x.rank(); i++)
           if (i != dim) others.push_back(i);
         kept[dim] = x.size(dim);
         Value length = reshape(vector_norm(x, c.number("p"), others), kept);
         Value most = c.scalar("maxnorm", length.dtype());
         Value factor = select(length > most, most / (length + 1e-7), full_like(length, 1));
         return x * convert(factor, x.dtype());
       },
       {.fixed = {"p"}});
}

}  // namespace tpu::ops
