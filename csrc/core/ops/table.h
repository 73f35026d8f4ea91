// The operator table: one entry an operator. Each family is one file with one function that adds its entries.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/call.h"

namespace tpu::ops {

struct Op {
  std::string name;  // ATen name with overload, e.g. "add.Tensor"; in-place and out= siblings are derived
                     // from the schema
  Lower lower = nullptr;
  /// Scalar and float arguments whose value is part of the key. All others are runtime parameters.
  std::vector<std::string> fixed;
  /// Whether a value of a fixed argument is worth a program of its own; others of its values stay runtime
  /// parameters (e.g. pow: 2, 3, 0.5). nullptr: every value.
  bool (*fixed_when)(double value) = nullptr;
  /// Result types and strides are the lowering's own, contiguous: for operators without a Meta kernel.
  bool infer = false;
  /// Tensor arguments the operator overwrites although its schema does not say so (native_batch_norm's
  /// running statistics). The lowering returns their new values after the schema's results, in this order; an
  /// empty Value leaves one as it is.
  std::vector<std::string> writes = {};
};

struct Options {
  std::vector<std::string> fixed = {};
  bool (*fixed_when)(double value) = nullptr;
  bool infer = false;
  std::vector<std::string> writes = {};
};

class Table {
 public:
  /// The whole table, made once.
  static const Table& get();

  /// nullptr when there is no entry of that name.
  const Op* find(std::string_view name) const;
  const std::map<std::string, Op, std::less<>>& all() const { return ops_; }

  // ---- used by the families
  /// Adds an entry under each of the names ("eq.Tensor eq.Scalar"). A name that is there already is an
  /// Error(Internal).
  void op(std::string_view names, Lower lower, Options options = {});
  /// out = f(self), computed in the result's compute type.
  template <Value (*f)(Value)>
  void unary(std::string_view names) {
    op(names, [](Call& c) -> Results { return f(c.tensor("self", c.compute_dtype())); });
  }
  /// out = f(self, other), both in the compute type of their promoted type.
  template <Value (*f)(Value, Value)>
  void binary(std::string_view names) {
    op(names, [](Call& c) -> Results {
      const DType t = compute_type(c.promoted({"self", "other"}));
      return f(c.tensor("self", t), c.tensor("other", t));
    });
  }

 private:
  std::map<std::string, Op, std::less<>> ops_;
};

// ---- the families, one file each
void activation(Table& t);  // relu, gelu, silu, ... and their backwards
void attention(Table& t);   // scaled_dot_product_attention and its backward
void binary(Table& t);      // arithmetic, comparison, logical, bitwise
void conv(Table& t);        // convolution and its backward
void creation(Table& t);    // fill, arange, linspace, eye, ...
void embedding(Table& t);   // embedding, embedding_bag and their backwards
void foreach (Table& t);    // _foreach_*, _amp_*
void index(Table& t);       // index, index_put, gather, scatter, masked ops, ...
void linalg(Table& t);      // factorisations, eigenvalues, triangular solves, ...
void loss(Table& t);        // nll_loss, mse_loss, ... and their backwards
void matmul(Table& t);      // mm, bmm, addmm, dot, ...
void norm(Table& t);        // batch, layer and group norm and their backwards
void optim(Table& t);       // _fused_adamw_, _fused_sgd_, ...
void pad(Table& t);         // constant, reflection, replication padding and their backwards
void pool(Table& t);        // max, average and adaptive pooling and their backwards
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
