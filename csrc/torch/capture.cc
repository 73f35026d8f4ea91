#include "torch/capture.h"

#include "torch/engine.h"
#include "torch/errors.h"

namespace tpu::torch_shim {

int Capture::input() {
  if (values_ != inputs_) throw Error(Code::Internal, "capture", "inputs come before nodes");
  values_++;
  return inputs_++;
}

std::vector<int> Capture::node(const std::string& name, std::vector<std::string> names,
                               std::vector<ops::Arg> args, std::vector<hlo::Type> results) {
  graph::Node n;
  n.op = ops::Table::get().find(name);
  if (!n.op) throw Error(Code::Unimplemented, name, "no entry in the operator table");
  n.names = std::make_shared<const std::vector<std::string>>(std::move(names));
  n.args = std::move(args);
  n.num_results = static_cast<int>(results.size());
  n.results = std::move(results);
  std::vector<int> out;
  for (int i = 0; i < n.num_results; i++) out.push_back(values_++);
  body_->graph.nodes.push_back(std::move(n));
  return out;
}

void Capture::output(int value, c10::ScalarType dtype, std::vector<int64_t> sizes,
                     std::vector<int64_t> strides) {
  Expected e{dtype, std::move(sizes), std::move(strides), true};
  const hlo::Dims packed = hlo::row_major(e.sizes);
  e.contiguous = e.strides == packed || !view::is_dense(e.sizes, e.strides);
  if (e.contiguous) e.strides = packed;
  body_->graph.outputs.push_back(
      {value, e.contiguous ? hlo::Dims{} : view::memory_order(e.sizes, e.strides)});
  body_->results.push_back(std::move(e));
}

void Capture::finish(const std::string& name) { plan_ = captured_plan(name, body_); }

std::vector<at::Tensor> Capture::run(std::vector<at::Tensor> inputs) const {
  return guarded([&] {
    if (!plan_) throw Error(Code::Internal, "capture", "finish() was not called");
    c10::Stack stack;
    stack.emplace_back(std::move(inputs));
    torch_shim::run(*plan_, &stack);
    return stack.back().toTensorVector();
  });
}

}  // namespace tpu::torch_shim
