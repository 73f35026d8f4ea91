// The families of the table, one file each. Only table.cc reads this: a new family rebuilds nothing else.
#pragma once

#include "core/ops/table.h"

namespace tpu::ops {

void activation(Table& t);  // relu, gelu, silu, ... and their backwards
void attention(Table& t);   // scaled_dot_product_attention and its backward
void binary(Table& t);      // arithmetic, comparison, logical, bitwise
void conv(Table& t);        // convolution and its backward
void creation(Table& t);    // fill, arange, linspace, eye, ...
void embedding(Table& t);   // embedding, embedding_bag and their backwards
void fft(Table& t);         // _fft_c2c, _fft_r2c, _fft_c2r
void foreach (Table& t);    // _foreach_*, _amp_*
void index(Table& t);       // index, index_put, gather, scatter, masked ops, ...
void loss(Table& t);        // nll_loss, mse_loss, ... and their backwards
void matmul(Table& t);      // mm, bmm, addmm, dot, ...
void norm(Table& t);        // batch, layer and group norm and their backwards
void optim(Table& t);       // _fused_adamw_, _fused_sgd_, ...
void pad(Table& t);         // constant, reflection, replication padding and their backwards
void pool(Table& t);        // max, average and adaptive pooling and their backwards
void quantize(Table& t);    // fake_quantize_*, _fake_quantize_learnable_*
void random(Table& t);      // uniform, normal, dropout, randperm, ...
void reduce(Table& t);      // sum, mean, max, argmax, var, norm, all, any, ...
void resample(Table& t);    // upsample_*, pixel_shuffle, grid_sampler, im2col
void rnn(Table& t);         // lstm and gru cells
void scan(Table& t);        // cumsum, cumprod, cummax, logcumsumexp
void shape(Table& t);       // cat, stack, flip, roll, tril, repeat, ...
void softmax(Table& t);     // _softmax, _log_softmax and their backwards
void sort(Table& t);        // sort, topk, kthvalue, median, searchsorted, ...
void special(Table& t);     // gamma, Bessel, error and zeta functions
void unary(Table& t);       // exp, sin, abs, ... of one tensor
void views(Table& t);       // view, permute, slice, ...: in captured graphs only

}  // namespace tpu::ops
