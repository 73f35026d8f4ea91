// The family of docs/adding-an-operator.md, which the build takes from that page.
#include "core/graph/build.h"

namespace tpu::ops {

void shrinking(Table& t);

namespace {

using namespace tpu::testing;

TEST(DocumentedFamily, AddsAnOperatorThatRuns) {
  Table table;
  shrinking(table);
  const hlo::Type type{DType::F32, {5}};
  graph::Graph g;
  g.cells = {type};
  g.inputs = {whole(0, type)};
  g.nodes = {node("softshrink", {{"self", Ref{0}}, {"lambd", runtime_number(0)}}, {type}, table)};
  g.outputs = {{1, {}}};
  const auto lowered = graph::lower(g, {});
  ASSERT_EQ(lowered.extra.scalars.size(), 1u);  // lambd is passed at run time
  const auto got = run_graph(lowered, {array(DType::F32, {5}, {-2, -0.5, 0, 0.25, 3})},
                             {array(lowered.extra.scalars[0].second, {}, {0.5})});
  expect_numbers(got[0], {-1.5, 0, 0, 0, 2.5});
}

}  // namespace
}  // namespace tpu::ops
