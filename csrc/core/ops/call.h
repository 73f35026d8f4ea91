// What a lowering is given: the arguments of one operator call by their schema names, and the types of its
// results.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/ops/lowering.h"

namespace tpu::ops {

using hlo::Dims;
using hlo::Type;
using hlo::Value;
using hlo::Values;

class Call {
 public:
  /// `names` and `args` are parallel, in schema order; `values` maps Ref::value to what has been lowered so
  /// far.
  Call(Lowering& lowering, const std::string& op, const std::vector<std::string>& names,
       const std::vector<Arg>& args, const std::vector<Value>& values, const std::vector<Type>& outs)
      : lowering(lowering),
        b(lowering.b),
        op_(op),
        names_(names),
        args_(args),
        values_(values),
        outs_(outs) {}

  const std::string& op() const { return op_; }

  // ---- arguments; a name that is not in the schema is an Error(Internal), unless has() guards it
  /// The schema has this argument and it is not None.
  bool has(std::string_view name) const;
  /// A Tensor argument as it is (a 0-d CPU tensor or Python number becomes a 0-d value), converted to `as`
  /// when given.
  Value tensor(std::string_view name, std::optional<DType> as = {}) const;
  /// A Tensor? argument.
  std::optional<Value> maybe(std::string_view name, std::optional<DType> as = {}) const;
  /// A Tensor[] argument.
  Values tensors(std::string_view name, std::optional<DType> as = {}) const;
  /// A Tensor?[] argument.
  std::vector<std::optional<Value>> maybe_tensors(std::string_view name) const;
  /// A Scalar or float argument as a 0-d value: a runtime parameter unless the entry fixed it.
  Value scalar(std::string_view name, DType dtype) const;
  /// A Scalar[] (or float[]) argument.
  Values scalars(std::string_view name, DType dtype) const;
  /// A float, Scalar or int that is part of the key (`fixed` in the entry), as a number.
  double number(std::string_view name) const;
  /// The number is known now: its entry fixed it (or it came as a constant).
  bool is_fixed(std::string_view name) const;
  /// float[]? that is part of the key; empty for None.
  std::vector<double> numbers(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::string str(std::string_view name) const;
  /// int[], SymInt[], int[]?; empty for None. A single int counts as a list of one.
  Dims ints(std::string_view name) const;
  std::vector<bool> flags(std::string_view name) const;
  /// A ScalarType? argument, or `fallback` for None.
  DType dtype(std::string_view name, DType fallback) const;
  /// The dtype of a Tensor or Scalar argument (Python float: F64, int: S64, bool: Bool).
  DType dtype_of(std::string_view name) const;

  // ---- helpers
  /// torch.result_type over these Tensor and Scalar arguments (dimension and wrapped-number rules included).
  DType promoted(std::initializer_list<std::string_view> names) const;
  /// `dim` argument, made non-negative for a tensor of this rank (rank 0 counts as 1).
  static int wrap(int64_t dim, int rank) { return static_cast<int>(dim < 0 ? dim + std::max(rank, 1) : dim); }
  /// dim=int[1]? argument as sorted non-negative dims; all of them for None or an empty list.
  Dims dims(std::string_view name, int rank) const;
  /// The index with negatives moved up by `size`, as `S64` or its own type, clamped to be in range, after the
  /// runtime check that an index outside [-size, size) raises IndexError (or `code`). `negative` false:
  /// negative indices are errors too (gather, embedding).
  Value index(Value index, int64_t dim, int64_t size, bool negative = false, Code code = Code::Index) const;
  /// Reports `message` when the result is read, unless every element of `holds` is true.
  void require(Value holds, const std::string& message, Code code = Code::InvalidArgument) const;

  // ---- results, as PyTorch expects them
  int outs() const { return static_cast<int>(outs_.size()); }
  const Type& out(int i = 0) const { return outs_.at(i); }
  DType out_dtype(int i = 0) const { return outs_.at(i).dtype; }
  /// The element type to compute in for the result: half floats compute in f32.
  DType compute_dtype(int i = 0) const { return compute_type(outs_.at(i).dtype); }

  Lowering& lowering;
  hlo::Builder& b;

 private:
  const Arg& arg(std::string_view name) const;
  Value value_of(const Arg& arg, std::string_view name, std::optional<DType> as) const;
  [[noreturn]] void wrong(std::string_view name, const char* wanted) const;

  const std::string& op_;
  const std::vector<std::string>& names_;
  const std::vector<Arg>& args_;
  const std::vector<Value>& values_;
  const std::vector<Type>& outs_;
};

/// The results of a lowering, in schema order. The engine converts each to the expected dtype and rejects a
/// wrong shape.
/// An empty Value stands for a result that is not computed (an undefined tensor: an output mask says no) or
/// that is no tensor (an int). Arguments that are written come after the schema's results.
struct Results : Values {
  Results(Value v) : Values{v} {}
  Results(Values v) : Values(std::move(v)) {}
  Results(std::initializer_list<Value> v) : Values(v) {}
};

using Lower = Results (*)(Call&);

}  // namespace tpu::ops
