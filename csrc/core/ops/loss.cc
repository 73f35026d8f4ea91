// Losses and their backwards.
#include "core/ops/loss.h"

#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// Two operands of the result's compute type and what the loss is of each pair of elements.
using Pointwise = Value (*)(Call&, Value x, Value target);

template <Pointwise f>
Results loss_of(Call& c) {
  const DType t = c.compute_dtype();
  return reduce_loss(c, f(c, c.tensor("self", t), c.tensor("target", t)));
}

// `f` is the derivative by x; the result is grad times it, divided by the count for a mean.
template <Pointwise f>
Results loss_backward(Call& c) {
  const DType t = c.compute_dtype();
  Value x = f(c, c.tensor("self", t), c.tensor("target", t));
  return x * mean_share(c, c.tensor("grad_output", t), x.elements());
}

Value square_of(Call&, Value x, Value target) {
  Value d = x - target;
  return d * d;
}
Value square_slope(Call&, Value x, Value target) { return 2.0 * (x - target); }

// Quadratic within beta of the target, linear (with slope 1) outside.
Value smooth_l1(Call& c, Value x, Value target) {
  Value beta = c.scalar("beta", x.dtype()), d = abs(x - target);
  return select(d < beta, 0.5 * d * d / beta, d - 0.5 * beta);
}
Value smooth_l1_slope(Call& c, Value x, Value target) {
  Value beta = c.scalar("beta", x.dtype()), d = x - target;
  return select(d <= -beta, full_like(d, -1), select(d >= beta, full_like(d, 1), d / beta));
}

// As smooth_l1, with slope delta outside.
Value huber(Call& c, Value x, Value target) {
  Value delta = c.scalar("delta", x.dtype()), d = abs(x - target);
  return select(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta));
}
Value huber_slope(Call& c, Value x, Value target) {
  Value delta = c.scalar("delta", x.dtype()), d = x - target;
  return select(d < -delta, -delta, select(d > delta, delta, d));
}

Value soft_margin(Call&, Value x, Value target) { return log1p(exp(-(x * target))); }
Value soft_margin_slope(Call&, Value x, Value target) {
  Value z = exp(-(x * target));
  return -(target * z) / (1.0 + z);
}

Value weighted(Call& c, Value x) { return c.has("weight") ? x * c.tensor("weight", x.dtype()) : x; }

// Logarithms are at least -100, so that a certain and wrong prediction costs a finite amount.
Value binary_cross_entropy(Call& c, Value x, Value target) {
  c.require((x >= 0.0) & (x <= 1.0), "all elements of input should be between 0 and 1");
  const auto bounded = [](Value v) { return maximum(v, like(v, -100)); };
  return weighted(c, (target - 1.0) * bounded(log1p(-x)) - target * bounded(log(x)));
}
Value binary_cross_entropy_slope(Call& c, Value x, Value target) {
  Value variance = (1.0 - x) * x;
  return weighted(c, (x - target) / maximum(variance, like(x, 1e-12)));
}

// -log(sigmoid(x)) = max(-x, 0) + log(1 + exp(-|x|)), which never overflows.
Value logits_cross_entropy(Call& c, Value x, Value target) {
  Value cost = maximum(-x, like(x, 0)) + log1p(exp(-abs(x)));
  if (c.has("pos_weight")) cost = cost * ((c.tensor("pos_weight", x.dtype()) - 1.0) * target + 1.0);
  return weighted(c, (1.0 - target) * x + cost);
}

}  // namespace

Value reduce_loss(Call& c, Value x) {
  const int64_t reduction = c.integer("reduction");
  if (reduction == kNone) return x;
  Dims all;
  for (int i = 0; i < x.rank(); i++) all.push_back(i);
  Value sum = reduce_sum(x, all);
  return reduction == kMean ? sum / static_cast<double>(x.elements()) : sum;
}

Value mean_share(Call& c, Value grad, int64_t count) {
  return c.integer("reduction") == kMean ? grad / static_cast<double>(count) : grad;
}

void loss(Table& t) {
  class_losses(t);
  ctc_loss(t);
  t.op("mse_loss", loss_of<square_of>);
  t.op("mse_loss_backward", loss_backward<square_slope>);
  t.op("smooth_l1_loss", loss_of<smooth_l1>);
  t.op("smooth_l1_loss_backward", loss_backward<smooth_l1_slope>);
  t.op("huber_loss", loss_of<huber>);
  t.op("huber_loss_backward", loss_backward<huber_slope>);
  t.op("soft_margin_loss", loss_of<soft_margin>);
  t.op("soft_margin_loss_backward", loss_backward<soft_margin_slope>);
  t.op("binary_cross_entropy", loss_of<binary_cross_entropy>);
  t.op("binary_cross_entropy_backward", loss_backward<binary_cross_entropy_slope>);
  t.op("binary_cross_entropy_with_logits", loss_of<logits_cross_entropy>);
}

}  // namespace tpu::ops
