#include "core/runtime/device.h"

#include <functional>
#include <set>
#include <thread>

#include "core/runtime/world.h"

namespace tpu::runtime {
namespace {

using namespace tpu::testing;
using hlo::Type;

// A device of its own over the shared client: its counters start at zero.
struct Fresh {
  Device device{world().client().shared_from_this(), 0};
  ArrayPtr upload(int64_t floats) {
    const std::vector<float> data(static_cast<size_t>(floats), 1.0f);
    return device.upload(data.data(), {DType::F32, {floats}});
  }
};

TEST(Device, CountsItsMemory) {
  Fresh f;
  ArrayPtr a = f.upload(10), b = f.upload(100);
  MemoryUse m = f.device.memory();
  EXPECT_EQ(m.allocated, 440);
  EXPECT_EQ(m.live, 2);
  ArrayPtr same = a;
  a.reset();
  EXPECT_EQ(f.device.memory().allocated, 440);
  same.reset();
  m = f.device.memory();
  EXPECT_EQ(m.allocated, 400);
  EXPECT_EQ(m.peak, 440);
  EXPECT_EQ(m.live, 1);
  EXPECT_EQ(m.peak_live, 2);
  EXPECT_EQ(m.allocations, 2);
  EXPECT_EQ(m.frees, 1);
  EXPECT_EQ(m.total_allocated, 440);
  EXPECT_EQ(m.total_freed, 40);
  f.device.reset_peak();
  EXPECT_EQ(f.device.memory().peak, 400);
  EXPECT_EQ(f.device.memory().peak_live, 1);
  f.device.reset_accumulated();
  m = f.device.memory();
  EXPECT_EQ(m.allocations + m.frees + m.total_allocated + m.total_freed, 0);
  EXPECT_EQ(m.allocated, 400);
}

TEST(Device, PeakOfManyThreads) {
  Fresh f;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; i++) f.upload(10);
    });
  for (std::thread& t : threads) t.join();
  const MemoryUse m = f.device.memory();
  EXPECT_EQ(m.allocated, 0);
  EXPECT_EQ(m.live, 0);
  EXPECT_EQ(m.allocations, 400);
  EXPECT_GE(m.peak, 40);
  EXPECT_LE(m.peak, 160);
}

TEST(Device, ScalarsAreCachedByTypeAndBits) {
  Fresh f;
  const ArrayPtr one = f.device.scalar({1, 0}, DType::S32);
  EXPECT_EQ(f.device.scalar({1, 0}, DType::S32), one);
  EXPECT_NE(f.device.scalar({1, 0}, DType::S64), one);
  expect_array(fetch(one), DType::S32, {}, {1});
  expect_array(fetch(f.device.scalar({0x3FF0000000000000, 0x4000000000000000}, DType::C128)), DType::C128, {},
               {{1, 2}});
}

TEST(Device, TheScalarCacheIsBounded) {
  Fresh f;
  for (uint64_t i = 0; i < 5000; i++)
    expect_numbers(fetch(f.device.scalar({i, 0}, DType::S64)), {static_cast<double>(i)});
  EXPECT_LE(f.device.memory().live, 512);
  EXPECT_GT(f.device.memory().live, 200);  // numbers in a row spread over it
}

TEST(Device, WhatHasFinishedIsNotInFlight) {
  Fresh f;
  ArrayPtr a = f.upload(10);
  f.device.launched(a->buffer().ready(), nullptr, nullptr);
  f.device.launched(pjrt::Event(), nullptr, nullptr);  // a launch without results
  f.device.synchronize();
  EXPECT_TRUE(f.device.in_flight().empty());
  std::weak_ptr<Array> watch = a;
  f.device.launched(a->buffer().ready(), nullptr, nullptr);
  a.reset();
  EXPECT_TRUE(watch.expired());  // being in flight keeps nothing alive
  EXPECT_EQ(f.device.memory().allocated, 0);
  f.device.synchronize();
}

// A chain of matrix products, which takes long enough to be seen on its way.
struct Slow {
  Type type{DType::F32, {256, 256}};
  std::shared_ptr<pjrt::Executable> program;
  Slow() {
    hlo::Builder b;
    hlo::Value x = b.parameter(type);
    for (int i = 0; i < 20; i++) x = dot_general(x, x, {}, {}, {1}, {0}) * (1.0 / 256);
    program = world().client().compile(b.finish({x}), {});
  }
  ArrayPtr input(Device& device) const {
    const std::vector<float> ones(256 * 256, 1.0f);
    return device.upload(ones.data(), type);
  }
  ArrayPtr launch(const ArrayPtr& in, Device& device) const {
    auto result = std::make_shared<Array>(std::move(run(*program, {&in->buffer()})[0]), device);
    device.launched(result->buffer().ready(), nullptr, nullptr);
    return result;
  }
};

TEST(Device, SynchronizeWaitsForWhatWasLaunched) {
  Fresh f;
  const Slow slow;
  const ArrayPtr in = slow.input(f.device);
  std::vector<ArrayPtr> results;
  for (int i = 0; i < 3; i++) results.push_back(slow.launch(in, f.device));
  f.device.synchronize();
  EXPECT_TRUE(f.device.in_flight().empty());
  for (const ArrayPtr& r : results) EXPECT_TRUE(r->buffer().ready().is_ready());
  EXPECT_EQ(numbers(fetch(results[2]))[0], 1.0);
}

TEST(Device, SynchronizeWaitsForResultsThatNobodyWants) {
  Fresh f;
  const Slow slow;
  const ArrayPtr in = slow.input(f.device);
  std::vector<pjrt::Event> done;
  for (int i = 0; i < 3; i++) done.push_back(slow.launch(in, f.device)->buffer().ready());
  f.device.synchronize();
  for (const pjrt::Event& e : done) EXPECT_TRUE(e.is_ready());
}

TEST(Device, TheHostIsHeldBackByLaunchesThatAreNotDone) {
  Fresh f;
  const Slow slow;
  const ArrayPtr in = slow.input(f.device);
  const pjrt::Event first = slow.launch(in, f.device)->buffer().ready();
  for (int i = 0; i < 255; i++) f.device.launched(pjrt::Event(), nullptr, nullptr);
  f.device.launched(pjrt::Event(), nullptr, nullptr);  // takes the first launch's place
  EXPECT_TRUE(first.is_ready());
}

TEST(Device, AnArrayThatFitsNowhereIsOutOfMemory) {
  Fresh f;
  const auto [free, total] = f.device.free_and_total();
  EXPECT_GT(free, 0);
  EXPECT_LE(free, total);
  EXPECT_NO_THROW(f.device.need(1 << 20));
  for (const auto& ask :
       std::vector<std::function<void()>>{[&] { f.device.need(int64_t{1} << 48); },
                                          [&] {
                                            Cell cell{0, {DType::F32, {int64_t{1} << 46}}, nullptr};
                                            cell.materialize();
                                          }}) {
    try {
      ask();
      FAIL() << "256 TiB were found";
    } catch (const Error& e) {
      EXPECT_EQ(e.code, Code::OutOfMemory);
      EXPECT_NE(std::string(e.what()).find("tried to allocate 262144.00 GiB (281474976710656 bytes)"),
                std::string::npos)
          << e.what();
      EXPECT_NE(std::string(e.what()).find("bytes) are free"), std::string::npos) << e.what();
    }
  }
}

TEST(Cell, MaterializesToZerosOnce) {
  for (DType t : {DType::F32, DType::Bool, DType::C128}) {
    Cell c{1, {t, {2, 3}}, nullptr};
    const ArrayPtr first = c.materialize();
    EXPECT_EQ(c.materialize(), first);
    EXPECT_EQ(first->buffer().device(), 1);
    expect_array(fetch(first), t, {2, 3}, Numbers(6, 0.0));
  }
  Cell empty{0, {DType::F32, {0, 3}}, nullptr};
  expect_array(fetch(empty.materialize()), DType::F32, {0, 3}, {});
}

TEST(Generator, AdvancesAndRestores) {
  Generator g;
  EXPECT_EQ(g.state().seed, Generator::kDefaultSeed);
  g.set_state({7, 100});
  EXPECT_EQ(g.advance(5).offset, 100u);
  EXPECT_EQ(g.advance(int64_t{1} << 40).offset, 105u);
  EXPECT_EQ(g.state().offset, 105u + (uint64_t{1} << 40));
  EXPECT_EQ(g.state().seed, 7u);
}

TEST(Generator, ThreadsGetDisjointNumbers) {
  Generator g;
  std::vector<std::vector<uint64_t>> got(4);
  std::vector<std::thread> threads;
  for (auto& mine : got)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; i++) mine.push_back(g.advance(3).offset);
    });
  for (std::thread& t : threads) t.join();
  std::set<uint64_t> all;
  for (const auto& mine : got) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 2000u);
  EXPECT_EQ(g.state().offset, 6000u);
}

}  // namespace
}  // namespace tpu::runtime
