#include <gtest/gtest.h>

#include "core/graph/build.h"

namespace tpu::ops {
namespace {

using namespace tpu::testing;
using graph::Graph;
using hlo::Dims;
using hlo::Type;

/// A product of integers as it is lowered for a TPU, which XLA's CPU device can run too.
std::vector<Array> product_for_tpu(const std::string& op, const char* second, const Array& x, const Array& y,
                                   const Dims& result) {
  Graph g;
  g.cells = {{x.dtype, x.dims}, {y.dtype, y.dims}};
  g.inputs = {whole(0, g.cells[0]), whole(1, g.cells[1])};
  g.nodes = {node(op, {{"self", Ref{0}}, {second, Ref{1}}}, {{x.dtype, result}})};
  g.outputs = {{2, {}}};
  return run_graph(graph::lower(g, {hlo::Precision::Highest, Platform::Tpu, true}), {x, y});
}

TEST(Matmul, WideIntegersForATpu) {
  const Array x = array(DType::S64, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Array y = array(DType::S64, {3, 2}, {1, -1, 0, 2, 1, 0});
  expect_numbers(product_for_tpu("mm", "mat2", x, y, {2, 2})[0], {4, 3, 10, 6});
}

TEST(Matmul, WideIntegersInBatchesForATpu) {
  const Array x = array(DType::S64, {2, 1, 2}, {1, 2, 3, 4});
  const Array y = array(DType::S64, {2, 2, 3}, {1, 0, 2, 0, 1, 1, 1, 1, 0, 2, 0, 1});
  expect_numbers(product_for_tpu("bmm", "mat2", x, y, {2, 1, 3})[0], {1, 2, 4, 11, 3, 4});
}

}  // namespace
}  // namespace tpu::ops
