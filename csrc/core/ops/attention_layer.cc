// The fused inference paths of torch.nn: MultiheadAttention and TransformerEncoderLayer.
#include <cmath>

#include "core/ops/contract.h"
#include "core/ops/table.h"

namespace tpu::ops {

void attention_layers(Table& t);

using namespace hlo;

namespace {

// x w^T + b, in the compute type.
Value linear(Call& c, Value x, Value weight, Value bias) {
  Value y = product(c, convert(x, weight.dtype()), weight, {}, {}, {x.rank() - 1}, {1});
  return y + convert(bias, y.dtype());
}

// [B, T, 3 H E] with its bias -> query, key, value [B, H, T, E], the query divided by sqrt(E).
Values split_heads(Value qkv, Value bias, int64_t heads) {
  const DType t = compute_type(qkv.dtype());
  Value x = convert(qkv, t) + convert(bias, t);
  const int64_t features = x.size(2) / 3, each = features / heads;
  Values out;
  for (int64_t i = 0; i < 3; i++) {
    Value part = slice_dim(x, 2, i * features, (i + 1) * features);
    out.push_back(transpose(reshape(part, {x.size(0), x.size(1), heads, each}), {0, 2, 1, 3}));
  }
  out[0] = out[0] / std::sqrt(static_cast<double>(each));
  return out;
}

struct Attended {
  Value y, p;  // [B, T, D], [B, H, T, S]
};

// `mask` (true: left out) is [T, S] for mask_type 0, [B, S] for 1, of the scores' shape for 2.
Attended attend(Call& c, const Values& heads, DType kept) {
  Value s = product(c, convert(heads[0], kept), convert(heads[1], kept), {0, 1}, {0, 1}, {3}, {3});
  if (c.has("mask")) {
    Value mask = c.tensor("mask", DType::Bool);
    if (mask.rank() == 2 && c.has("mask_type") && c.integer("mask_type") == 1)
      mask = reshape(mask, {mask.size(0), 1, 1, mask.size(1)});
    s = select(broadcast_to(mask, s.dims()), broadcast_to(lowest(c.b, s.dtype()), s.dims()), s);
  }
  Value e = exp(s - unsqueeze(reduce_max(s, {3}), 3));
  Value p = e / unsqueeze(reduce_sum(e, {3}), 3);
  Value y = transpose(product(c, convert(p, kept), convert(heads[2], kept), {0, 1}, {0, 1}, {3}, {2}),
                      {0, 2, 1, 3});
  return {reshape(y, {y.size(0), y.size(1), y.size(2) * y.size(3)}), p};
}

Attended self_attention(Call& c, Value x, int64_t heads) {
  Value weight = c.tensor("qkv_weight"), bias = c.tensor("qkv_bias");
  Value qkv = product(c, convert(x, weight.dtype()), weight, {}, {}, {2}, {1});
  Attended a = attend(c, split_heads(qkv, bias, heads), weight.dtype());
  return {linear(c, a.y, c.tensor("proj_weight"), c.tensor("proj_bias")), a.p};
}

// Query, key and value each through their third of the packed weights.
Results multi_head_attention(Call& c) {
  const int64_t heads = c.integer("num_head"), features = c.integer("embed_dim");
  Value weight = c.tensor("qkv_weight"), bias = c.tensor("qkv_bias");
  Values parts;
  const char* names[] = {"query", "key", "value"};
  for (int64_t i = 0; i < 3; i++) {
    Value x = c.tensor(names[i]);
    Value rows = slice_dim(weight, 0, i * features, (i + 1) * features);
    Value y = linear(c, x, rows, slice_dim(bias, 0, i * features, (i + 1) * features));
    parts.push_back(transpose(reshape(y, {x.size(0), x.size(1), heads, features / heads}), {0, 2, 1, 3}));
  }
  parts[0] = parts[0] / std::sqrt(static_cast<double>(features / heads));
  const Attended a = attend(c, parts, weight.dtype());
  Value y = linear(c, a.y, c.tensor("proj_weight"), c.tensor("proj_bias")), p;
  if (c.flag("need_weights"))
    p = c.flag("average_attn_weights") ? reduce_sum(a.p, {1}) / static_cast<double>(heads) : a.p;
  return {y, p};
}

Value layer_norm(Call& c, Value x, const char* weight, const char* bias) {
  const DType t = x.dtype();
  const int last = x.rank() - 1;
  const double n = static_cast<double>(x.size(last));
  Value centred = x - unsqueeze(reduce_sum(x, {last}) / n, last);
  Value rstd = rsqrt(reduce_sum(centred * centred, {last}) / n + c.scalar("eps", t));
  return centred * unsqueeze(rstd, last) * c.tensor(weight, t) + c.tensor(bias, t);
}

Results encoder_layer(Call& c) {
  const DType t = c.compute_dtype();
  const bool before = c.flag("norm_first");
  Value x = c.tensor("src", t);
  const auto norm1 = [&](Value v) { return layer_norm(c, v, "norm_weight_1", "norm_bias_1"); };
  const auto norm2 = [&](Value v) { return layer_norm(c, v, "norm_weight_2", "norm_bias_2"); };
  const auto feed_forward = [&](Value v) {
    Value y = linear(c, v, c.tensor("ffn_weight_1"), c.tensor("ffn_bias_1"));
    y = c.flag("use_gelu") ? 0.5 * y * (1.0 + erf(y * M_SQRT1_2)) : maximum(y, like(y, 0));
    return linear(c, y, c.tensor("ffn_weight_2"), c.tensor("ffn_bias_2"));
  };
  const int64_t heads = c.integer("num_heads");
  x = x + self_attention(c, before ? norm1(x) : x, heads).y;
  if (!before) x = norm1(x);
  x = x + feed_forward(before ? norm2(x) : x);
  return before ? x : norm2(x);
}

}  // namespace

void attention_layers(Table& t) {
  t.op("_transform_bias_rescale_qkv",
       [](Call& c) -> Results {
         Value qkv = c.tensor("qkv");
         Values out = split_heads(qkv, c.tensor("qkv_bias"), c.integer("num_heads"));
         for (Value& v : out) v = convert(v, qkv.dtype());
         return out;
       },
       {.infer = true});
  t.op("_native_multi_head_attention", multi_head_attention);
  t.op("_transformer_encoder_layer_fwd", encoder_layer);
}

}  // namespace tpu::ops
