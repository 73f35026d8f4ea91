// The point-wise parts of LSTM and GRU cells, which torch.nn's recurrent layers call for each step.
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// Part i of n equal ones of the last dimension.
Value part(Value x, int i, int n) {
  const int64_t size = x.size(-1) / n;
  return slice_dim(x, -1, i * size, (i + 1) * size);
}

// Input and hidden gates with their biases, as wide as `t`.
Value gates(Call& c, const char* name, const char* bias, DType t) {
  Value x = c.tensor(name, t);
  return c.has(bias) ? x + c.tensor(bias, t) : x;
}

// Gates are input, forget, cell, output. The workspace holds them after their activations.
Results lstm(Call& c) {
  const DType kept = c.dtype_of("cx"), t = compute_type(kept);
  Value all = gates(c, "input_gates", "input_bias", t) + gates(c, "hidden_gates", "hidden_bias", t);
  Value in = logistic(part(all, 0, 4)), forget = logistic(part(all, 1, 4)), cell = tanh(part(all, 2, 4)),
        out = logistic(part(all, 3, 4));
  Value cy = forget * c.tensor("cx", t) + in * cell;
  return {out * tanh(cy), cy, concatenate({in, forget, cell, out}, -1)};
}

Results lstm_backward(Call& c) {
  const DType t = compute_type(c.dtype_of("cx"));
  Value cx = c.tensor("cx", t), y = tanh(c.tensor("cy", t)), w = c.tensor("workspace", t);
  Value in = part(w, 0, 4), forget = part(w, 1, 4), cell = part(w, 2, 4), out = part(w, 3, 4);
  Value grad_h = c.has("grad_hy") ? c.tensor("grad_hy", t) : full_like(cx, 0);
  Value grad_c = grad_h * out * (1.0 - y * y);
  if (c.has("grad_cy")) grad_c = grad_c + c.tensor("grad_cy", t);
  const auto sigmoid = [](Value grad, Value s) { return grad * s * (1.0 - s); };
  Value grads = concatenate({sigmoid(grad_c * cell, in), sigmoid(grad_c * cx, forget),
                             grad_c * in * (1.0 - cell * cell), sigmoid(grad_h * y, out)},
                            -1);
  Value bias = c.flag("has_bias") ? reduce_sum(grads, {0}) : Value{};
  return {grads, grad_c * forget, bias};
}

// Gates are reset, update, new. The workspace holds them, the old state and the hidden part of the new gate.
Results gru(Call& c) {
  const DType kept = c.dtype_of("hx"), t = compute_type(kept);
  Value x = gates(c, "input_gates", "input_bias", t), h = gates(c, "hidden_gates", "hidden_bias", t);
  Value hx = c.tensor("hx", t), hidden = part(h, 2, 3);
  Value reset = logistic(part(x, 0, 3) + part(h, 0, 3)), update = logistic(part(x, 1, 3) + part(h, 1, 3));
  Value fresh = tanh(part(x, 2, 3) + reset * hidden);
  return {convert(fresh + update * (hx - fresh), kept),
          convert(concatenate({reset, update, fresh, hx, hidden}, -1), kept)};
}

Results gru_backward(Call& c) {
  const DType kept = c.dtype_of("grad_hy"), t = compute_type(kept);
  Value grad = c.tensor("grad_hy", t), w = c.tensor("workspace", t);
  Value reset = part(w, 0, 5), update = part(w, 1, 5), fresh = part(w, 2, 5), hx = part(w, 3, 5),
        hidden = part(w, 4, 5);
  Value grad_update = grad * (hx - fresh) * update * (1.0 - update);
  Value grad_fresh = grad * (1.0 - update) * (1.0 - fresh * fresh);
  Value grad_reset = grad_fresh * hidden * reset * (1.0 - reset);
  Value x = concatenate({grad_reset, grad_update, grad_fresh}, -1);
  Value h = concatenate({grad_reset, grad_update, grad_fresh * reset}, -1);
  Values out{x, h, grad * update, Value{}, Value{}};
  if (c.flag("has_bias")) out[3] = reduce_sum(x, {0}), out[4] = reduce_sum(h, {0});
  for (Value& v : out)
    if (v) v = convert(v, kept);
  return out;
}

}  // namespace

void rnn(Table& t) {
  t.op("_thnn_fused_lstm_cell", lstm);
  t.op("_thnn_fused_lstm_cell_backward_impl", lstm_backward);
  t.op("_thnn_fused_gru_cell", gru, {.infer = true});
  t.op("_thnn_fused_gru_cell_backward", gru_backward, {.infer = true});
}

}  // namespace tpu::ops
