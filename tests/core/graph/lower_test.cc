#include "core/graph/build.h"

namespace tpu::graph {
namespace {

using namespace tpu::testing;
using hlo::Dims;
using hlo::Type;
using ops::Ref;

Type f32(const Dims& dims) { return {DType::F32, dims}; }

Node add(int self, int other, const Type& result) {
  return node("add.Tensor", {{"self", Ref{self}}, {"other", Ref{other}}, {"alpha", constant(int64_t{1})}},
              {result});
}

TEST(Lower, OneNode) {
  Graph g;
  g.cells = {f32({2}), f32({2})};
  g.inputs = {whole(0, g.cells[0]), whole(1, g.cells[1])};
  g.nodes = {add(0, 1, f32({2}))};
  g.outputs = {{2, {}}};
  const Lowered l = lower(g, {});
  EXPECT_EQ(l.cells, (std::vector<int>{0, 1}));
  EXPECT_EQ(l.outputs, std::vector<Type>{f32({2})});
  EXPECT_TRUE(l.written.empty());
  EXPECT_EQ(l.module.find("aliasing"), std::string::npos);
  EXPECT_EQ(l.module, lower(g, {}).module);
  expect_numbers(run_graph(l, {array(DType::F32, {2}, {1, 2}), array(DType::F32, {2}, {10, 20})})[0],
                 {11, 22});
}

TEST(Lower, TwoViewsOfOneCell) {
  Graph g;
  g.cells = {f32({2, 2})};
  g.inputs = {whole(0, g.cells[0]), view_of(0, g.cells[0], {2, 2}, {1, 2})};
  g.nodes = {add(0, 1, f32({2, 2}))};
  g.outputs = {{2, {}}};
  const Lowered l = lower(g, {});
  EXPECT_EQ(l.cells, std::vector<int>{0});  // one parameter
  expect_numbers(run_graph(l, {array(DType::F32, {2, 2}, {1, 2, 3, 4})})[0], {2, 5, 5, 8});
}

TEST(Lower, ChainOfNodesAndSeveralOutputs) {
  Graph g;
  g.cells = {f32({2})};
  g.inputs = {whole(0, g.cells[0])};
  g.nodes = {add(0, 0, f32({2})), add(1, 0, f32({2})), add(2, 1, f32({2}))};
  g.outputs = {{3, {}}, {1, {}}};
  const auto out = run_graph(lower(g, {}), {array(DType::F32, {2}, {1, 2})});
  expect_numbers(out[0], {5, 10});
  expect_numbers(out[1], {2, 4});
}

TEST(Lower, OutputIsStoredInItsOwnOrder) {
  Graph g;
  g.cells = {f32({2, 3})};
  g.inputs = {whole(0, g.cells[0])};
  g.nodes = {add(0, 0, f32({2, 3}))};
  g.outputs = {{1, {1, 0}}};
  const Lowered l = lower(g, {});
  EXPECT_EQ(l.logical, std::vector<Type>{f32({2, 3})});
  EXPECT_EQ(l.outputs, std::vector<Type>{f32({3, 2})});
  expect_array(run_graph(l, {array(DType::F32, {2, 3}, {0, 1, 2, 3, 4, 5})})[0], DType::F32, {3, 2},
               {0, 6, 2, 8, 4, 10});
}

TEST(Lower, ResultIsConvertedToTheTypeExpected) {
  Graph g;
  g.cells = {f32({1})};
  g.inputs = {whole(0, g.cells[0])};
  g.nodes = {add(0, 0, {DType::BF16, {1}})};
  g.outputs = {{1, {}}};
  expect_array(run_graph(lower(g, {}), {array(DType::F32, {1}, {1.5})})[0], DType::BF16, {1}, {3});
}

TEST(Lower, WriteThroughAViewKeepsTheRest) {
  Graph g;
  g.cells = {f32({2, 2}), f32({2})};
  g.inputs = {view_of(0, g.cells[0], {2}, {2}, 1), whole(1, g.cells[1])};  // x[:, 1] += y
  g.nodes = {add(0, 1, f32({2}))};
  g.writes = {{2, 0}};
  const Lowered l = lower(g, {});
  EXPECT_EQ(l.written, std::vector<int>{0});
  EXPECT_EQ(l.donated, std::vector<int>{0});
  EXPECT_NE(l.module.find("%0: tensor<2x2xf32> {tf.aliasing_output = 0 : i32}"), std::string::npos)
      << l.module;
  const auto out = run_graph(l, {array(DType::F32, {2, 2}, {1, 2, 3, 4}), array(DType::F32, {2}, {10, 20})});
  expect_numbers(out[0], {1, 12, 3, 24});
}

TEST(Lower, ACellThatIsOnlyOverwrittenIsNoParameter) {
  Graph g;
  g.cells = {f32({2}), {DType::S64, {4}}};
  g.inputs = {whole(0, g.cells[0]),
              view_of(1, g.cells[1], {2, 2}, {1, 2})};  // out= of another order and dtype
  g.nodes = {node("eq.Tensor", {{"self", Ref{0}}, {"other", Ref{0}}}, {{DType::Bool, {2}}})};
  g.inputs[1] = view_of(1, g.cells[1] = {DType::S64, {2}}, {2}, {1});
  g.writes = {{2, 1}};
  const Lowered l = lower(g, {});
  EXPECT_EQ(l.cells, std::vector<int>{0});
  EXPECT_EQ(l.written, std::vector<int>{1});
  EXPECT_EQ(l.donated, std::vector<int>{-1});
  EXPECT_EQ(l.module.find("aliasing"), std::string::npos);
  expect_array(run_graph(l, {array(DType::F32, {2}, {1, 2}), {}})[0], DType::S64, {2}, {1, 1});
}

TEST(Lower, OverwritingThroughATransposeNeedsNoOldContents) {
  Graph g;
  g.cells = {f32({2, 3}), f32({3, 2})};
  g.inputs = {view_of(0, g.cells[0], {3, 2}, {1, 3}), whole(1, g.cells[1])};
  g.nodes = {add(1, 1, f32({3, 2}))};
  g.writes = {{2, 0}};
  const Lowered l = lower(g, {});
  EXPECT_EQ(l.cells, std::vector<int>{1});
  expect_array(run_graph(l, {{}, array(DType::F32, {3, 2}, {0, 1, 2, 3, 4, 5})})[0], DType::F32, {2, 3},
               {0, 4, 8, 2, 6, 10});
}

TEST(Lower, WritesToOneCellHappenInOrder) {
  Graph g;
  g.cells = {f32({3}), f32({1})};
  g.inputs = {view_of(0, g.cells[0], {2}, {1}, 0), view_of(0, g.cells[0], {2}, {1}, 1), whole(1, g.cells[1])};
  g.nodes = {add(0, 2, f32({2})), add(1, 2, f32({2}))};
  g.writes = {{3, 0}, {4, 1}};
  const Lowered l = lower(g, {});
  EXPECT_EQ(l.written, std::vector<int>{0});
  const std::vector<Array> cells{array(DType::F32, {3}, {1, 2, 3}), array(DType::F32, {1}, {10})};
  expect_numbers(run_graph(l, cells)[0], {11, 12, 13});
  g.nodes = {add(0, 2, f32({2})), add(0, 0, f32({2}))};  // both over the same two places: the second stays
  g.writes = {{3, 0}, {4, 0}};
  expect_numbers(run_graph(lower(g, {}), cells)[0], {2, 4, 3});
}

TEST(Lower, OutputsComeBeforeWrittenCells) {
  Graph g;
  g.cells = {f32({1}), f32({1})};
  g.inputs = {whole(0, g.cells[0]), whole(1, g.cells[1])};
  g.nodes = {add(0, 1, f32({1}))};
  g.outputs = {{2, {}}};
  g.writes = {{0, 1}, {2, 0}};  // y = x, x = x + y
  const Lowered l = lower(g, {});
  EXPECT_EQ(l.written, (std::vector<int>{0, 1}));
  EXPECT_EQ(l.donated[0], 0);
  const auto out = run_graph(l, {array(DType::F32, {1}, {1}), array(DType::F32, {1}, {5})});
  expect_numbers(out[0], {6});
  expect_numbers(out[1], {6});
  expect_numbers(out[2], {1});
}

// An operator that skips its second result and writes into an argument only when asked to.
ops::Results partial(ops::Call& c) { return {c.tensor("self"), hlo::Value(), hlo::Value()}; }
const ops::Op kPartial{"partial", partial, {}, nullptr, false, {}};

Graph partial_graph() {
  Graph g;
  g.cells = {f32({2}), f32({2})};
  g.inputs = {whole(0, g.cells[0]), whole(1, g.cells[1])};
  g.nodes = {node("add.Tensor", {{"self", Ref{0}}}, {f32({2}), undefined(), undefined()})};
  g.nodes[0].op = &kPartial;
  return g;
}

TEST(Lower, UndefinedResultsAreLeftOut) {
  Graph g = partial_graph();
  g.outputs = {{2, {}}};
  const auto out = run_graph(lower(g, {}), {array(DType::F32, {2}, {1, 2}), array(DType::F32, {2}, {3, 4})});
  ASSERT_EQ(out.size(), 1u);
  expect_numbers(out[0], {1, 2});
  EXPECT_TRUE(is_undefined(undefined()));
  EXPECT_FALSE(is_undefined(f32({2})));
}

TEST(Lower, AWriteOfNothingLeavesTheCell) {
  Graph g = partial_graph();
  g.outputs = {{2, {}}};
  g.writes = {{4, 1}};
  const Lowered l = lower(g, {});
  EXPECT_TRUE(l.written.empty());
  EXPECT_EQ(run_graph(l, {array(DType::F32, {2}, {1, 2}), array(DType::F32, {2}, {3, 4})}).size(), 1u);
}

template <typename F>
Error error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return Error(Code::Internal, "", "");
}

TEST(Lower, AnOutputWithoutAValueIsMarkedUndefined) {
  Graph g = partial_graph();
  g.nodes[0].results[2] = f32({2});  // PyTorch gives it a type, the lowering no value
  g.outputs = {{3, {}}, {2, {}}, {4, {}}};
  const Lowered l = lower(g, {});
  ASSERT_EQ(l.logical.size(), 3u);
  EXPECT_TRUE(is_undefined(l.logical[0]));
  EXPECT_EQ(l.logical[1], f32({2}));
  EXPECT_TRUE(is_undefined(l.logical[2]));
  EXPECT_EQ(l.outputs, std::vector<Type>{f32({2})});
  const auto out = run_graph(l, {array(DType::F32, {2}, {1, 2}), array(DType::F32, {2}, {3, 4})});
  ASSERT_EQ(out.size(), 1u);
  expect_numbers(out[0], {1, 2});
}

TEST(Lower, AWrongShapeNamesTheOperator) {
  Graph g;
  g.cells = {f32({2})};
  g.inputs = {whole(0, g.cells[0])};
  g.nodes = {add(0, 0, f32({3}))};
  g.outputs = {{1, {}}};
  const Error e = error_of([&] { lower(g, {}); });
  EXPECT_EQ(e.op, "add.Tensor");
  EXPECT_STREQ(e.what(), "add.Tensor: its lowering gave tensor<2xf32>, PyTorch expects tensor<3xf32>");
}

TEST(Lower, TooFewResultsNameTheOperator) {
  Graph g;
  g.cells = {f32({2})};
  g.inputs = {whole(0, g.cells[0])};
  g.nodes = {add(0, 0, f32({2}))};
  g.nodes[0].num_results = 2;
  EXPECT_EQ(error_of([&] { lower(g, {}); }).op, "add.Tensor");
}

TEST(Lower, AWriteOfAnotherShapeIsTheUsersError) {
  Graph g;
  g.cells = {f32({2}), f32({2, 2})};
  g.inputs = {whole(0, g.cells[0]), whole(1, g.cells[1])};
  g.nodes = {add(0, 1, f32({2, 2}))};
  g.writes = {{2, 0}};  // x.add_(y) of a larger y
  const Error e = error_of([&] { lower(g, {}); });
  EXPECT_EQ(e.code, Code::InvalidArgument);
  EXPECT_STREQ(e.what(), "add.Tensor: output with shape [2] doesn't match the result's shape [2, 2]");
}

TEST(Lower, RuntimeNumbersAreParametersAfterTheCells) {
  Graph g;
  g.cells = {f32({2})};
  g.inputs = {whole(0, g.cells[0])};
  g.nodes = {node("add.Tensor",
                  {{"self", Ref{0}}, {"other", runtime_number(0)}, {"alpha", runtime_number(1)}},
                  {f32({2})})};
  g.outputs = {{1, {}}};
  const Lowered l = lower(g, {});
  std::vector<Array> extra;
  const double numbers[] = {5, 3};
  for (auto [slot, dtype] : l.extra.scalars) extra.push_back(array(dtype, {}, {numbers[slot]}));
  expect_numbers(run_graph(l, {array(DType::F32, {2}, {1, 2})}, extra)[0], {16, 17});
}

Graph index_graph() {
  Graph g;
  g.cells = {f32({3}), {DType::S64, {2}}};
  g.inputs = {whole(0, g.cells[0]), whole(1, g.cells[1])};
  g.nodes = {node("index_select", {{"self", Ref{0}}, {"dim", int64_t{0}}, {"index", Ref{1}}}, {f32({2})})};
  g.outputs = {{2, {}}};
  return g;
}

TEST(Lower, IndicesAreReportedInOneMoreResult) {
  const Lowered l = lower(index_graph(), {});
  ASSERT_EQ(l.extra.checks.size(), 1u);
  EXPECT_EQ(l.extra.checks[0].message, "index # is out of bounds for dimension 0 with size 3");
  const Array x = array(DType::F32, {3}, {1, 2, 3});
  auto out = run_graph(l, {x, array(DType::S64, {2}, {2, 0})});
  ASSERT_EQ(out.size(), 2u);
  expect_numbers(out[0], {3, 1});
  EXPECT_EQ(out[1].as<int64_t>(), std::vector<int64_t>{ops::kNoFault});
  out = run_graph(l, {x, array(DType::S64, {2}, {1, 7})});
  EXPECT_EQ(out[1].as<int64_t>(), std::vector<int64_t>{7});
}

TEST(Lower, BoundsChecksCanBeOff) {
  Settings off;
  off.bounds_checks = false;
  const Lowered l = lower(index_graph(), off);
  EXPECT_TRUE(l.extra.checks.empty());
  EXPECT_EQ(run_graph(l, {array(DType::F32, {3}, {1, 2, 3}), array(DType::S64, {2}, {2, 0})}).size(), 1u);
}

TEST(Lower, PrecisionIsPartOfTheModule) {
  Graph g;
  g.cells = {f32({2, 2})};
  g.inputs = {whole(0, g.cells[0])};
  g.nodes = {node("mm", {{"self", Ref{0}}, {"mat2", Ref{0}}}, {f32({2, 2})})};
  g.outputs = {{1, {}}};
  Settings medium;
  medium.precision = hlo::Precision::Medium;
  EXPECT_NE(lower(g, {}).module, lower(g, medium).module);
}

}  // namespace
}  // namespace tpu::graph
