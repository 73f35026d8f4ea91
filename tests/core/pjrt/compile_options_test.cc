#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "core/base/error.h"
#include "core/fixture.h"

namespace tpu::pjrt {
namespace {

using testing::client;
using testing::download;
using testing::module_text;
using testing::run;
using testing::upload;

const std::string kDouble =
    module_text("(%arg0: tensor<4xf32>) -> tensor<4xf32>",
                R"(%0 = "stablehlo.add"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
                                           "func.return"(%0) : (tensor<4xf32>) -> ())");

// One program over both devices; each device's part is launched by its own thread.
std::vector<std::vector<float>> run_on_both(const Executable& program, const std::vector<float>& first,
                                            const std::vector<float>& second) {
  std::vector<std::vector<float>> results(2);
  std::vector<std::thread> threads;
  for (int device : {0, 1})
    threads.emplace_back([&, device] {
      const auto& values = device ? second : first;
      const auto x = upload(values, DType::F32, {static_cast<int64_t>(values.size())}, device);
      results[device] = download<float>(*run(program, {x.get()}, device)[0]);
    });
  for (auto& thread : threads) thread.join();
  return results;
}

TEST(CompileOptions, TwoReplicasReduceTogether) {
  CompileOptions options;
  options.num_replicas = 2;
  options.portable = false;
  options.device_ids = {client()->device_id(0), client()->device_id(1)};
  const auto program = client()->compile(module_text("(%arg0: tensor<2xf32>) -> tensor<2xf32>",
                                                     R"(%0 = "stablehlo.all_reduce"(%arg0) ({
                       ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                         %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
                         "stablehlo.return"(%s) : (tensor<f32>) -> ()
                     }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xf32>) -> tensor<2xf32>
                     "func.return"(%0) : (tensor<2xf32>) -> ())"),
                                         options);
  const auto results = run_on_both(*program, {1, 2}, {10, 20});
  EXPECT_EQ(results[0], (std::vector<float>{11, 22}));
  EXPECT_EQ(results[1], (std::vector<float>{11, 22}));
}

TEST(CompileOptions, TwoPartitionsSplitTheWork) {
  CompileOptions options;
  options.num_partitions = 2;
  options.portable = false;
  options.device_ids = {client()->device_id(1), client()->device_id(0)};  // partition 0 is on device 1
  const auto program = client()->compile(
      R"(module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
        func.func public @main(%arg0: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> (tensor<4xf32> {mhlo.sharding = "{replicated}"}) {
          %0 = "stablehlo.add"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          "func.return"(%0) : (tensor<4xf32>) -> ()
        } })",
      options);
  const auto results = run_on_both(*program, {3, 4}, {1, 2});
  EXPECT_EQ(results[0], (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(results[1], (std::vector<float>{2, 4, 6, 8}));
}

TEST(CompileOptions, OverridesReachTheCompiler) {
  const std::string maximum =
      module_text("(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> tensor<2xf32>",
                  R"(%0 = "stablehlo.maximum"(%arg0, %arg1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
                                             "func.return"(%0) : (tensor<2xf32>) -> ())");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto a = upload<float>({nan, 1}, DType::F32, {2}), b = upload<float>({1, nan}, DType::F32, {2});
  const auto nans = [&](bool fast) {
    CompileOptions options;
    options.overrides = {{"xla_cpu_enable_fast_min_max", fast}};
    const auto out = download<float>(*run(*client()->compile(maximum, options), {a.get(), b.get()})[0]);
    return std::isnan(out[0]) + std::isnan(out[1]);
  };
  EXPECT_EQ(nans(false), 2);  // the maximum with NaN is NaN
  EXPECT_LT(nans(true), 2);
}

TEST(CompileOptions, OverridesOfEveryKind) {
  CompileOptions options;
  options.overrides = {{"xla_backend_optimization_level", int64_t{0}},
                       {"xla_gpu_auto_spmd_partitioning_memory_budget_ratio", 1.25f},
                       {"xla_dump_hlo_pass_re", "nothing"},
                       {"xla_cpu_enable_fast_math", false}};
  EXPECT_EQ(client()->compile(kDouble, options)->num_outputs(), 1);
}

TEST(CompileOptions, UnknownOverrideIsAnErrorNamingIt) {
  CompileOptions options;
  options.overrides = {{"xla_no_such_option", true}};
  try {
    client()->compile(kDouble, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("xla_no_such_option"), std::string::npos) << error.what();
  }
}

TEST(CompileOptions, WireFormat) {
  CompileOptions options;
  EXPECT_EQ(options.serialize(), std::string("\x1a\x04\x20\x01\x28\x01\x20\x01", 8));
  options.portable = false;
  options.num_replicas = 2;
  options.device_ids = {0, 300};  // 300 is ac 02
  EXPECT_EQ(options.serialize(),
            std::string("\x1a\x11\x20\x02\x28\x01\x4a\x0b\x08\x02\x10\x01\x1a\x05\x08\x00\x08\xac\x02", 19));
  options.device_ids = {0, 1, 2};
  EXPECT_THROW(options.serialize(), Error);
  options.portable = true;
  EXPECT_THROW(options.serialize(), Error);
}

}  // namespace
}  // namespace tpu::pjrt
