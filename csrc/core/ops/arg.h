// The arguments of an operator call, free of torch: what a lowering sees and what a key is made of.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/hlo/type.h"

namespace tpu::ops {

/// A tensor argument: a value of the graph. value < 0 is "None" (inside a list of optional tensors).
struct Ref {
  int value = -1;
};

/// A number: a Scalar or float argument, or a 0-d CPU tensor in a tensor's place.
struct Number {
  DType dtype =
      DType::F64;       // Bool, S64, F64 or C128 for Python numbers (wrapped); any type for a 0-d CPU tensor
  bool wrapped = true;  // takes part in type promotion as a Python number
  int slot = -1;        // >= 0: a runtime parameter, its value is not known when the program is built
  std::complex<double> value = 0;  // known when slot < 0
  int64_t integer = 0;             // the exact value of an integer, known when slot < 0
};

/// One argument. monostate is None.
using Arg = std::variant<std::monostate, Ref, std::vector<Ref>, Number, std::vector<Number>, int64_t, bool,
                         std::string, std::vector<int64_t>, std::vector<bool>, std::vector<double>, DType>;

}  // namespace tpu::ops
