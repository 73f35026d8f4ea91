// Rounding of floats to the values that a quantised type would hold, and the derivatives of it.
#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// x / scale rounded, plus the zero point; scale and zero point are of x's shape or broadcast to it.
struct Quantizer {
  Quantizer(Call& c, Value x, Value scale, Value zero_point, bool whole_zero_point = true)
      : scale(scale),
        zero_point(zero_point),
        low(c.b.constant(c.integer("quant_min"), x.dtype())),
        high(c.b.constant(c.integer("quant_max"), x.dtype())) {
    Value q = x * (1.0 / scale);
    q = whole_zero_point ? round_even(q) + zero_point : round_even(q + zero_point);
    level = select(is_nan(q), lowest(c.b, q.dtype()), q);  // as the CPU has it: NaN counts as the least
  }
  Value inside() const { return (level >= low) & (level <= high); }
  Value clamped() const { return minimum(maximum(level, low), high); }
  Value value() const { return (clamped() - zero_point) * scale; }
  Value scale, zero_point, low, high, level;
};

Value scalar(Value x) { return reshape(x, {}); }

// A vector along `axis` of x.
Value along(Call& c, const char* name, Value x) {
  Dims dims(x.rank(), 1);
  dims[Call::wrap(c.integer("axis"), x.rank())] = -1;
  Value v = c.tensor(name, x.dtype());
  for (int64_t& d : dims)
    if (d < 0) d = v.elements();
  return reshape(v, dims);
}

// fake_quantize_per_tensor_affine_cachemask, with numbers or tensors of one element -> (output, mask)
Results per_tensor(Call& c) {
  const DType kept = c.dtype_of("self"), t = compute_type(kept);
  Value x = c.tensor("self", t);
  const Quantizer q(c, x, scalar(c.tensor("scale", t)), scalar(c.tensor("zero_point", t)));
  Value y = q.value(), mask = q.inside();
  if (c.has("fake_quant_enabled")) {
    Value on = not_equal(scalar(c.tensor("fake_quant_enabled", DType::S64)), c.b.constant(0, DType::S64));
    y = select(on, y, x), mask = mask | !on;
  }
  return {convert(y, kept), mask};
}

// fake_quantize_per_channel_affine_cachemask -> (output, mask). A float zero point is added before rounding.
Results per_channel(Call& c) {
  const DType kept = c.dtype_of("self"), t = compute_type(kept);
  Value x = c.tensor("self", t);
  const Quantizer q(c, x, along(c, "scale", x), along(c, "zero_point", x),
                    !is_float(c.dtype_of("zero_point")));
  return {convert(q.value(), kept), q.inside()};
}

// The learnable forms: scale and zero point are parameters; the zero point is rounded and clamped first. As
// the CPU has it, the gradient of a whole tensor rounds it by adding a half and cutting off.
Quantizer learnable(Call& c, Value x, bool channels, bool gradient) {
  const DType t = x.dtype();
  Value scale = channels ? along(c, "scale", x) : scalar(c.tensor("scale", t));
  Value zero = channels ? along(c, "zero_point", x) : scalar(c.tensor("zero_point", t));
  const bool cut = gradient && !channels;
  zero = minimum(maximum(cut ? zero + 0.5 : round_even(zero), c.b.constant(c.integer("quant_min"), t)),
                 c.b.constant(c.integer("quant_max"), t));
  return {c, x, scale, cut ? truncate(zero) : zero};
}

template <bool channels>
Results learnable_forward(Call& c) {
  const DType kept = c.dtype_of("self");
  Value x = c.tensor("self", compute_type(kept));
  return convert(learnable(c, x, channels, false).value(), kept);
}

// -> gradients of self, scale and zero_point
template <bool channels>
Results learnable_backward(Call& c) {
  const DType kept = c.dtype_of("self"), t = compute_type(kept);
  Value x = c.tensor("self", t), grad = c.tensor("grad", t), factor = c.scalar("grad_factor", t);
  const Quantizer q = learnable(c, x, channels, true);
  Value inside = q.inside(), none = full_like(x, 0);
  Value by_scale = select(inside, (q.value() - x) * (1.0 / q.scale), q.clamped() - q.zero_point);
  Value by_zero = select(inside, none, broadcast_to(-q.scale, x.dims()));
  Dims others;
  for (int d = 0; d < x.rank(); d++)
    if (!channels || d != Call::wrap(c.integer("axis"), x.rank())) others.push_back(d);
  const auto total = [&](Value slope, const char* name) {
    Value sum = reduce_sum(grad * slope * factor, others);
    return convert(channels ? sum : reshape(sum, {1}), c.dtype_of(name));
  };
  return {convert(select(inside, grad, none), kept), total(by_scale, "scale"), total(by_zero, "zero_point")};
}

}  // namespace

void quantize(Table& t) {
  const Options infer{.infer = true};
  t.op("fake_quantize_per_tensor_affine_cachemask _fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
       per_tensor, infer);
  t.op("fake_quantize_per_channel_affine_cachemask", per_channel, infer);
  t.op("_fake_quantize_learnable_per_tensor_affine", learnable_forward<false>, infer);
  t.op("_fake_quantize_learnable_per_channel_affine", learnable_forward<true>, infer);
  t.op("_fake_quantize_learnable_per_tensor_affine_backward", learnable_backward<false>, infer);
  t.op("_fake_quantize_learnable_per_channel_affine_backward", learnable_backward<true>, infer);
}

}  // namespace tpu::ops
