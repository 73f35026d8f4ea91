#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// What the fused optimizers share: 0-d factors, the gradient's scaling, and the step not taken when an
// overflow was found. Factors are taken in f64, so that 1 - beta is exact, then rounded to the type of the
// arithmetic.
struct Step {
  explicit Step(Call& c) : c(c), maximize(c.flag("maximize")), scale(c.maybe("grad_scale")) {
    if (auto found = c.maybe("found_inf")) skip = reshape(not_equal(*found, like(*found, 0)), {});
  }
  /// 0-d f64 of a float argument or a one-element tensor.
  Value factor(const char* name) const { return reshape(c.tensor(name, DType::F64), {}); }
  /// The gradient divided by its scale: also the new value of the gradient tensor when there is one.
  Value unscaled(Value grad) const {
    return scale ? grad / reshape(convert(*scale, grad.dtype()), {}) : grad;
  }
  Value signed_grad(Value grad) const { return maximize ? -grad : grad; }
  /// The new value, or the old one when the step is skipped.
  Value keep(Value fresh, Value old) const {
    fresh = convert(fresh, old.dtype());
    return skip ? select(*skip, old, fresh) : fresh;
  }

  Call& c;
  bool maximize;
  std::optional<Value> scale, skip;
};

Values join(std::initializer_list<Values> lists) {
  Values out;
  for (const Values& list : lists) out.insert(out.end(), list.begin(), list.end());
  return out;
}

// m' = beta1 m + (1 - beta1) g,  v' = beta2 v + (1 - beta2) g^2,
// p' = p - lr / (1 - beta1^step) * m' / (sqrt(v') / sqrt(1 - beta2^step) + eps);
// weight decay joins the gradient (Adam), or shrinks p by lr * weight_decay first (AdamW).
template <bool decoupled>
Results adam(Call& c) {
  const Step step(c);
  const bool amsgrad = c.flag("amsgrad");
  const Values params = c.tensors("self"), grads = c.tensors("grads"), means = c.tensors("exp_avgs"),
               squares = c.tensors("exp_avg_sqs"), tops = c.tensors("max_exp_avg_sqs"),
               steps = c.tensors("state_steps");
  const Value lr = step.factor("lr"), beta1 = step.factor("beta1"), beta2 = step.factor("beta2"),
              eps = step.factor("eps"), decay = step.factor("weight_decay");
  Values p1, g1, m1, v1, t1;
  for (size_t i = 0; i < params.size(); i++) {
    const DType t = compute_type(params[i].dtype());
    const auto in = [t](Value v) { return convert(v, t); };
    Value count = reshape(convert(steps[i], DType::F64), {});
    Value step_size = in(lr / (1.0 - power(beta1, count))), correction = in(sqrt(1.0 - power(beta2, count)));
    Value p = in(params[i]), unscaled = step.unscaled(in(grads[i])), g = step.signed_grad(unscaled);
    if (decoupled)
      p = p * in(1.0 - lr * decay);
    else
      g = g + p * in(decay);
    Value old_m = in(means[i]), m = old_m + (g - old_m) * in(1.0 - beta1);
    Value v = in(squares[i]) * in(beta2) + g * g * in(1.0 - beta2);
    Value top = v;
    if (amsgrad) {
      top = maximum(in(tops[i]), v);
      t1.push_back(step.keep(top, tops[i]));
    }
    p = p - step_size * m / (sqrt(top) / correction + in(eps));
    p1.push_back(step.keep(p, params[i]));
    g1.push_back(step.scale ? step.keep(unscaled, grads[i]) : grads[i]);
    m1.push_back(step.keep(m, means[i]));
    v1.push_back(step.keep(v, squares[i]));
  }
  if (!amsgrad) t1 = tops;
  return join({p1, g1, m1, v1, t1});
}

// g' = g + weight_decay p,  b' = momentum b + (1 - dampening) g' (g' itself in the first step),
// p' = p - lr (nesterov ? g' + momentum b' : b')
Results sgd(Call& c) {
  const Step step(c);
  const Values params = c.tensors("self"), grads = c.tensors("grads"),
               buffers = c.tensors("momentum_buffer_list");
  const bool nesterov = c.flag("nesterov"), first = c.flag("is_first_step");
  const Value lr = step.factor("lr"), decay = step.factor("weight_decay"), momentum = step.factor("momentum"),
              dampening = step.factor("dampening");
  Values p1, g1, b1;
  for (size_t i = 0; i < params.size(); i++) {
    const DType t = compute_type(params[i].dtype());
    const auto in = [t](Value v) { return convert(v, t); };
    Value p = in(params[i]), unscaled = step.unscaled(in(grads[i]));
    Value g = step.signed_grad(unscaled) + p * in(decay);
    if (!buffers.empty()) {
      Value b = first ? g : in(buffers[i]) * in(momentum) + g * in(1.0 - dampening);
      b1.push_back(step.keep(b, buffers[i]));
      g = nesterov ? g + b * in(momentum) : b;
    }
    p1.push_back(step.keep(p - g * in(lr), params[i]));
    g1.push_back(step.scale ? step.keep(unscaled, grads[i]) : grads[i]);
  }
  return join({p1, g1, b1});
}

// s' = s + g^2,  p' = p - lr / (1 + (step - 1) lr_decay) * g / (sqrt(s') + eps)
Results adagrad(Call& c) {
  const Step step(c);
  const Values params = c.tensors("self"), grads = c.tensors("grads"), sums = c.tensors("state_sums"),
               steps = c.tensors("state_steps");
  const Value lr = step.factor("lr"), lr_decay = step.factor("lr_decay"), decay = step.factor("weight_decay"),
              eps = step.factor("eps");
  Values p1, g1, s1;
  for (size_t i = 0; i < params.size(); i++) {
    const DType t = compute_type(params[i].dtype());
    const auto in = [t](Value v) { return convert(v, t); };
    Value count = reshape(convert(steps[i], DType::F64), {});
    Value rate = in(lr / (1.0 + (count - 1.0) * lr_decay));
    Value p = in(params[i]), unscaled = step.unscaled(in(grads[i]));
    Value g = step.signed_grad(unscaled) + p * in(decay);
    Value sum = in(sums[i]) + g * g;
    p1.push_back(step.keep(p - rate * g / (sqrt(sum) + in(eps)), params[i]));
    g1.push_back(step.scale ? step.keep(unscaled, grads[i]) : grads[i]);
    s1.push_back(step.keep(sum, sums[i]));
  }
  return c.op() == "_fused_adagrad_" ? join({p1, g1, s1, steps}) : join({p1, g1, s1});  // as each schema says
}

}  // namespace

// The results are the new values of what each schema marks as written, in its order. Gradients change only
// when there is a grad_scale.
void optim(Table& t) {
  t.op("_fused_adam_ _fused_adam_.tensor_lr", adam<false>);
  t.op("_fused_adamw_ _fused_adamw_.tensor_lr", adam<true>);
  t.op("_fused_sgd_ _fused_sgd_.tensor_lr", sgd);
  t.op("_fused_adagrad_ _fused_adagrad_.tensor_lr", adagrad);
}

}  // namespace tpu::ops
