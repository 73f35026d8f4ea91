// One operator call, taken off the stack: its key, its cells and its runtime scalars.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.h"
#include "core/runtime/program.h"
#include "torch/schema.h"

namespace tpu::torch_shim {

class Frame {
 public:
  /// Reads the arguments of `plan` from the top of the stack and writes the key. Throws what CPU torch would
  /// for tensors of several devices.
  void read(const OpPlan& plan, const c10::Stack& stack);
  /// The graph of one node of what was read, with results of these types written to the plan's targets.
  graph::Graph graph(const OpPlan& plan, const c10::Stack& stack, const std::vector<hlo::Type>& results,
                     const std::vector<hlo::Dims>& orders) const;

  /// The tensors that were read as the inputs of a captured graph.
  void bind(graph::Graph& graph) const;

  std::string key;
  std::vector<runtime::Cell*> cells;
  std::vector<runtime::ScalarValue> scalars;
  int device = -1;
  std::optional<at::Generator> generator;

 private:
  struct Input {
    const at::Tensor* tensor;
    int cell;
  };
  struct Reader;
  struct Builder;
  /// The place of a cell in `cells`, added when it is new.
  int index_of(runtime::Cell* cell);
  void add_tensor(const OpPlan& plan, const at::Tensor& t, const Argument& argument);
  void add_number(const c10::IValue& v, const Argument& argument, const OpPlan& plan);
  void put(const void* bytes, size_t n) { key.append(static_cast<const char*>(bytes), n); }
  template <typename T>
  void put(T v) {
    put(&v, sizeof v);
  }

  std::vector<Input> inputs_;
  std::unordered_map<runtime::Cell*, int> index_;  // of `cells`, for long lists of tensors
  std::vector<ops::Arg>
      numbers_;  // the Number of each scalar, in order of appearance, to build the graph from
};

/// The key's settings: matmul precision and bounds checks as they are now.
graph::Settings current_settings();

}  // namespace tpu::torch_shim
