// The state of one program while it is written: its builder, its runtime parameters beside the tensors, and
// its checks.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/hlo/functions.h"
#include "core/ops/arg.h"

namespace tpu::ops {

enum class Platform : uint8_t { Cpu, Tpu, Other };

/// What the runtime has to pass after the tensors, in this order, and what it gets back after the results.
struct Parameters {
  static constexpr int kRandom =
      -1;  // in a scalar's slot: a u32[4] of seed low, seed high, offset low, offset high
  std::vector<std::pair<int, DType>> scalars;  // (slot, type to pass it as)
  int64_t random_count = 0;                    // how far the generator's offset advances
  struct Check {
    std::string op;       // the operator, for the message
    std::string message;  // '#' stands for the number found
    Code code;
  };
  std::vector<Check>
      checks;  // when not empty, one more result: s64[checks], an offending number or kNoFault each
};

constexpr int64_t kNoFault = INT64_MIN;

class Lowering {
 public:
  Lowering(hlo::Precision precision, Platform platform, bool bounds_checks)
      : b(precision), platform(platform), bounds_checks(bounds_checks) {}

  /// The runtime scalar of a slot as a 0-d value of this type: one parameter for each (slot, type).
  hlo::Value scalar(int slot, DType dtype);
  /// Reserves `count` numbers of the random stream; gives {seed low, seed high, first counter low, high} as
  /// u32 scalars.
  hlo::Values random(int64_t count);
  /// Reports the largest index outside [0, size) in `index` (any integer type) when the result is read.
  void check(const std::string& op, hlo::Value index, int64_t dim, int64_t size, Code code = Code::Index);
  /// Reports `message` when the result is read, unless every element of `holds` (bool) is true.
  void require(const std::string& op, hlo::Value holds, const std::string& message, Code code);
  /// The s64 vector of all checks; call once, when parameters().checks is not empty.
  hlo::Value faults();

  const Parameters& parameters() const { return parameters_; }

  hlo::Builder b;
  const Platform platform;
  const bool bounds_checks;

 private:
  void report(const std::string& op, hlo::Value found, const std::string& message, Code code);

  Parameters parameters_;
  std::map<std::pair<int, DType>, hlo::Value> scalars_;
  hlo::Value random_state_;
  hlo::Values faults_;
};

}  // namespace tpu::ops
