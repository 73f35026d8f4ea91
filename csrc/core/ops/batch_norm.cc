// Batch normalisation: the plain kernels, and the pieces SyncBatchNorm puts together over several devices.
#include <numeric>

#include "core/ops/contract.h"
#include "core/ops/table.h"

namespace tpu::ops {

void batch_norm(Table& t);

using namespace hlo;

namespace {

// All dimensions but the channels'.
Dims reduced(Value x) {
  Dims out{0};
  for (int i = 2; i < x.rank(); i++) out.push_back(i);
  return out;
}

// A vector of channels against x.
Value spread(Value v, Value x) {
  Dims dims(x.rank(), 1);
  dims[1] = x.size(1);
  return reshape(v, dims);
}

double count(Value x) {
  return static_cast<double>(x.elements()) / static_cast<double>(std::max<int64_t>(x.size(1), 1));
}

DType wide(Value x) { return compute_type(x.dtype()); }

struct Moments {
  Value mean, squares;  // per channel; the sum of the squared differences from the mean
};

Moments moments(Call& c, Value x) {
  Value mean = fast_sum(c, x, reduced(x)) / count(x), centred = x - spread(mean, x);
  return {mean, fast_sum(c, centred * centred, reduced(x))};
}

Value affine(Call& c, Value x, Value mean, Value invstd) {
  const DType t = x.dtype();
  Value scale = c.has("weight") ? invstd * c.tensor("weight", t) : invstd;
  Value y = (x - spread(mean, x)) * spread(scale, x);
  return c.has("bias") ? y + spread(c.tensor("bias", t), x) : y;
}

// (1 - momentum) * running + momentum * fresh; empty when there are no running statistics.
Value moved(Call& c, const char* running, Value fresh) {
  if (!c.has(running)) return {};
  Value old = c.tensor(running);
  Value momentum = c.scalar("momentum", fresh.dtype());
  return convert((1.0 - momentum) * convert(old, fresh.dtype()) + momentum * fresh, old.dtype());
}

struct Normalised {
  Value y, mean, invstd, running_mean, running_var;
};

// `eps` and `momentum` in the type the statistics are computed in. Without training the running statistics
// stay.
Normalised normalise(Call& c, bool training) {
  Value x = c.tensor("input");
  const DType t = wide(x);
  x = convert(x, t);
  Value eps = c.scalar("eps", t);
  if (!training) {
    Value mean = c.tensor("running_mean", t), invstd = rsqrt(c.tensor("running_var", t) + eps);
    return {affine(c, x, mean, invstd), mean, invstd, {}, {}};
  }
  const Moments m = moments(c, x);
  Value invstd = rsqrt(m.squares / count(x) + eps);
  Normalised out{affine(c, x, m.mean, invstd), m.mean, invstd, {}, {}};
  // An overload without statistics has no such arguments.
  if (c.op().find("no_stats") == std::string::npos) {
    out.running_mean = moved(c, "running_mean", m.mean);
    out.running_var = moved(c, "running_var", m.squares / (count(x) - 1));
  }
  return out;
}

// A saved statistic as PyTorch expects it: some kernels save nothing outside training.
Value saved(Call& c, int i, Value v) {
  return c.out(i).elements() == v.elements() ? v : full(c.b, 0, c.out(i));
}

Value reserve(Call& c) { return full(c.b, 0, c.out(3)); }

Results plain(Call& c) {
  Normalised n = normalise(c, c.flag("training"));
  return {n.y, saved(c, 1, n.mean), saved(c, 2, n.invstd), n.running_mean, n.running_var};
}

Value old_or(Call& c, const char* running, Value fresh) { return fresh ? fresh : c.tensor(running); }

struct Gradients {
  Value centred, sum, dot;  // x - mean; sum(grad) and sum(grad * centred) per channel
};

Gradients gradients(Call& c, Value x, Value grad, Value mean) {
  Value centred = x - spread(mean, x);
  return {centred, fast_sum(c, grad, reduced(x)), fast_sum(c, grad * centred, reduced(x))};
}

// The gradient of x where mean and variance depend on it; n counts the elements of a channel.
Value through_statistics(const Gradients& g, Value grad, Value invstd, Value scale, Value sum, Value dot,
                         Value n) {
  Value x = g.centred;
  return (grad - spread(sum / n, x) - x * spread(dot / n * invstd * invstd, x)) * spread(scale, x);
}

Results backward(Call& c, const char* training, const char* save_invstd) {
  Value x = c.tensor("input");
  const DType t = wide(x);
  x = convert(x, t);
  Value grad = c.tensor("grad_out", t);
  const bool train = c.flag(training);
  Value mean = c.tensor(train ? "save_mean" : "running_mean", t);
  Value invstd = train ? c.tensor(save_invstd, t) : rsqrt(c.tensor("running_var", t) + c.scalar("eps", t));
  Value scale = c.has("weight") ? invstd * c.tensor("weight", t) : invstd;
  const Gradients g = gradients(c, x, grad, mean);
  const std::vector<bool> wanted = c.flags("output_mask");
  Values out(3);
  if (wanted[0])
    out[0] = train ? through_statistics(g, grad, invstd, scale, g.sum, g.dot, c.b.constant(count(x), t))
                   : grad * spread(scale, x);
  if (wanted[1]) out[1] = g.dot * invstd;
  if (wanted[2]) out[2] = g.sum;
  return out;
}

// The statistics of all devices from each one's: mean and invstd are [devices, C], counts [devices].
Results gather_stats(Call& c, Value counts) {
  const DType t = counts.dtype();
  Value means = c.tensor("mean", t), invstds = c.tensor("invstd", t), eps = c.scalar("eps", t);
  Value share = unsqueeze(counts, 1), n = reduce_sum(counts, {0});
  Value mean = reduce_sum(means * share, {0}) / n, off = means - mean;
  Value squares = reduce_sum((1.0 / (invstds * invstds) - eps + off * off) * share, {0});
  return {mean, rsqrt(squares / n + eps), moved(c, "running_mean", mean),
          moved(c, "running_var", squares / (n - 1.0))};
}

}  // namespace

void batch_norm(Table& t) {
  const std::vector<std::string> running{"running_mean", "running_var"};

  t.op("native_batch_norm", plain, {.writes = running});
  t.op("_native_batch_norm_legit", plain);
  t.op("_native_batch_norm_legit.no_stats", [](Call& c) -> Results {
    Normalised n = normalise(c, true);
    return {n.y, n.mean, n.invstd};
  });
  t.op("_native_batch_norm_legit_functional", [](Call& c) -> Results {
    Normalised n = normalise(c, c.flag("training"));
    return {n.y, saved(c, 1, n.mean), saved(c, 2, n.invstd), old_or(c, "running_mean", n.running_mean),
            old_or(c, "running_var", n.running_var)};
  });
  t.op("_native_batch_norm_legit_no_training", [](Call& c) -> Results {
    Normalised n = normalise(c, false);
    return {n.y, saved(c, 1, n.mean), saved(c, 2, n.invstd)};
  });
  t.op("_batch_norm_with_update", [](Call& c) -> Results {
    Normalised n = normalise(c, true);
    return {n.y, n.mean, n.invstd, reserve(c), n.running_mean, n.running_var};
  });
  t.op("_batch_norm_with_update_functional", [](Call& c) -> Results {
    Normalised n = normalise(c, true);
    return {n.y, n.mean, n.invstd, reserve(c), n.running_mean, n.running_var};
  });
  t.op("_batch_norm_no_update", [](Call& c) -> Results {
    Normalised n = normalise(c, false);
    return {n.y, saved(c, 1, n.mean), saved(c, 2, n.invstd), reserve(c)};
  });
  t.op("native_batch_norm_backward", [](Call& c) { return backward(c, "train", "save_invstd"); });
  t.op("batch_norm_backward", [](Call& c) { return backward(c, "update", "save_var"); });

  // ---- SyncBatchNorm
  t.op("batch_norm_stats",
       [](Call& c) -> Results {
         Value x = c.tensor("input");
         x = convert(x, wide(x));
         const Moments m = moments(c, x);
         return {m.mean, rsqrt(m.squares / count(x) + c.scalar("eps", x.dtype()))};
       },
       {.infer = true});
  t.op("batch_norm_elemt",
       [](Call& c) -> Results {
         Value x = c.tensor("input");
         const DType kept = x.dtype(), t = wide(x);
         return convert(affine(c, convert(x, t), c.tensor("mean", t), c.tensor("invstd", t)), kept);
       },
       {.infer = true});
  t.op("batch_norm_gather_stats",
       [](Call& c) -> Results {
         const DType t = compute_type(c.dtype_of("mean"));
         return gather_stats(c, broadcast_to(c.scalar("count", t), {c.tensor("mean").size(0)}));
       },
       {.infer = true, .writes = running});
  t.op("batch_norm_gather_stats_with_counts",
       [](Call& c) -> Results {
         Value counts = c.tensor("counts", compute_type(c.dtype_of("mean")));
         return gather_stats(c, reshape(counts, {counts.elements()}));
       },
       {.infer = true, .writes = running});
  t.op("batch_norm_update_stats",
       [](Call& c) -> Results {
         Value x = c.tensor("input");
         x = convert(x, wide(x));
         const Moments m = moments(c, x);
         return {m.mean, m.squares / count(x), moved(c, "running_mean", m.mean),
                 moved(c, "running_var", m.squares / (count(x) - 1))};
       },
       {.infer = true, .writes = running});
  // sum(grad), sum(grad * (x - mean)) and the gradients of weight and bias on this device.
  t.op("batch_norm_backward_reduce",
       [](Call& c) -> Results {
         Value x = c.tensor("input");
         const DType t = wide(x);
         const Gradients g = gradients(c, convert(x, t), c.tensor("grad_out", t), c.tensor("mean", t));
         const DType kept = c.has("weight") ? c.dtype_of("weight") : t;
         Values out(4);
         if (c.flag("input_g")) out[0] = g.sum, out[1] = g.dot;
         if (c.flag("weight_g")) out[2] = convert(g.dot * c.tensor("invstd", t), kept);
         if (c.flag("bias_g")) out[3] = convert(g.sum, kept);
         return out;
       },
       {.infer = true});
  t.op("batch_norm_backward_elemt",
       [](Call& c) -> Results {
         Value x = c.tensor("input");
         const DType kept = x.dtype(), t = wide(x);
         x = convert(x, t);
         Value grad = c.tensor("grad_out", t), invstd = c.tensor("invstd", t), n = c.tensor("count", t);
         Value scale = c.has("weight") ? invstd * c.tensor("weight", t) : invstd;
         const Gradients g{x - spread(c.tensor("mean", t), x), {}, {}};
         Dims all(n.rank());
         std::iota(all.begin(), all.end(), 0);
         return convert(through_statistics(g, grad, invstd, scale, c.tensor("sum_dy", t),
                                           c.tensor("sum_dy_xmu", t), reduce_sum(n, all)),
                        kept);
       },
       {.infer = true});
}

}  // namespace tpu::ops
