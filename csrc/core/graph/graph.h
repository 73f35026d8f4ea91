// A program before it is StableHLO: operators of the table over tensors that lie in cells. Eager mode makes
// graphs of one node, captured models graphs of many; both go through lower().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/ops/table.h"
#include "core/view/recipe.h"

namespace tpu::graph {

/// A tensor that comes from outside: a view of a cell. Several inputs may share a cell.
struct Input {
  int cell;
  view::Layout layout;
};

/// Stands for a result that PyTorch leaves undefined (a gradient nobody asked for).
inline hlo::Type undefined() { return {DType::Bool, {-1}}; }
inline bool is_undefined(const hlo::Type& t) { return t.dims.size() == 1 && t.dims[0] == -1; }

/// One operator. Values are numbered: first the inputs, then the results of the nodes in order.
struct Node {
  const ops::Op* op;
  std::shared_ptr<const std::vector<std::string>> names;  // of the arguments, in schema order
  std::vector<ops::Arg> args;
  std::vector<hlo::Type> results;  // as PyTorch expects them; ignored for an op that infers
  int num_results = 0;             // how many values it makes
};

/// A value that becomes a new array, transposed into the order its strides ask for (empty: as it is).
struct Output {
  int value;
  hlo::Dims order;
};

/// A value written through an input's view into its cell.
struct Write {
  int value;
  int input;
};

struct Graph {
  std::vector<hlo::Type> cells;
  std::vector<bool>
      fresh;  // cells nobody has written to yet: they read as zeros and are no parameters. Empty: none
  std::vector<Input> inputs;
  std::vector<Node> nodes;
  std::vector<Output> outputs;
  std::vector<Write> writes;  // in order; the last write to a place wins
};

/// How graphs are lowered; part of every key.
struct Settings {
  hlo::Precision precision = hlo::Precision::Highest;
  ops::Platform platform = ops::Platform::Cpu;
  bool bounds_checks = true;
};

/// A lowered graph: the module and the order of its parameters and results.
struct Lowered {
  std::string module;
  std::vector<int> cells;          // the cells that are parameters, in order; the others are only overwritten
  ops::Parameters extra;           // parameters after the cells
  std::vector<hlo::Type> outputs;  // arrays of Graph::outputs (after transposition)
  std::vector<hlo::Type> logical;  // one for each of Graph::outputs: its type before it, or undefined()
  std::vector<int> written;        // cells whose new arrays follow, in order
  std::vector<int> donated;        // for each of these its parameter that may be overwritten, or -1
};

/// Throws the Error of a lowering, with the operator's name.
Lowered lower(const Graph& graph, const Settings& settings);

}  // namespace tpu::graph
