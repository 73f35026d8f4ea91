// Graphs by hand, and what they compute.
#pragma once

#include <utility>

#include "core/graph/graph.h"
#include "core/hlo/evaluate.h"

namespace tpu::testing {

/// One call of an operator of a table: its arguments by name, its results' types.
inline graph::Node node(const std::string& op, const std::vector<std::pair<std::string, ops::Arg>>& arguments,
                        const std::vector<hlo::Type>& results, const ops::Table& table = ops::Table::get()) {
  const ops::Op* entry = table.find(op);
  if (!entry) throw Error(Code::Internal, op, "is not in the table");
  std::vector<std::string> names;
  graph::Node out{entry, nullptr, {}, results, static_cast<int>(results.size())};
  for (const auto& [name, arg] : arguments) names.push_back(name), out.args.push_back(arg);
  out.names = std::make_shared<const std::vector<std::string>>(std::move(names));
  return out;
}

/// A tensor that is its whole cell.
inline graph::Input whole(int cell, const hlo::Type& type) {
  return {cell, {type.dtype, type.dims, type.dtype, type.dims, hlo::row_major(type.dims), 0}};
}

/// A view of a cell, of the cell's dtype.
inline graph::Input view_of(int cell, const hlo::Type& type, const hlo::Dims& sizes, const hlo::Dims& strides,
                            int64_t offset = 0) {
  return {cell, {type.dtype, type.dims, type.dtype, sizes, strides, offset}};
}

inline ops::Number constant(double value) { return {DType::F64, true, -1, value, 0}; }
inline ops::Number constant(int64_t value) {
  return {DType::S64, true, -1, static_cast<double>(value), value};
}
inline ops::Number runtime_number(int slot, DType dtype = DType::F64) { return {dtype, true, slot, 0, 0}; }

/// All results of the lowered graph: outputs, written cells, faults. `extra` are the runtime scalars.
inline std::vector<Array> run_graph(const graph::Lowered& lowered, const std::vector<Array>& cells,
                                    const std::vector<Array>& extra = {}) {
  std::vector<Array> inputs;
  for (int k : lowered.cells) inputs.push_back(cells[k]);
  inputs.insert(inputs.end(), extra.begin(), extra.end());
  return execute(lowered.module, inputs);
}

}  // namespace tpu::testing
