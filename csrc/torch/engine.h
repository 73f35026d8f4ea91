// The eager engine: one boxed kernel for every operator of the table. Key, memory cache, launch; on a miss
// Meta, graph, compile.
#pragma once

#include <ATen/core/boxing/OperatorKernel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>

#include "torch/schema.h"

namespace tpu::torch_shim {

/// Runs `plan` on the arguments at the top of the stack and replaces them by its returns.
void run(const OpPlan& plan, c10::Stack* stack);

/// The kernel PyTorch's dispatcher holds.
class Kernel final : public c10::OperatorKernel {
 public:
  explicit Kernel(std::shared_ptr<const OpPlan> plan) : plan_(std::move(plan)) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, c10::Stack* stack) {
    (plan_->around ? plan_->around : run)(*plan_, stack);
  }

 private:
  std::shared_ptr<const OpPlan> plan_;
};

/// Registers every entry of the table, with the in-place and out= siblings that its schema has. Entries the
/// running torch lacks are left out.
void register_table();
/// Runs a table entry that is no ATen operator ("tpu::..."). `signature` lists its arguments in order, the
/// written ones marked with "!": {"self!", "src"}. Returns `results` new tensors; none when an argument is
/// written.
std::vector<at::Tensor> run_internal(const std::string& entry, const std::vector<std::string>& signature,
                                     std::vector<c10::IValue> arguments, int results = 0);
/// What has to happen before a call of this overload ("aten::arange.start_out"), or nullptr.
using Prepare = void (*)(const OpPlan& plan, c10::Stack& stack);
Prepare prepare_for(const std::string& name);
/// Forgets every program in memory; returns how many.
int64_t clear_programs();

}  // namespace tpu::torch_shim
