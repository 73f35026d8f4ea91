#include <gtest/gtest.h>

#include "core/base/log.h"
#include "core/runtime/world.h"

namespace tpu::runtime {
namespace {

using namespace tpu::testing;
using graph::Graph;
using hlo::Type;
using ops::Ref;

/// exp of a vector, into a new array or into its cell.
Graph exponential(int64_t n, bool in_place) {
  const Type type{DType::F32, {n}};
  Graph g;
  g.cells = {type};
  g.inputs = {whole(0, type)};
  g.nodes = {node("exp", {{"self", Ref{0}}}, {type})};
  if (in_place)
    g.writes = {{1, 0}};
  else
    g.outputs = {{1, {}}};
  return g;
}

std::shared_ptr<const Program> program(const Graph& g) {
  return world().compile(g, {hlo::Precision::Highest, world().platform(), true}, "a test");
}

/// Ends the recording of a test that throws, too.
struct Recording {
  explicit Recording(ops::Platform target) { world().start_recording(target); }
  ~Recording() { world().finish_recording(); }
};

TEST(Recording, KeepsWhatItDoesNotCompile) {
  const Recording recording(ops::Platform::Tpu);
  const int64_t before = counter("compiles");
  EXPECT_EQ(world().platform(), ops::Platform::Tpu);
  program(exponential(11, false));
  program(exponential(12, false));
  EXPECT_EQ(counter("compiles"), before);
  const std::vector<Recorded> found = world().finish_recording();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].why, "a test");
  EXPECT_EQ(found[0].graph.nodes[0].op->name, "exp");
  EXPECT_NE(found[0].module.find("tensor<11xf32>"), std::string::npos);
  EXPECT_NE(found[1].module.find("tensor<12xf32>"), std::string::npos);
  EXPECT_FALSE(found[0].error);
  EXPECT_EQ(world().platform(), ops::Platform::Cpu);
  EXPECT_TRUE(world().finish_recording().empty());
}

TEST(Recording, ALaunchMakesZeros) {
  Cell x = cell(array(DType::F32, {2}, {1, 2}));
  const Recording recording(ops::Platform::Tpu);
  std::vector<ArrayPtr> outputs;
  program(exponential(2, false))->launch(world().device(0), std::vector<Cell*>{&x}, {}, nullptr, outputs);
  ASSERT_EQ(outputs.size(), 1u);
  expect_numbers(fetch(outputs[0]), {0, 0});
  expect_numbers(fetch(x.array), {1, 2});
  program(exponential(2, true))->launch(world().device(0), std::vector<Cell*>{&x}, {}, nullptr, outputs);
  EXPECT_TRUE(outputs.empty());
  expect_numbers(fetch(x.array), {0, 0});
}

TEST(Recording, KeepsTheErrorOfALowering) {
  Graph wrong = exponential(2, false);
  wrong.nodes[0].results = {{DType::F32, {3}}};
  const Recording recording(ops::Platform::Tpu);
  EXPECT_THROW(program(wrong), Error);
  const std::vector<Recorded> found = world().finish_recording();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].module.empty());
  ASSERT_TRUE(found[0].error);
  EXPECT_EQ(found[0].error->op, "exp");
}

TEST(Recording, OneAtATime) {
  const Recording recording(ops::Platform::Tpu);
  EXPECT_THROW(world().start_recording(ops::Platform::Cpu), Error);
  EXPECT_EQ(world().platform(), ops::Platform::Tpu);
}

TEST(Recording, ProgramsAreCompiledAfterIt) {
  world().start_recording(ops::Platform::Tpu);
  program(exponential(13, false));
  world().finish_recording();
  EXPECT_NE(program(exponential(13, false))->executable, nullptr);
}

}  // namespace
}  // namespace tpu::runtime
