#include "core/pjrt/event.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

#include "core/base/error.h"
#include "core/fixture.h"

namespace tpu::pjrt {
namespace {

using testing::client;
using testing::module_text;
using testing::upload;

// A loop of `arg` rounds over a matrix product: long enough to be seen unfinished.
std::unique_ptr<Buffer> slow(int32_t rounds) {
  static const auto program =
      client()->compile(module_text("(%arg0: tensor<i32>, %arg1: tensor<128x128xf32>) -> tensor<128x128xf32>",
                                    R"(%0:2 = "stablehlo.while"(%arg0, %arg1) ({
                       ^bb0(%n: tensor<i32>, %x: tensor<128x128xf32>):
                         %z = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
                         %c = "stablehlo.compare"(%n, %z) {comparison_direction = #stablehlo<comparison_direction GT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
                         "stablehlo.return"(%c) : (tensor<i1>) -> ()
                     }, {
                       ^bb0(%n: tensor<i32>, %x: tensor<128x128xf32>):
                         %one = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
                         %m = "stablehlo.subtract"(%n, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
                         %y = "stablehlo.dot_general"(%x, %x) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
                         "stablehlo.return"(%m, %y) : (tensor<i32>, tensor<128x128xf32>) -> ()
                     }) : (tensor<i32>, tensor<128x128xf32>) -> (tensor<i32>, tensor<128x128xf32>)
                     "func.return"(%0#1) : (tensor<128x128xf32>) -> ())"),
                        {});
  const auto n = upload<int32_t>({rounds}, DType::S32, {});
  const auto x = upload(std::vector<float>(128 * 128, 1.0f / 128), DType::F32, {128, 128});
  Buffer* const in[] = {n.get(), x.get()};
  return std::move(program->execute(in, 0)[0]);
}

TEST(Event, AnEmptyOneHasFired) {
  const Event event;
  EXPECT_TRUE(event.is_ready());
  EXPECT_NO_THROW(event.wait());
  bool ran = false;
  event.on_ready([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(Event, FiresWhenTheWorkIsDone) {
  const auto out = slow(3000);
  const Event event = out->ready();
  EXPECT_FALSE(event.is_ready());
  event.wait();
  EXPECT_TRUE(event.is_ready());
  // The mean matrix is its own square.
  EXPECT_FLOAT_EQ(testing::download<float>(*out)[77], 1.0f / 128);
}

TEST(Event, HostAddressDoesNotWait) {
  const auto out = slow(3000);
  const void* address = out->host_address();
  EXPECT_FALSE(out->ready().is_ready());
  out->wait();
  EXPECT_EQ(out->host_address(), address);
}

TEST(Event, CallbackRunsOnceBeforeAndAfterFiring) {
  const auto out = slow(1000);
  std::atomic<int> calls{0};
  std::promise<void> called;
  {
    const Event event = out->ready();
    event.on_ready([&] {
      ++calls;
      called.set_value();
    });
  }  // the callback does not need the event to live on
  called.get_future().wait();
  out->ready().wait();
  EXPECT_EQ(calls, 1);
  std::promise<void> again;
  out->ready().on_ready([&] { again.set_value(); });
  again.get_future().wait();
}

TEST(Event, AThrowingCallbackStaysInside) {
  std::promise<void> called;
  upload<float>({1}, DType::F32, {})->ready().on_ready([&] {
    called.set_value();
    throw std::runtime_error("on purpose");
  });
  called.get_future().wait();
}

TEST(Event, MovesLeaveAFiredOneBehind) {
  Event event = upload<float>({1}, DType::F32, {})->ready();
  Event other = std::move(event);
  EXPECT_TRUE(event.is_ready());  // NOLINT: a moved-from event is an empty one
  other.wait();
  event = std::move(other);
  event.wait();
}

}  // namespace
}  // namespace tpu::pjrt
