// Activation functions and their backwards.
#include <cmath>

#include "core/ops/math.h"
#include "core/ops/random.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// Where x <= bound gives `low`, else (and for NaN) `high`.
Value step(Value x, Value bound, Value low, Value high) { return select(x <= bound, low, high); }
Value zeros(Value x) { return full_like(x, 0); }

// The operands of a backward kernel in the compute type.
struct Backward {
  explicit Backward(Call& c, const char* saved = "self", const char* gradient = "grad_output")
      : c(c), g(c.tensor(gradient, c.compute_dtype())), x(c.tensor(saved, c.compute_dtype())) {}
  Value number(const char* name) const { return c.scalar(name, x.dtype()); }
  Call& c;
  Value g, x;
};

Value relu(Value x) { return select(x < 0.0, like(x, 0), x); }  // keeps -0.0, as CPU torch does
Value relu6(Value x) { return minimum(relu(x), like(x, 6)); }
Value silu(Value x) { return x / (1.0 + exp(-x)); }
Value mish(Value x) { return x * tanh(softplus(x)); }
Value hard_sigmoid(Value x) { return relu6(x + 3) / 6; }
Value hard_swish(Value x) { return x * relu6(x + 3) / 6; }

// elu: x > 0 ? scale x : scale alpha (exp(input_scale x) - 1)
Results elu(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  const DType t = x.dtype();
  Value scale = c.scalar("scale", t), factor = c.scalar("alpha", t) * scale;
  return select(x < 0.0, expm1(x * c.scalar("input_scale", t)) * factor, x * scale);
}
Results elu_backward(Call& c) {
  Backward a(c, "self_or_result");
  Value scale = a.number("scale"), factor = a.number("alpha") * scale, inner = a.number("input_scale");
  Value low = c.flag("is_result") ? a.g * inner * (a.x + factor) : a.g * inner * factor * exp(a.x * inner);
  return step(a.x, like(a.x, 0), low, a.g * scale);
}
// celu: max(0, x) + min(0, alpha (exp(x / alpha) - 1))
Results celu(Call& c) {
  Value x = c.tensor("self", c.compute_dtype()), alpha = c.scalar("alpha", x.dtype());
  return select(x < 0.0, expm1(x / alpha) * alpha, x);
}

constexpr double kTanhScale = M_SQRT2 * M_2_SQRTPI * 0.5, kTanhCubic = 0.044715;

// gelu: x P(N <= x), P exact or by tanh
Results gelu(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  if (c.str("approximate") == "tanh")
    return 0.5 * x * (1.0 + tanh(kTanhScale * (x + kTanhCubic * x * x * x)));
  return x * 0.5 * (1.0 + erf(x * M_SQRT1_2));
}
Results gelu_backward(Call& c) {
  Backward a(c);
  Value x = a.x;
  if (c.str("approximate") == "tanh") {
    Value square = x * x, t = tanh(kTanhScale * (x + kTanhCubic * square * x));
    Value inner = kTanhScale * (1.0 + 3 * kTanhCubic * square);
    return a.g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner);
  }
  Value below = 0.5 * (1.0 + erf(x * M_SQRT1_2));
  Value density = exp(x * x * -0.5) * (M_2_SQRTPI * M_SQRT1_2 * 0.5);
  return a.g * (below + x * density);
}

Results silu_backward(Call& c) {
  Backward a(c);
  Value s = sigmoid(a.x);
  return a.g * s * (1.0 + a.x * (1.0 - s));
}
Results mish_backward(Call& c) {
  Backward a(c);
  Value t = tanh(softplus(a.x));
  return a.g * (t + a.x * sigmoid(a.x) * (1.0 - t * t));
}

Results leaky_relu(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  return select(x > 0.0, x, x * c.scalar("negative_slope", x.dtype()));
}
Results leaky_relu_backward(Call& c) {
  Backward a(c);
  return select(a.x > 0.0, a.g, a.g * a.number("negative_slope"));
}

// hardtanh: x between min_val and max_val
Results hard_tanh(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  return minimum(maximum(x, c.scalar("min_val", x.dtype())), c.scalar("max_val", x.dtype()));
}
Results hard_tanh_backward(Call& c) {
  Backward a(c);
  return select((a.x <= a.number("min_val")) | (a.x >= a.number("max_val")), zeros(a.g), a.g);
}
Results hard_sigmoid_backward(Call& c) {
  Backward a(c);
  return select((a.x > -3.0) & (a.x < 3.0), a.g / 6, zeros(a.g));
}
Results hard_swish_backward(Call& c) {
  Backward a(c);
  return select(a.x <= -3.0, zeros(a.g), select(a.x < 3.0, a.g * (a.x / 3 + 0.5), a.g));
}

// softplus: log(1 + exp(beta x)) / beta, x itself where beta x > threshold
Results soft_plus(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  Value beta = c.scalar("beta", x.dtype()), y = x * beta;
  return select(y > c.scalar("threshold", x.dtype()), x, log1p(exp(y)) / beta);
}
Results soft_plus_backward(Call& c) {
  Backward a(c);
  Value y = a.x * a.number("beta");
  return select(y > a.number("threshold"), a.g, a.g * sigmoid(y));
}

// Shrinking: numbers in [-lambd, lambd] become 0, the others move towards it (soft) or stay (hard).
Value inside(Value x, Value lambd) { return (x >= -lambd) & (x <= lambd); }
Results soft_shrink(Call& c) {
  Value x = c.tensor("self", c.compute_dtype()), lambd = c.scalar("lambd", x.dtype());
  return select(x > lambd, x - lambd, select(x < -lambd, x + lambd, x * 0));
}
Results hard_shrink(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  return select(inside(x, c.scalar("lambd", x.dtype())), zeros(x), x);
}
Results shrink_backward(const Backward& a) { return select(inside(a.x, a.number("lambd")), zeros(a.g), a.g); }

// threshold: x > threshold ? x : value
Results threshold(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  return step(x, c.scalar("threshold", x.dtype()), c.scalar("value", x.dtype()), x);
}
Results threshold_backward(Call& c) {
  Backward a(c);
  return step(a.x, a.number("threshold"), zeros(a.g), a.g);
}

// log(sigmoid(x)), and exp(-|x|) where the caller has room for it.
Results log_sigmoid_forward(Call& c) {
  Value x = c.tensor("self", c.compute_dtype()), z = exp(-abs(x));
  Value buffer = c.out(1).dims == x.dims() ? z : full(c.b, 0, Type{x.dtype(), c.out(1).dims});
  return {minimum(x, like(x, 0)) - log1p(z), buffer};
}
Results log_sigmoid_backward(Call& c) {
  Backward a(c);
  Value z = exp(-abs(a.x)), part = z / (1.0 + z);
  return a.g * select(a.x < 0.0, 1.0 - part, part);
}

// glu: the first half of `dim` times the sigmoid of the second
struct Halves {
  Halves(Call& c, Value x) : dim(Call::wrap(c.integer("dim"), x.rank())), n(x.size(dim) / 2) {
    first = slice_dim(x, dim, 0, n), second = slice_dim(x, dim, n, 2 * n);
  }
  int dim;
  int64_t n;
  Value first, second;
};
Results glu(Call& c) {
  Halves x(c, c.tensor("self", c.compute_dtype()));
  return x.first * sigmoid(x.second);
}
Results glu_backward(Call& c) {
  Backward a(c);
  Halves x(c, a.x);
  Value s = sigmoid(x.second), first = a.g * s;
  return concatenate({first, first * x.first * (1.0 - s)}, x.dim);
}
// The forward derivative along dx.
Results glu_jvp(Call& c) {
  const DType t = c.compute_dtype();
  Halves x(c, c.tensor("x", t)), d(c, c.tensor("dx", t));
  Value s = sigmoid(x.second);
  return d.first * s + c.tensor("glu", t) * (1.0 - s) * d.second;
}

// rrelu: negative numbers times a slope, in training a random one of [lower, upper) for each element, which
// is kept in `noise` (1 for the others). Returns the result and the noise.
Results random_leaky_relu(Call& c) {
  const DType t = c.dtype_of("self");
  Value x = c.tensor("self", compute_type(t));
  Value lower = c.scalar("lower", x.dtype()), upper = c.scalar("upper", x.dtype());
  if (!c.flag("training")) {
    Value slope = (lower + upper) / 2;
    return {convert(select(x <= 0.0, x * slope, x), t), c.tensor("noise")};
  }
  Value slope = lower + (upper - lower) * uniform(c, Type{t, x.dims()});
  Value noise = select(x <= 0.0, slope, full_like(x, 1));
  return {convert(x * noise, t), convert(noise, t)};
}

Results prelu_backward(Call& c) {
  Backward a(c);
  Value weight = c.tensor("weight", a.x.dtype()), up = a.x > 0.0;
  return {select(up, a.g, weight * a.g), select(up, zeros(a.g), a.x * a.g)};
}

Results logit_backward(Call& c) {
  Backward a(c);
  Value low = c.has("eps") ? a.number("eps") : like(a.x, 0);
  Value outside = (a.x < low) | (a.x > 1.0 - low);
  return select(outside, full_like(a.g, c.has("eps") ? 0 : NAN), a.g / (a.x * (1.0 - a.x)));
}

}  // namespace

void activation(Table& t) {
  t.unary<relu>("relu");
  t.unary<silu>("silu");
  t.unary<mish>("mish");
  t.unary<hard_sigmoid>("hardsigmoid");
  t.unary<hard_swish>("hardswish");
  t.op("elu", elu);
  t.op("celu", celu);
  t.op("gelu", gelu);
  t.op("leaky_relu", leaky_relu);
  t.op("hardtanh", hard_tanh);
  t.op("softplus", soft_plus);
  t.op("softshrink", soft_shrink);
  t.op("hardshrink", hard_shrink);
  t.op("threshold", threshold);
  t.op("log_sigmoid_forward", log_sigmoid_forward);
  t.op("glu", glu);
  t.op("rrelu_with_noise rrelu_with_noise_functional", random_leaky_relu, {.infer = true});
  t.op("glu_jvp", glu_jvp, {.infer = true});
  t.op("_prelu_kernel", [](Call& c) -> Results {
    Value x = c.tensor("self", c.compute_dtype());
    return select(x > 0.0, x, c.tensor("weight", x.dtype()) * x);
  });

  t.op("sigmoid_backward", [](Call& c) -> Results {
    Backward a(c, "output");
    return a.g * conjugate((1.0 - a.x) * a.x);
  });
  t.op("tanh_backward", [](Call& c) -> Results {
    Backward a(c, "output");
    return a.g * conjugate(1.0 - a.x * a.x);
  });
  t.op("logit_backward", logit_backward);
  t.op("elu_backward", elu_backward);
  t.op("gelu_backward", gelu_backward);
  t.op("silu_backward", silu_backward);
  t.op("mish_backward", mish_backward);
  t.op("leaky_relu_backward", leaky_relu_backward);
  t.op("hardtanh_backward", hard_tanh_backward);
  t.op("hardsigmoid_backward", hard_sigmoid_backward);
  t.op("hardswish_backward", hard_swish_backward);
  t.op("softplus_backward", soft_plus_backward);
  t.op("softshrink_backward", [](Call& c) -> Results { return shrink_backward(Backward(c)); });
  t.op("hardshrink_backward",
       [](Call& c) -> Results { return shrink_backward(Backward(c, "self", "grad_out")); });
  t.op("threshold_backward", threshold_backward);
  t.op("log_sigmoid_backward", log_sigmoid_backward);
  t.op("glu_backward", glu_backward);
  t.op("_prelu_kernel_backward", prelu_backward);
}

}  // namespace tpu::ops
