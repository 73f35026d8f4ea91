// Scaled dot product attention with its backward.
#include <cmath>

#include "core/ops/contract.h"
#include "core/ops/random.h"
#include "core/ops/table.h"

namespace tpu::ops {

void attention_layers(Table& t);  // attention_layer.cc

using namespace hlo;

namespace {

// B batches, H query heads in H/K groups that share each of K key heads; S queries, T keys, E and V features.
// A missing batch dimension is added.
struct Operands {
  Value query, key, value;  // [B, K, (H/K) S, E], [B, K, T, E], [B, K, T, V]
  Dims scores;              // [B, H, S, T]
  Dims folded() const { return {scores[0], key.size(1), scores[1] / key.size(1) * scores[2], scores[3]}; }
};

Value with_batch(Value x) { return x.rank() == 3 ? unsqueeze(x, 0) : x; }

Value folded(Value x, int64_t key_heads) {
  return reshape(x, {x.size(0), key_heads, x.size(1) / key_heads * x.size(2), x.size(3)});
}

Operands operands(Call& c) {
  Value q = with_batch(c.tensor("query")), k = with_batch(c.tensor("key")), v = with_batch(c.tensor("value"));
  if (q.size(1) % std::max<int64_t>(k.size(1), 1) != 0)
    throw Error(Code::InvalidArgument, c.op(),
                text(q.size(1), " query heads are no multiple of ", k.size(1), " key heads"));
  return {folded(q, k.size(1)), k, v, {q.size(0), q.size(1), q.size(2), k.size(2)}};
}

Value factor(Call& c, Value query) {
  const DType t = compute_type(query.dtype());
  if (c.has("scale")) return c.scalar("scale", t);
  return c.b.constant(1 / std::sqrt(static_cast<double>(query.size(-1))), t);
}

// [B, H, S, T], scaled, biased and masked (-inf), in the compute type.
Value scores(Call& c, const Operands& o) {
  Value s = reshape(product(c, o.query, o.key, {0, 1}, {0, 1}, {3}, {3}), o.scores) * factor(c, o.query);
  Value none = lowest(c.b, s.dtype());
  if (c.has("attn_bias")) {
    Value bias = c.tensor("attn_bias");
    if (bias.dtype() == DType::Bool)
      s = select(broadcast_to(bias, s.dims()), s, broadcast_to(none, s.dims()));
    else
      s = s + convert(bias, s.dtype());
  }
  if (c.flag("is_causal")) {
    Value row = iota(c.b, DType::S32, s.dims(), 2), column = iota(c.b, DType::S32, s.dims(), 3);
    s = select(column <= row, s, broadcast_to(none, s.dims()));
  }
  return s;
}

struct Softmax {
  Value p, log_sum;  // [B, H, S, T], [B, H, S]
};

// Rows of -inf only give zeros.
Softmax softmax_of(Value s) {
  Value most = reduce_max(s, {3}), zero = full_like(most, 0);
  Value base = select(equal(most, lowest(s.builder(), s.dtype())), zero, most);
  Value e = exp(s - unsqueeze(base, 3)), sum = reduce_sum(e, {3});
  Value p = e * unsqueeze(select(equal(sum, zero), zero, 1.0 / sum), 3);
  return {p, log(sum) + base};
}

// What dropout multiplies each probability by, 0 or 1 / (1 - p), from the generator's state {seed, offset}
// (two u32 words each): the backward draws the same again.
Value dropout(Call& c, const Values& state, const Dims& dims, DType t) {
  const int64_t count = hlo::product(dims), half = (count + 1) / 2;
  Value low = iota(c.b, DType::U32, {half}, 0) + state[2];
  auto [a, b] = threefry(state[0], state[1], low, state[3] + convert(low < state[2], DType::U32));
  Value u = reshape(slice_dim(concatenate({a, b}, 0), 0, 0, count), dims);
  Value drop = c.scalar("dropout_p", t), keep = convert(unit(u), t) >= drop;
  return select(keep, broadcast_to(1.0 / (1.0 - drop), dims), full(c.b, 0, Type{t, dims}));
}

bool has_dropout(Call& c) { return !(c.is_fixed("dropout_p") && c.number("dropout_p") == 0); }

Value half_word(Value wide, int64_t shift) {
  return convert(shift_right_logical(wide, like(wide, static_cast<double>(shift))), DType::U32);
}

Value to_word(Value low, Value high) {
  Value h = convert(high, DType::U64);
  return bitcast(convert(low, DType::U64) | shift_left(h, like(h, 32)), DType::S64);
}

// Halves are multiplied as halves where the platform does.
Value narrow(Value x, Value operand) { return convert(x, operand.dtype()); }

// (output, log of the sum, -, -, -, -, seed, offset, -)
Results attention_forward(Call& c) {
  const Operands o = operands(c);
  const Softmax s = softmax_of(scores(c, o));
  Value p = s.p, seed = c.b.constant(0, DType::S64), offset = seed;
  if (has_dropout(c)) {
    const Values state = c.lowering.random((p.elements() + 1) / 2);
    p = p * dropout(c, state, p.dims(), p.dtype());
    seed = to_word(state[0], state[1]), offset = to_word(state[2], state[3]);
  }
  Value y = product(c, narrow(reshape(p, o.folded()), o.value), o.value, {0, 1}, {0, 1}, {3}, {2});
  return {reshape(y, c.out(0).dims), reshape(s.log_sum, c.out(1).dims), {}, {}, {}, {}, seed, offset, {}};
}

// Sums x over the dimensions in which `dims` was broadcast to it.
Value sum_to(Value x, const Dims& dims) {
  Dims over;
  const int lead = x.rank() - static_cast<int>(dims.size());
  for (int i = 0; i < x.rank(); i++)
    if (i < lead || (dims[i - lead] == 1 && x.size(i) != 1)) over.push_back(i);
  return reshape(reduce_sum(x, over), dims);
}

Results attention_backward(Call& c) {
  const Operands o = operands(c);
  const DType t = compute_type(o.query.dtype());
  const Dims fold = o.folded();
  // The probabilities are computed again: cheaper than to keep them.
  Value p = softmax_of(scores(c, o)).p, dropped = p, drop;
  Value grad = folded(with_batch(c.tensor("grad_out")), o.key.size(1));
  if (has_dropout(c)) {
    Value seed = bitcast(c.tensor("philox_seed", DType::S64), DType::U64),
          offset = bitcast(c.tensor("philox_offset", DType::S64), DType::U64);
    const auto word = [](Value v) { return reshape(v, {}); };
    drop = dropout(c,
                   {word(half_word(seed, 0)), word(half_word(seed, 32)), word(half_word(offset, 0)),
                    word(half_word(offset, 32))},
                   o.scores, t);
    dropped = p * drop;
  }
  const std::vector<bool> wanted = c.flags("grad_input_mask");
  Value grad_p = reshape(product(c, grad, o.value, {0, 1}, {0, 1}, {3}, {3}), o.scores);
  if (drop) grad_p = grad_p * drop;
  Value gp = p * grad_p, grad_scores = gp - p * unsqueeze(reduce_sum(gp, {3}), 3);
  Value scaled = narrow(reshape(grad_scores * factor(c, o.query), fold), o.query);
  Values out(4);
  const auto as = [&c](const char* name, Value x) { return reshape(x, c.tensor(name).dims()); };
  if (wanted[0]) out[0] = as("query", product(c, scaled, o.key, {0, 1}, {0, 1}, {3}, {2}));
  if (wanted[1]) out[1] = as("key", product(c, scaled, o.query, {0, 1}, {0, 1}, {2}, {2}));
  if (wanted[2])
    out[2] = as("value", product(c, narrow(reshape(dropped, fold), grad), grad, {0, 1}, {0, 1}, {2}, {2}));
  if (wanted[3] && c.has("attn_bias")) out[3] = sum_to(grad_scores, c.tensor("attn_bias").dims());
  return out;
}

}  // namespace

void attention(Table& t) {
  attention_layers(t);
  // The probability 0 is part of the key: no random numbers are drawn for it.
  const Options options{.fixed = {"dropout_p"}, .fixed_when = [](double p) { return p == 0; }};
  t.op("_scaled_dot_product_fused_attention_overrideable", attention_forward, options);
  t.op("_scaled_dot_product_fused_attention_overrideable_backward", attention_backward, options);
}

}  // namespace tpu::ops
