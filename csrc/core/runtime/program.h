// A graph compiled for the running platform, ready to launch.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/runtime/device.h"

namespace tpu::runtime {

/// The value of a runtime scalar, as wide as it came.
struct ScalarValue {
  enum class Kind : uint8_t { Int, Float, Complex } kind = Kind::Float;
  int64_t integer = 0;
  double re = 0, im = 0;
  /// The bytes of the value as this dtype.
  std::array<uint64_t, 2> as(DType dtype) const;
};

struct Program {
  graph::Lowered plan;                           // its module text is dropped after the compile
  std::shared_ptr<pjrt::Executable> executable;  // null in a recording: a launch makes arrays of zeros
  std::shared_ptr<const std::vector<ops::Parameters::Check>> checks;  // null when there are none
  int64_t bytes = 0;  // of memory that a launch takes for its results

  /// Launches on a device. `cells` are the graph's cells, in order; those that the graph writes get their new
  /// array, the old one being reused when its cell is its only owner. `outputs` is filled with the graph's
  /// outputs. `generator` is needed when uses_random().
  void launch(Device& device, std::span<Cell* const> cells, std::span<const ScalarValue> scalars,
              Generator* generator, std::vector<ArrayPtr>& outputs) const;
  bool uses_random() const { return plan.extra.random_count > 0; }

 private:
  void pretend(Device& device, std::span<Cell* const> cells, std::vector<ArrayPtr>& outputs) const;
};

}  // namespace tpu::runtime
