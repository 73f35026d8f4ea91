#include "core/runtime/program.h"

#include <thread>

#include "core/base/log.h"
#include "core/runtime/world.h"

namespace tpu::runtime {
namespace {

using namespace tpu::testing;
using graph::Graph;
using hlo::Dims;
using hlo::Type;
using ops::Ref;

Type f32(const Dims& dims) { return {DType::F32, dims}; }

Graph plus(const Type& type, bool in_place) {
  Graph g;
  g.cells = {type};
  g.inputs = {whole(0, type)};
  g.nodes = {node("add.Tensor",
                  {{"self", Ref{0}}, {"other", runtime_number(0)}, {"alpha", constant(int64_t{1})}}, {type})};
  if (in_place)
    g.writes = {{1, 0}};
  else
    g.outputs = {{1, {}}};
  return g;
}

std::shared_ptr<const Program> compiled(const Graph& g) { return world().compile(g, {}, "a test"); }

ScalarValue number(double v) { return {ScalarValue::Kind::Float, 0, v, 0}; }

std::vector<ArrayPtr> launch(const Program& p, std::vector<Cell*> cells,
                             const std::vector<ScalarValue>& scalars = {}, int device = 0) {
  std::vector<ArrayPtr> outputs;
  Device& d = world().device(device);
  p.launch(d, cells, scalars, &d.generator(), outputs);
  return outputs;
}

TEST(Program, RunsAGraph) {
  const auto p = compiled(plus(f32({2}), false));
  Cell x = cell(array(DType::F32, {2}, {1, 2}));
  for (double v : {10.0, 20.0}) expect_numbers(fetch(launch(*p, {&x}, {number(v)})[0]), {1 + v, 2 + v});
  expect_numbers(fetch(x.array), {1, 2});
  EXPECT_TRUE(p->plan.module.empty());  // not kept
}

TEST(Program, RunsOnAnyDevice) {
  const auto p = compiled(plus(f32({2}), false));
  Cell x = cell(array(DType::F32, {2}, {1, 2}), 1);
  const auto out = launch(*p, {&x}, {number(1)}, 1);
  EXPECT_EQ(out[0]->buffer().device(), 1);
  EXPECT_EQ(&out[0]->device(), &world().device(1));
  expect_numbers(fetch(out[0]), {2, 3});
}

TEST(Program, NanWins) {
  Graph g;
  g.cells = {f32({2}), f32({2})};
  g.inputs = {whole(0, g.cells[0]), whole(1, g.cells[1])};
  g.nodes = {node("maximum", {{"self", Ref{0}}, {"other", Ref{1}}}, {f32({2})})};
  g.outputs = {{2, {}}};
  Cell x = cell(array(DType::F32, {2}, {NAN, 1})), y = cell(array(DType::F32, {2}, {1, NAN}));
  expect_numbers(fetch(launch(*compiled(g), {&x, &y})[0]), {NAN, NAN});
}

TEST(Program, AWriteSwapsTheCellsArray) {
  const auto p = compiled(plus(f32({2}), true));
  Cell x = cell(array(DType::F32, {2}, {1, 2}));
  EXPECT_TRUE(launch(*p, {&x}, {number(1)}).empty());
  expect_numbers(fetch(x.array), {2, 3});
}

TEST(Program, TheSoleOwnersArrayIsReused) {
  const Type big = f32({1 << 16});
  const auto p = compiled(plus(big, true));
  Cell x = cell(array(DType::F32, big.dims, Numbers(1 << 16, 1.0)));
  x.array->buffer().wait();
  const void* before = x.array->buffer().host_address();
  ASSERT_NE(before, nullptr);
  launch(*p, {&x}, {number(1)});
  x.array->buffer().wait();
  EXPECT_EQ(x.array->buffer().host_address(), before);
}

TEST(Program, ASharedArrayIsNotTouched) {
  const Type big = f32({1 << 16});
  const auto p = compiled(plus(big, true));
  Cell x = cell(array(DType::F32, big.dims, Numbers(1 << 16, 1.0)));
  const ArrayPtr held = x.array;
  launch(*p, {&x}, {number(1)});
  EXPECT_NE(x.array, held);
  EXPECT_EQ(numbers(fetch(held))[5], 1.0);
  EXPECT_EQ(numbers(fetch(x.array))[5], 2.0);
}

TEST(Program, ACellWithoutAnArrayIsZeros) {
  const auto p = compiled(plus(f32({2}), false));
  Cell x{0, f32({2}), nullptr};
  expect_numbers(fetch(launch(*p, {&x}, {number(3)})[0]), {3, 3});
  EXPECT_NE(x.array, nullptr);
}

TEST(Program, RandomNumbersMoveTheGenerator) {
  Graph g;
  g.cells = {f32({4})};
  g.inputs = {whole(0, g.cells[0])};
  g.nodes = {node("bernoulli.p",
                  {{"self", Ref{0}}, {"p", runtime_number(0)}, {"generator", std::monostate{}}}, {f32({4})})};
  g.outputs = {{1, {}}};
  const auto p = compiled(g);
  ASSERT_TRUE(p->uses_random());
  Device& d = world().device(0);
  const Generator::State start = d.generator().state();
  Cell x{0, f32({4}), nullptr};
  launch(*p, {&x}, {number(0.5)});
  EXPECT_EQ(d.generator().state().offset, start.offset + static_cast<uint64_t>(p->plan.extra.random_count));
  EXPECT_EQ(d.generator().state().seed, start.seed);
  expect_numbers(fetch(launch(*p, {&x}, {number(1)})[0]), {1, 1, 1, 1});
  expect_numbers(fetch(launch(*p, {&x}, {number(0)})[0]), {0, 0, 0, 0});
}

Graph select_rows() {
  Graph g;
  g.cells = {f32({3}), {DType::S64, {2}}};
  g.inputs = {whole(0, g.cells[0]), whole(1, g.cells[1])};
  g.nodes = {node("index_select", {{"self", Ref{0}}, {"dim", int64_t{0}}, {"index", Ref{1}}}, {f32({2})})};
  g.outputs = {{2, {}}};
  return g;
}

TEST(Program, ABadIndexIsRaisedOnce) {
  const auto p = compiled(select_rows());
  ASSERT_NE(p->checks, nullptr);
  Cell x = cell(array(DType::F32, {3}, {1, 2, 3})), good = cell(array(DType::S64, {2}, {2, 0})),
       bad = cell(array(DType::S64, {2}, {0, 5}));
  Device& d = world().device(0);
  launch(*p, {&x, &good});
  d.check_faults();
  launch(*p, {&x, &bad});
  try {
    d.synchronize();
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, Code::Index);
    EXPECT_STREQ(e.what(), "index_select: index 5 is out of bounds for dimension 0 with size 3");
  }
  d.synchronize();
  d.check_faults();
  launch(*p, {&x, &bad}, {}, 0);
  EXPECT_NO_THROW(world().device(1).check_faults());  // each device has its own
  EXPECT_THROW(d.check_faults(), Error);
}

TEST(Program, FaultsAreCollectedBeforeTheyPileUp) {
  const auto p = compiled(select_rows());
  Cell x = cell(array(DType::F32, {3}, {1, 2, 3})), good = cell(array(DType::S64, {2}, {2, 0}));
  Device& d = world().device(0);
  d.synchronize();
  const int64_t before = d.memory().live;
  for (int i = 0; i < 1000; i++) launch(*p, {&x, &good});
  EXPECT_LT(d.memory().live, before + 200);
  d.check_faults();
  EXPECT_LE(d.memory().live, before);
}

TEST(Program, LaunchesFromManyThreads) {
  const auto p = compiled(plus(f32({64}), true));
  Device& d = world().device(0);
  std::vector<std::thread> threads;
  std::vector<Cell> cells;
  for (int t = 0; t < 4; t++) cells.push_back(cell(array(DType::F32, {64}, Numbers(64, 0.0))));
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; i++) {
        launch(*p, {&cells[t]}, {number(t)});
        if (i % 20 == 0) d.synchronize();
      }
    });
  for (std::thread& t : threads) t.join();
  for (int t = 0; t < 4; t++) EXPECT_EQ(numbers(fetch(cells[t].array))[63], 200.0 * t);
}

TEST(Program, CompileErrorsSayWhy) {
  Graph g = plus(f32({2}), false);
  const ops::Lower lower = [](ops::Call& c) -> ops::Results {
    return c.b.emit("stablehlo.no_such_operation", {c.tensor("self")}, c.tensor("self").type());
  };
  static const ops::Op broken{"broken", lower, {}, nullptr, false, {}};
  g.nodes[0].op = &broken;
  try {
    world().compile(g, {}, "broken on tensor<2xf32>");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("while compiling broken on tensor<2xf32>"), std::string::npos)
        << e.what();
  }
}

int64_t count(const char* name) { return counter(name).load(); }

TEST(Runtime, EqualModulesAreCompiledOnceAndKeptOnDisk) {
  Graph g = plus({DType::F64, {17}}, false);
  const int64_t compiles = count("compiles"), module_hits = count("module_hits"),
                stores = count("disk_stores");
  const auto p = compiled(g);
  EXPECT_EQ(count("compiles"), compiles + 1);
  EXPECT_EQ(count("disk_stores"), stores + 1);
  const auto again = compiled(g);
  EXPECT_EQ(count("compiles"), compiles + 1);
  EXPECT_EQ(count("module_hits"), module_hits + 1);
  EXPECT_EQ(again->executable, p->executable);
  EXPECT_GT(world().disk().usage().entries, 0);
}

TEST(Runtime, DevicesAreNumbered) {
  EXPECT_EQ(world().device_count(), 2);
  EXPECT_EQ(world().device(1).index(), 1);
  EXPECT_EQ(world().platform(), ops::Platform::Cpu);
  EXPECT_TRUE(Runtime::started());
  for (int index : {-1, 2}) {
    try {
      world().device(index);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code, Code::InvalidArgument);
      EXPECT_NE(std::string(e.what()).find("there are 2 tpu devices"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace tpu::runtime
