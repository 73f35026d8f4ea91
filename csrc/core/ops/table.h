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

}  // namespace tpu::ops
