// Writes one StableHLO module as text in MLIR's generic form, which every plugin version parses alike.
// The text is deterministic and carries no locations, so it can be hashed as part of a cache key.
#pragma once

#include <complex>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/hlo/type.h"

namespace tpu::hlo {

class Builder;

/// One SSA value. Cheap to copy; valid as long as its builder.
class Value {
 public:
  Value() = default;
  Value(Builder* builder, int id) : builder_(builder), id_(id) {}
  Builder& builder() const { return *builder_; }
  int id() const { return id_; }
  explicit operator bool() const { return builder_ != nullptr; }

  const Type& type() const;
  DType dtype() const { return type().dtype; }
  const Dims& dims() const { return type().dims; }
  int rank() const { return type().rank(); }
  /// Size of a dimension; negative counts from the end.
  int64_t size(int dim) const { return dims()[dim < 0 ? dim + rank() : dim]; }
  int64_t elements() const { return type().elements(); }

 private:
  Builder* builder_ = nullptr;
  int id_ = -1;
};

using Values = std::vector<Value>;

/// Matrix product precision of f32 operands, as torch.set_float32_matmul_precision names it: highest, high,
/// medium.
enum class Precision : uint8_t { Highest, High, Medium };

class Builder {
 public:
  explicit Builder(Precision precision = Precision::Highest) : precision_(precision) {}
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// The next argument of the program.
  Value parameter(const Type& type);

  /// A constant with every element equal. The value is rounded to the type; integers take the int64 form
  /// exactly.
  Value constant(double value, DType dtype, const Dims& dims = {});
  Value constant(int64_t value, DType dtype, const Dims& dims = {});
  Value constant(int value, DType dtype, const Dims& dims = {}) {
    return constant(static_cast<int64_t>(value), dtype, dims);
  }
  Value constant(std::complex<double> value, DType dtype, const Dims& dims = {});
  /// A 1-d constant of the given integers.
  Value constants(const std::vector<int64_t>& values, DType dtype);

  /// One operation with one result, e.g. emit("stablehlo.add", {x, y}, x.type()). `attributes` is the inside
  /// of {...}.
  Value emit(std::string_view op, const Values& operands, const Type& result,
             const std::string& attributes = "");

  /// A region's body gets its block arguments and returns what it yields. It must not use values from
  /// outside.
  struct Region {
    std::vector<Type> arguments;
    std::function<Values(const Values&)> body;
  };
  /// One operation with any number of results and regions.
  Values emit(std::string_view op, const Values& operands, const std::vector<Type>& results,
              const std::string& attributes, const std::vector<Region>& regions = {});

  /// The whole module. `alias[i]` >= 0 says that parameter i may be overwritten by that output (their types
  /// must be equal).
  std::string finish(const Values& outputs, const std::vector<int>& alias = {}) const;

  const Type& type(int id) const { return types_[id]; }
  Precision precision() const { return precision_; }
  const std::vector<int>& parameters() const { return parameters_; }

 private:
  Value define(const Type& type);
  Value splat(const std::string& literal, DType dtype, const Dims& dims);

  Precision precision_;
  std::deque<Type> types_;  // a deque: references to a type stay valid while values are added
  std::vector<int> parameters_;
  std::string body_;
  int depth_ = 0;                         // > 0 inside a region
  std::map<std::string, int> constants_;  // top level only: a region may not use values from outside
};

}  // namespace tpu::hlo
