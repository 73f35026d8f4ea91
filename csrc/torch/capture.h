// Graphs that Python captured (FX), as programs of the core.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "torch/schema.h"

namespace tpu::torch_shim {

/// Builds a Body node by node; then runs it.
class Capture {
 public:
  /// The number of the next tensor input.
  int input();
  /// Adds an operator of the table; returns the numbers of its results. Error(Unimplemented) when there is no
  /// such entry.
  std::vector<int> node(const std::string& name, std::vector<std::string> names, std::vector<ops::Arg> args,
                        std::vector<hlo::Type> results);
  /// What the program returns: a value, and the strides its tensor has.
  void output(int value, c10::ScalarType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides);
  /// Ends the building. `name` appears in logs and errors.
  void finish(const std::string& name);

  /// Runs on these tensors; one program for each combination of their layouts. Error when not finished.
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs) const;
  std::shared_ptr<const Body> body() const { return body_; }

 private:
  std::shared_ptr<Body> body_ = std::make_shared<Body>();
  int inputs_ = 0, values_ = 0;
  std::unique_ptr<const OpPlan> plan_;
};

}  // namespace tpu::torch_shim
