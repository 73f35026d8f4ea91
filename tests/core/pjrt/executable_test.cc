#include "core/pjrt/executable.h"

#include <gtest/gtest.h>

#include <atomic>
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
const std::vector<float> kOneToFour{1, 2, 3, 4}, kTwoToEight{2, 4, 6, 8};

TEST(Executable, Adds) {
  const auto program = client()->compile(kDouble, {});
  EXPECT_EQ(program->num_outputs(), 1);
  const auto x = upload(kOneToFour, DType::F32, {4});
  const auto out = run(*program, {x.get()});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0]->dtype(), DType::F32);
  EXPECT_EQ(out[0]->dims(), Dims{4});
  EXPECT_EQ(out[0]->device(), 0);
  EXPECT_EQ(download<float>(*out[0]), kTwoToEight);
  EXPECT_EQ(download<float>(*x), kOneToFour);
}

TEST(Executable, PortableRunsOnTheSecondDevice) {
  const auto program = client()->compile(kDouble, {});
  const auto x = upload(kOneToFour, DType::F32, {4}, 1);
  const auto out = run(*program, {x.get()}, 1);
  EXPECT_EQ(out[0]->device(), 1);
  EXPECT_EQ(download<float>(*out[0]), kTwoToEight);
}

TEST(Executable, AssignedRunsOnTheDeviceOfItsAssignment) {
  CompileOptions options;
  options.portable = false;
  options.device_ids = {client()->device_id(1)};
  const auto program = client()->compile(kDouble, options);
  const auto x = upload(kOneToFour, DType::F32, {4}, 1);
  EXPECT_EQ(download<float>(*run(*program, {x.get()}, 1)[0]), kTwoToEight);
}

TEST(Executable, ArgumentOnAnotherDeviceIsAnError) {
  const auto program = client()->compile(kDouble, {});
  const auto x = upload(kOneToFour, DType::F32, {4}, 1);
  EXPECT_THROW(run(*program, {x.get()}, 0), Error);
}

TEST(Executable, WrongNumberOfArgumentsIsAnError) {
  const auto program = client()->compile(kDouble, {});
  const auto x = upload(kOneToFour, DType::F32, {4});
  EXPECT_THROW(run(*program, {}), Error);
  EXPECT_THROW(run(*program, {x.get(), x.get()}), Error);
}

TEST(Executable, SeveralOutputsOfDifferentShapes) {
  const auto program = client()->compile(
      module_text(
          "(%arg0: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<i32>, tensor<2x3xi1>, tensor<0x5xbf16>)",
          R"(%0 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
                     %1 = "stablehlo.constant"() {value = dense<7> : tensor<i32>} : () -> tensor<i32>
                     %2 = "stablehlo.compare"(%arg0, %arg0) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
                     %3 = "stablehlo.constant"() {value = dense<> : tensor<0x5xbf16>} : () -> tensor<0x5xbf16>
                     "func.return"(%0, %1, %2, %3) : (tensor<3x2xf32>, tensor<i32>, tensor<2x3xi1>, tensor<0x5xbf16>) -> ())"),
      {});
  const auto x = upload<float>({1, 2, 3, 4, 5, 6}, DType::F32, {2, 3});
  const auto out = run(*program, {x.get()});
  ASSERT_EQ(out.size(), 4u);
  const std::vector<float> transposed{1, 4, 2, 5, 3, 6};
  EXPECT_EQ(out[0]->dims(), (Dims{3, 2}));
  EXPECT_EQ(download<float>(*out[0]), transposed);
  const auto* address = static_cast<const float*>(out[0]->host_address());
  EXPECT_EQ(std::vector<float>(address, address + 6), transposed);
  EXPECT_EQ(out[1]->dtype(), DType::S32);
  EXPECT_EQ(out[1]->dims(), Dims{});
  EXPECT_EQ(download<int32_t>(*out[1]), std::vector<int32_t>{7});
  EXPECT_EQ(out[2]->dtype(), DType::Bool);
  EXPECT_EQ(download<char>(*out[2]), std::vector<char>(6, 1));
  EXPECT_EQ(out[3]->dtype(), DType::BF16);
  EXPECT_EQ(out[3]->dims(), (Dims{0, 5}));
  EXPECT_EQ(out[3]->bytes(), 0);
  EXPECT_NO_THROW(out[3]->download(nullptr));
}

TEST(Executable, MoreArgumentsAndOutputsThanFitOnTheStack) {
  constexpr int kMany = 100;
  std::string arguments, results, values;
  for (int i = 0; i < kMany; ++i) {
    const std::string comma = i ? ", " : "";
    arguments += comma + "%arg" + std::to_string(i) + ": tensor<f32>";
    values += comma + "%arg" + std::to_string(kMany - 1 - i);
    results += comma + "tensor<f32>";
  }
  const auto program =
      client()->compile(module_text("(" + arguments + ") -> (" + results + ")",
                                    "\"func.return\"(" + values + ") : (" + results + ") -> ()"),
                        {});
  std::vector<std::unique_ptr<Buffer>> held;
  std::vector<Buffer*> in;
  for (int i = 0; i < kMany; ++i) {
    held.push_back(upload<float>({static_cast<float>(i)}, DType::F32, {}));
    in.push_back(held.back().get());
  }
  const auto out = run(*program, in);
  ASSERT_EQ(out.size(), static_cast<size_t>(kMany));
  for (int i = 0; i < kMany; ++i) EXPECT_EQ(download<float>(*out[i])[0], kMany - 1 - i);
}

TEST(Executable, CompileErrorCarriesTheCompilersText) {
  const std::string mismatch =
      module_text("(%arg0: tensor<4xf32>) -> tensor<5xf32>",
                  R"(%0 = "stablehlo.add"(%arg0, %arg0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<5xf32>
                                              "func.return"(%0) : (tensor<5xf32>) -> ())");
  for (const auto& [program, part] : {std::pair{mismatch, "requires the same shape"},
                                      {"module @m {}", "`main`"},
                                      {"no program at all", "error"}}) {
    try {
      client()->compile(program, {});
      FAIL() << program;
    } catch (const Error& error) {
      EXPECT_EQ(error.op, "compile");
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

// Adds 1 to an argument that the program may overwrite.
const std::string kIncrement = module_text(
    "(%arg0: tensor<4096xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4096xf32>",
    R"(%0 = "stablehlo.constant"() {value = dense<1.0> : tensor<4096xf32>} : () -> tensor<4096xf32>
                                              %1 = "stablehlo.add"(%arg0, %0) : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
                                              "func.return"(%1) : (tensor<4096xf32>) -> ())");

TEST(Executable, DonationUpdatesInPlace) {
  const auto program = client()->compile(kIncrement, {});
  auto x = run(*program, {upload(std::vector<float>(4096, 1), DType::F32, {4096}).get()})[0].release();
  std::unique_ptr<Buffer> source(x);
  source->wait();
  const void* place = source->host_address();
  const auto out = run(*program, {source.get()});
  out[0]->wait();
  EXPECT_EQ(out[0]->host_address(), place);
  EXPECT_EQ(download<float>(*out[0]), std::vector<float>(4096, 3));
  EXPECT_THROW(source->wait(), Error);  // given away
}

TEST(Executable, KeepProtectsAnArgumentFromDonation) {
  const auto program = client()->compile(kIncrement, {});
  const auto x = upload(std::vector<float>(4096, 1), DType::F32, {4096});
  Buffer* const in[] = {x.get()};
  const int64_t keep[] = {0};
  std::vector<std::unique_ptr<Buffer>> out;
  program->execute(in, 0, keep, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_NE(out[0]->host_address(), x->host_address());
  EXPECT_EQ(download<float>(*x), std::vector<float>(4096, 1));
  EXPECT_EQ(download<float>(*out[0]), std::vector<float>(4096, 2));
  program->execute(in, 0, keep, out);  // the vector is cleared, not appended to
  EXPECT_EQ(out.size(), 1u);
}

TEST(Executable, DonatingABufferThatIsZeroCopyLeavesHostMemoryAlone) {
  const auto program = client()->compile(kIncrement, {});
  alignas(64) static float values[4096];
  std::fill(values, values + 4096, 1.0f);
  const auto x = client()->upload(values, DType::F32, Dims{4096}, 0, HostUse::ZeroCopy);
  const auto out = run(*program, {x.get()});
  EXPECT_EQ(download<float>(*out[0]), std::vector<float>(4096, 2));
  EXPECT_EQ(values[0], 1.0f);
}

TEST(Executable, SerializedLoadsAgain) {
  const std::string bytes = client()->compile(kDouble, {})->compiled().serialize();
  EXPECT_GT(bytes.size(), 100u);
  const auto program = client()->deserialize(bytes);
  EXPECT_EQ(program->num_outputs(), 1);
  for (int device : {0, 1}) {  // still portable
    const auto x = upload(kOneToFour, DType::F32, {4}, device);
    EXPECT_EQ(download<float>(*run(*program, {x.get()}, device)[0]), kTwoToEight);
  }
  EXPECT_EQ(client()->deserialize(program->compiled().serialize())->num_outputs(), 1);
}

TEST(Executable, ForeignBytesAreAnError) {
  const std::string good = client()->compile(kDouble, {})->compiled().serialize();
  for (const std::string& bytes :
       {std::string(), std::string("garbage"), std::string(4096, '\xff'), good.substr(0, good.size() / 2)})
    EXPECT_THROW(client()->deserialize(bytes), Error) << bytes.size() << " bytes";
}

TEST(Executable, StatisticsAndFingerprint) {
  const auto program = client()->compile(kDouble, {});
  const auto stats = program->compiled().stats();
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->argument_bytes, 16);
  EXPECT_EQ(stats->output_bytes, 16);
  EXPECT_EQ(stats->alias_bytes, 0);
  EXPECT_EQ(client()->compile(kIncrement, {})->compiled().stats()->alias_bytes, 4096 * 4);
  EXPECT_EQ(program->compiled().fingerprint(), client()->compile(kDouble, {})->compiled().fingerprint());
}

TEST(Executable, ProgramsOutliveEachOthersBuffers) {
  auto program = client()->compile(kDouble, {});
  auto x = upload(kOneToFour, DType::F32, {4});
  const auto out = run(*program, {x.get()});
  program.reset();
  x.reset();
  EXPECT_EQ(download<float>(*out[0]), kTwoToEight);
}

TEST(Executable, RunsFromManyThreads) {
  const auto program = client()->compile(kDouble, {});
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto x = upload(std::vector<float>(4, t + i), DType::F32, {4}, t % 2);
        right += download<float>(*run(*program, {x.get()}, t % 2)[0]) == std::vector<float>(4, 2 * (t + i));
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

TEST(Executable, AnArrayLargerThanMemoryIsOutOfMemory) {
  const auto program = client()->compile(
      module_text(
          "(%arg0: tensor<f32>) -> tensor<1099511627776xf32>",
          R"(%0 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1099511627776xf32>
                     "func.return"(%0) : (tensor<1099511627776xf32>) -> ())"),
      {});
  const auto x = upload<float>({1}, DType::F32, {});
  try {
    run(*program, {x.get()})[0]->wait();
    FAIL() << "4 TB were found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Code::OutOfMemory) << error.what();
  }
}

}  // namespace
}  // namespace tpu::pjrt
