// Connectionist temporal classification: the log probability of a label sequence over all its alignments.
#include <algorithm>
#include <numeric>

#include "core/ops/contract.h"
#include "core/ops/loss.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// Labels with a blank before, between and after them: L = 2S + 1 states, S the longest target.
struct Alignment {
  Value label;           // [N, L] class numbers
  Value skip;            // [N, L], bool: state s may follow s - 2 directly (a label unlike the one before)
  Value score;           // [T, N, L] log probability of each state's label
  Dims inputs, targets;  // lengths, N each
  int64_t steps() const { return score.size(0); }
  int64_t states() const { return score.size(2); }
};

Value minus_infinity(Value like, const Dims& dims) {
  return broadcast_to(lowest(like.builder(), like.dtype()), dims);
}

// log(sum(exp(x))) of equally shaped values; -inf when all are.
Value log_sum(const Values& xs) {
  Value most = xs[0];
  for (const Value& x : xs) most = maximum(most, x);
  Value base = select(equal(most, lowest(most.builder(), most.dtype())), full_like(most, 0), most), sum;
  for (const Value& x : xs) sum = sum ? sum + exp(x - base) : exp(x - base);
  return log(sum) + base;
}

// x moved by `by` states (to later ones if positive), -inf where nothing comes from.
Value moved(Value x, int64_t by) { return pad(x, lowest(x.builder(), x.dtype()), {0, by}, {0, -by}); }

// The three ways into (by = 1) or out of (by = -1) each state.
Value step(Value x, Value skip, int64_t by) {
  Value two = moved(x, 2 * by);
  return log_sum({x, moved(x, by), select(skip, two, minus_infinity(x, x.dims()))});
}

// Targets are [N, >= S], or all of them one after the other.
Value padded_targets(Call& c, const Dims& lengths, int64_t longest) {
  Value all = c.tensor("targets", DType::S64);
  const int64_t n = static_cast<int64_t>(lengths.size());
  if (all.rank() == 2) return slice(all, {0, 0}, {n, longest});
  if (all.elements() == 0) return full(c.b, 0, Type{DType::S64, {n, longest}});
  std::vector<int64_t> at;
  int64_t start = 0;
  for (int64_t length : lengths) {
    for (int64_t s = 0; s < longest; s++) at.push_back(std::min(start + s, all.size(0) - 1));
    start += length;
  }
  return reshape(take_rows(all, c.b.constants(at, DType::S64)), {n, longest});
}

Alignment align(Call& c, Value log_probs) {
  Alignment a;
  a.inputs = c.ints("input_lengths"), a.targets = c.ints("target_lengths");
  const int64_t n = log_probs.size(1), s = *std::max_element(a.targets.begin(), a.targets.end());
  const int64_t blank = c.integer("blank");
  Value targets = c.index(padded_targets(c, a.targets, s), 2, log_probs.size(2));
  Value between = full(c.b, static_cast<double>(blank), Type{DType::S64, {n, s, 1}});
  Value last = full(c.b, static_cast<double>(blank), Type{DType::S64, {n, 1}});
  a.label = concatenate({reshape(concatenate({between, unsqueeze(targets, 2)}, 2), {n, 2 * s}), last}, 1);
  Value before = pad(a.label, c.b.constant(blank, DType::S64), {0, 2}, {0, -2});
  a.skip = not_equal(a.label, before) & not_equal(a.label, c.b.constant(blank, DType::S64)) &
           (iota(c.b, DType::S64, a.label.dims(), 1) >= 2.0);
  const Dims dims{log_probs.size(0), n, 2 * s + 1};
  a.score = take_along_dim(log_probs, broadcast_in_dim(a.label, dims, {1, 2}), 2);
  return a;
}

// Fills [T, N, L] step by step, forwards or backwards, with what `body` makes of the states before. The
// loop's state is the time, the states before, all states, the scores, the skip mask and what else body
// needs.
Value over_time(
    const Alignment& a, bool forwards, Value skip, const Values& more,
    const std::function<Value(Value time, Value before, Value score, Value skip, const Values& more)>& body) {
  Builder& b = a.score.builder();
  const int64_t steps = a.steps(), n = a.score.size(1), states = a.states();
  Value before = minus_infinity(a.score, {n, states});
  Values init{b.constant(forwards ? int64_t{0} : steps - 1, DType::S64), before, a.score, a.score, skip};
  init.insert(init.end(), more.begin(), more.end());
  return while_loop(
      init, [&](const Values& v) { return forwards ? v[0] < static_cast<double>(steps) : v[0] >= 0.0; },
      [&](const Values& v) -> Values {
        Value zero = like(v[0], 0);
        Value score = reshape(dynamic_slice(v[3], {v[0], zero, zero}, {1, n, states}), {n, states});
        Value now = body(v[0], v[1], score, v[4], Values(v.begin() + 5, v.end()));
        Value all = dynamic_update_slice(v[2], reshape(now, {1, n, states}), {v[0], zero, zero});
        Values out{forwards ? v[0] + 1.0 : v[0] - 1.0, now, all, v[3], v[4]};
        out.insert(out.end(), v.begin() + 5, v.end());
        return out;
      })[2];
}

// Bool [N, L]: the last label and the blank after it.
Value ends(const Alignment& a) {
  Builder& b = a.score.builder();
  Value at = iota(b, DType::S64, {a.score.size(1), a.states()}, 1);
  Value last = unsqueeze(b.constants(a.targets, DType::S64), 1) * 2.0;
  return equal(at, last) | equal(at, last - 1.0);
}

Value forward(const Alignment& a) {
  return over_time(a, true, a.skip, {}, [](Value time, Value before, Value score, Value skip, const Values&) {
    Builder& b = score.builder();
    Value start = iota(b, DType::S64, score.dims(), 1) < 2.0;
    Value first = select(start, score, minus_infinity(score, score.dims()));
    return select(equal(time, like(time, 0)), first, step(before, skip, 1) + score);
  });
}

Value backward(const Alignment& a) {
  Builder& b = a.score.builder();
  // State s is left for s + 2 when that one may be entered by a skip.
  Value skip = pad(a.skip, b.constant(0, DType::Bool), {0, -2}, {0, 2});
  Value last = unsqueeze(b.constants(a.inputs, DType::S64), 1) - 1.0;
  return over_time(a, false, skip, {last, ends(a)},
                   [](Value time, Value before, Value score, Value skip, const Values& more) {
                     Value first = select(more[1], score, minus_infinity(score, score.dims()));
                     return select(equal(more[0], time), first, step(before, skip, -1) + score);
                   });
}

Value log_probs_of(Call& c) {
  Value x = c.tensor("log_probs", compute_type(c.dtype_of("log_probs")));
  return x.rank() == 2 ? unsqueeze(x, 1) : x;
}

// Results: -log p(targets) [N] and the forward variables [N, T, L].
Results loss(Call& c) {
  const Alignment a = align(c, log_probs_of(c));
  Value alpha = swap_dims(forward(a), 0, 1);  // [N, T, L]
  const int64_t n = alpha.size(0);
  std::vector<int64_t> last, empty;
  for (int64_t i = 0; i < n; i++) {
    last.push_back(std::max<int64_t>(a.inputs[i] - 1, 0));
    empty.push_back(a.inputs[i] == 0 ? (a.targets[i] == 0 ? 1 : 2) : 0);
  }
  Value at = broadcast_in_dim(c.b.constants(last, DType::S64), {n, 1, a.states()}, {0});
  Value final = reshape(take_along_dim(alpha, at, 1), {n, a.states()});
  final = select(ends(a), final, minus_infinity(final, final.dims()));
  Value most = reduce_max(final, {1}), zero = full_like(most, 0), none = minus_infinity(most, {n});
  Value base = select(equal(most, none), zero, most);
  Value total = log(reduce_sum(exp(final - unsqueeze(base, 1)), {1})) + base;
  // No input at all: certain for an empty target, else impossible.
  Value kind = c.b.constants(empty, DType::S64);
  total = select(equal(kind, like(kind, 1)), zero, select(equal(kind, like(kind, 2)), none, total));
  return {reshape(negate(total), c.out(0).dims), reshape(alpha, c.out(1).dims)};
}

// d loss / d log_probs[t, n, c] = exp(log_probs) - (share of the alignments that are at c at time t)
Results loss_backward(Call& c) {
  Value self = c.tensor("log_probs"), x = log_probs_of(c);
  const DType t = x.dtype();
  const Alignment a = align(c, x);
  const int64_t n = x.size(1), classes = x.size(2);
  Value cost = reshape(c.tensor("neg_log_likelihood", t), {n}), grad = reshape(c.tensor("grad", t), {n});
  Value alpha = swap_dims(reshape(c.tensor("log_alpha", t), {n, x.size(0), a.states()}), 0, 1);
  Value share = exp(alpha + backward(a) + reshape(cost, {1, n, 1}) - a.score);
  Value hit = equal(unsqueeze(a.label, 2), iota(c.b, DType::S64, {1, 1, classes}, 2));
  share = swap_dims(product(c, swap_dims(share, 0, 1), convert(hit, t), {0}, {0}, {2}, {1}), 0, 1);
  Value out = (exp(x) - share) * reshape(grad, {1, n, 1});
  Value counts =
      iota(c.b, DType::S64, {x.size(0), n, 1}, 0) < reshape(c.b.constants(a.inputs, DType::S64), {1, n, 1});
  if (c.flag("zero_infinity")) counts = counts & not_equal(reshape(cost, {1, n, 1}), highest(c.b, t));
  out = select(counts, out, full_like(out, 0));
  return convert(reshape(out, self.dims()), self.dtype());
}

}  // namespace

void ctc_loss(Table& t) {
  t.op("_ctc_loss", loss);
  t.op("_ctc_loss_backward", loss_backward, {.infer = true});
}

}  // namespace tpu::ops
