#include "core/pjrt/topology.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/base/error.h"
#include "core/fixture.h"

namespace tpu::pjrt {
namespace {

using testing::module_text;

TEST(Topology, APluginWithoutTopologiesSaysSo) {
  try {
    Topology::create(testing::plugin(), "v6e:2x2x1");
    FAIL() << "XLA's CPU plugin has topologies now";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Code::Unimplemented);
    EXPECT_NE(std::string(error.what()).find("not supported"), std::string::npos) << error.what();
  }
}

/// libtpu compiles without a TPU. ctest names it where its package is installed.
class Libtpu : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("TPU_LIBRARY_PATH");
    if (!path || !*path) GTEST_SKIP() << "libtpu is not installed";
    // It would wait for a metadata server, and take the lock of the machine's TPU.
    setenv("TPU_SKIP_MDS_QUERY", "1", 0);
    setenv("TPU_ACCELERATOR_TYPE", "v6e-4", 0);
    setenv("TPU_WORKER_HOSTNAMES", "localhost", 0);
    setenv("TPU_LOG_DIR", "disabled", 0);
    setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 0);
    plugin_ = Plugin::load(path);
  }
  std::unique_ptr<Topology> topology(const std::string& name) { return Topology::create(plugin_, name); }

  std::shared_ptr<Plugin> plugin_;
};

// 1024 x 1024 floats, doubled in place.
const std::string kDouble = module_text(
    "(%arg0: tensor<1024x1024xf32> {tf.aliasing_output = 0 : i32}) -> tensor<1024x1024xf32>",
    R"(%0 = "stablehlo.add"(%arg0, %arg0) : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
       "func.return"(%0) : (tensor<1024x1024xf32>) -> ())");

TEST_F(Libtpu, DescribesItsDevices) {
  const auto slice = topology("v6e:2x2x1");
  EXPECT_EQ(slice->platform_name(), "tpu");
  EXPECT_FALSE(slice->platform_version().empty());
  EXPECT_GT(std::get<int64_t>(slice->attributes().at("device_memory_bytes_limit")), int64_t{30} << 30);
  ASSERT_EQ(slice->device_count(), 4);
  EXPECT_EQ(slice->device_kind(3), "TPU v6 lite");
  EXPECT_NE(slice->device_id(0), slice->device_id(3));
  EXPECT_EQ(std::get<std::vector<int64_t>>(slice->device_attributes(3).at("coords")),
            (std::vector<int64_t>{1, 1, 0}));
  EXPECT_THROW(slice->device_kind(4), Error);
  EXPECT_EQ(topology("tpu7x:1x1x1")->device_count(), 2);
}

TEST_F(Libtpu, CompilesAndTellsWhatItCosts) {
  const Compiled program = topology("v6e:1x1x1")->compile(kDouble, {});
  const int64_t bytes = 1024 * 1024 * 4;
  ASSERT_TRUE(program.stats());
  EXPECT_EQ(program.stats()->argument_bytes, bytes);
  EXPECT_EQ(program.stats()->output_bytes, bytes);
  EXPECT_EQ(program.stats()->alias_bytes, bytes);
  EXPECT_GE(program.stats()->peak_bytes, bytes);
  EXPECT_GT(program.stats()->code_bytes, 0);
  EXPECT_EQ(program.cost().at("flops"), 1024 * 1024);
  EXPECT_EQ(program.cost().at("bytes accessed"), 2.0 * bytes + bytes);
  EXPECT_EQ(program.num_outputs(), 1);
  EXPECT_GT(program.serialize().size(), 1000u);
}

TEST_F(Libtpu, AProgramOfAllDevices) {
  const auto slice = topology("v5e:2x2");
  CompileOptions options;
  options.num_replicas = 4, options.portable = false;
  for (int i = 0; i < 4; i++) options.device_ids.push_back(slice->device_id(i));
  const std::string sum = module_text("(%arg0: tensor<8xf32>) -> tensor<8xf32>",
                                      R"(%0 = "stablehlo.all_reduce"(%arg0) ({
           ^bb0(%a: tensor<f32>, %b: tensor<f32>):
           %1 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
           "stablehlo.return"(%1) : (tensor<f32>) -> ()
         }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<8xf32>) -> tensor<8xf32>
         "func.return"(%0) : (tensor<8xf32>) -> ())");
  EXPECT_GE(slice->compile(sum, options).stats()->argument_bytes, 8 * 4);  // padded
}

TEST_F(Libtpu, AnUnknownNameIsAnError) {
  for (const char* name : {"v6e", "v99:1x1x1", "v6e:3x5x1"}) EXPECT_THROW(topology(name), Error) << name;
}

TEST_F(Libtpu, TheCompilersTextIsInTheError) {
  const auto slice = topology("v6e:1x1x1");
  try {
    slice->compile(module_text("(%arg0: tensor<4xf32>) -> tensor<4xf32>",
                               R"(%0 = "stablehlo.no_such_operation"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
                                  "func.return"(%0) : (tensor<4xf32>) -> ())"),
                   {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no_such_operation"), std::string::npos) << error.what();
  }
  EXPECT_EQ(slice->compile(kDouble, {}).num_outputs(), 1) << "a refusal spoils what comes after it";
}

TEST_F(Libtpu, AProgramThatDoesNotFitIsOutOfMemory) {
  try {
    topology("v5e:1x1x1")
        ->compile(
            module_text(
                "(%arg0: tensor<1048576x16384xf32>) -> tensor<1048576x16384xf32>",
                R"(%0 = "stablehlo.exponential"(%arg0) : (tensor<1048576x16384xf32>) -> tensor<1048576x16384xf32>
                                 "func.return"(%0) : (tensor<1048576x16384xf32>) -> ())"),
            {});
    FAIL() << "128 GB fit into 16";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Code::OutOfMemory) << error.what();
  }
}

}  // namespace
}  // namespace tpu::pjrt
