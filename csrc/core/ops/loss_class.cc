// Losses whose targets are class numbers: negative log likelihood and the multi-class margins.
#include <cmath>

#include "core/ops/loss.h"

namespace tpu::ops {

using namespace hlo;

namespace {

Dims all_dims(Value x) {
  Dims out;
  for (int i = 0; i < x.rank(); i++) out.push_back(i);
  return out;
}

// Scores [N, C, ...] against targets [N, ...]; a single sample [C] gets N = 1.
struct Classes {
  Value scores;   // [N, C, ...], in the compute type
  Value target;   // [N, 1, ...], class numbers, in range
  Value ignored;  // [N, 1, ...], bool; empty when no class is ignored
  int64_t count() const { return scores.size(1); }
  /// Whether a class is the target, for each of scores.
  Value hit() const { return equal(iota(target.builder(), target.dtype(), scores.dims(), 1), target); }
  /// What each sample counts: the weight of its class, and nothing when it is ignored.
  Value weight(Call& c) const {
    const DType t = scores.dtype();
    Value w = full(c.b, 1, Type{t, target.dims()});
    if (c.has("weight"))
      w = reshape(take_rows(c.tensor("weight", t), reshape(target, {target.elements()})), target.dims());
    return ignored ? select(ignored, full_like(w, 0), w) : w;
  }
};

Classes classes(Call& c, bool ignore) {
  Value x = c.tensor("self", compute_type(c.dtype_of("self"))), target = c.tensor("target", DType::S64);
  if (x.rank() < 2) x = reshape(x, {1, x.elements()}), target = reshape(target, {1});
  target = unsqueeze(target, 1);
  Classes out{x, target, {}};
  if (ignore) {
    out.ignored = equal(target, c.b.constant(c.integer("ignore_index"), DType::S64));
    target = select(out.ignored, full_like(target, 0), target);
  }
  out.target = c.index(target, 1, x.size(1), false, ignore ? Code::Index : Code::InvalidArgument);
  return out;
}

Results nll(Call& c) {
  const Classes k = classes(c, true);
  const int64_t reduction = c.integer("reduction");
  Value zero = c.b.constant(0.0, k.scores.dtype());
  if (k.scores.elements() == 0) {
    Value none = full(c.b, 0, c.out(0));
    return {reduction == kMean ? full(c.b, NAN, c.out(0)) : none, zero};
  }
  Value weight = k.weight(c), cost = -(take_along_dim(k.scores, k.target, 1) * weight);
  // An ignored sample costs nothing even where its score is NaN.
  cost = select(k.ignored, full_like(cost, 0), cost);
  if (reduction == kNone) return {reshape(cost, c.out(0).dims), zero};
  Value total = reduce_sum(weight, all_dims(weight)), sum = reduce_sum(cost, all_dims(cost));
  return {reduction == kMean ? sum / total : sum, total};
}

Results nll_backward(Call& c) {
  const Classes k = classes(c, true);
  const DType t = k.scores.dtype();
  Value grad = c.tensor("grad_output", t);
  if (k.scores.elements() == 0) return full(c.b, 0, c.out());
  if (grad.rank() > 0) grad = reshape(grad, k.target.dims());
  if (c.integer("reduction") == kMean) grad = grad / c.tensor("total_weight", t);
  Value share = -(grad * k.weight(c));
  share = select(k.ignored, full_like(share, 0), share);
  return reshape(select(k.hit(), share, full_like(k.scores, 0)), c.out().dims);
}

// max(0, margin - x[target] + x[class]) of every other class.
Value margins(Call& c, const Classes& k) {
  Value mine = take_along_dim(k.scores, k.target, 1);
  Value d = c.scalar("margin", k.scores.dtype()) - mine + k.scores;
  return select(k.hit(), full_like(d, 0), maximum(d, like(d, 0)));
}

Results multi_margin(Call& c) {
  const Classes k = classes(c, false);
  if (k.scores.elements() == 0)
    return reduce_loss(c, full(c.b, 0, Type{k.scores.dtype(), {k.scores.size(0)}}));
  Value m = margins(c, k);
  if (c.number("p") == 2) m = m * m;
  Value cost = reduce_sum(m * k.weight(c), {1}) / static_cast<double>(k.count());
  const bool single = c.tensor("self").rank() < 2;
  return reduce_loss(c, single ? reshape(cost, {}) : cost);
}

Results multi_margin_backward(Call& c) {
  Value self = c.tensor("self");
  const Classes k = classes(c, false);
  if (k.scores.elements() == 0) return full_like(self, 0);
  const DType t = k.scores.dtype();
  Value m = margins(c, k), zero = full_like(m, 0);
  Value slope = c.number("p") == 2 ? 2.0 * m : select(m > zero, full_like(m, 1), zero);
  slope = slope * k.weight(c) / static_cast<double>(k.count());
  Value grad = c.tensor("grad_output", t);
  if (grad.rank() > 0) grad = reshape(grad, {k.scores.size(0), 1});
  Value others = -unsqueeze(reduce_sum(slope, {1}), 1);
  Value out =
      select(k.hit(), broadcast_to(others, slope.dims()), slope) * mean_share(c, grad, k.scores.size(0));
  return convert(reshape(out, self.dims()), self.dtype());
}

// Each sample's targets are the class numbers before the first negative one.
struct Labels {
  Value scores;  // [N, C]
  Value target;  // [N, C], in range
  Value counts;  // [N, C], bool: before the first negative one
  Value label;   // [N, C], bool: the class is one of the targets
  Value margin;  // [N, target, C]: max(0, 1 - x[target] + x[class]) for classes that are none
};

Labels labels(Call& c) {
  Value x = c.tensor("self", compute_type(c.dtype_of("self"))), target = c.tensor("target", DType::S64);
  const Dims dims{x.rank() == 2 ? x.size(0) : 1, x.rank() == 0 ? 1 : x.size(-1)};
  x = reshape(x, dims), target = reshape(target, dims);
  const int64_t n = dims[0], k = dims[1];
  Value zero = c.b.constant(0, DType::S64);
  // [N, target, earlier]: one of the earlier ones is negative.
  Value at = iota(c.b, DType::S64, {1, k, k}, 1), earlier = iota(c.b, DType::S64, {1, k, k}, 2);
  Value negative = broadcast_to(unsqueeze(target < zero, 1), {n, k, k});
  Value counts = !reduce_or(negative & (earlier <= at), {2});
  target = c.index(select(counts, target, broadcast_to(zero, dims)), 1, k, false, Code::InvalidArgument);
  Value hit = equal(unsqueeze(target, 2), iota(c.b, DType::S64, {1, k, k}, 2)) & unsqueeze(counts, 2);
  Value label = reduce_or(hit, {1});
  Value d = 1.0 - unsqueeze(take_along_dim(x, target, 1), 2) + unsqueeze(x, 1);
  Value counted = unsqueeze(counts, 2) & !unsqueeze(label, 1);
  return {x, target, counts, label, select(counted, maximum(d, like(d, 0)), full_like(d, 0))};
}

// Its own types: PyTorch's Meta kernel makes a vector of the loss of one row, which is a scalar.
Results multilabel_margin(Call& c) {
  Value self = c.tensor("self");
  const Labels l = labels(c);
  Value cost = reduce_sum(l.margin, {1, 2}) / static_cast<double>(l.scores.size(1));
  if (self.rank() < 2) cost = reshape(cost, {});
  return {convert(reduce_loss(c, cost), self.dtype()),
          reshape(convert(l.label, self.dtype()), c.tensor("target").dims())};
}

Results multilabel_margin_backward(Call& c) {
  Value self = c.tensor("self");
  const Labels l = labels(c);
  const DType t = l.scores.dtype();
  Value active = convert(l.margin > 0.0, t);  // [N, target, C]
  // A class that is none gains from every target it comes too near to; the target loses as much.
  Value gains = reduce_sum(active, {1}), losses = unsqueeze(reduce_sum(active, {2}), 2);
  const int64_t k = l.scores.size(1);
  Value hit = equal(unsqueeze(l.target, 2), iota(c.b, DType::S64, {1, k, k}, 2));
  Value lost = reduce_sum(select(hit, broadcast_to(losses, active.dims()), full_like(active, 0)), {1});
  Value grad = c.tensor("grad_output", t);
  if (grad.rank() > 0) grad = reshape(grad, {l.scores.size(0), 1});
  Value out = (gains - lost) / static_cast<double>(k) * mean_share(c, grad, l.scores.size(0));
  return convert(reshape(out, self.dims()), self.dtype());
}

}  // namespace

void class_losses(Table& t) {
  t.op("nll_loss_forward nll_loss2d_forward", nll);
  t.op("nll_loss_backward nll_loss2d_backward", nll_backward);
  t.op("multi_margin_loss", multi_margin, {.fixed = {"p"}});
  t.op("multi_margin_loss_backward", multi_margin_backward, {.fixed = {"p"}, .infer = true});
  t.op("multilabel_margin_loss_forward", multilabel_margin, {.infer = true});
  t.op("multilabel_margin_loss_backward", multilabel_margin_backward, {.infer = true});
}

}  // namespace tpu::ops
