#include "core/pjrt/buffer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "core/base/error.h"
#include "core/fixture.h"

namespace tpu::pjrt {
namespace {

using testing::client;
using testing::download;
using testing::upload;

class EveryType : public ::testing::TestWithParam<int> {
 protected:
  DType dtype() const { return static_cast<DType>(GetParam()); }
};

// Bytes that are a valid value of every type: 0 and 1 alternate, so bool stays bool.
std::vector<char> pattern(int64_t bytes) {
  std::vector<char> out(bytes);
  for (int64_t i = 0; i < bytes; ++i) out[i] = static_cast<char>((i * 7 / 3) % 2);
  return out;
}

TEST_P(EveryType, ComesBackAsItWent) {
  for (const Dims& dims :
       {Dims{}, Dims{0}, Dims{5}, Dims{2, 3, 4}, Dims{3, 0, 2}, Dims{1, 1, 1, 1, 1, 1, 7}}) {
    const int64_t count = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    const auto sent = pattern(count * size_of(dtype()));
    const auto buffer = client()->upload(sent.empty() ? nullptr : sent.data(), dtype(), dims, 0);
    EXPECT_EQ(buffer->dtype(), dtype());
    EXPECT_EQ(buffer->dims(), dims);
    EXPECT_EQ(buffer->elements(), count);
    EXPECT_EQ(buffer->bytes(), count * size_of(dtype()));
    EXPECT_EQ(download<char>(*buffer), sent) << name(dtype()) << " with " << dims.size() << " dimensions";
  }
}

INSTANTIATE_TEST_SUITE_P(Buffer, EveryType, ::testing::Range(0, static_cast<int>(DType::F8E5M2) + 1));

TEST(Buffer, CopyNowLeavesTheSourceToTheCaller) {
  std::vector<float> values(1 << 18, 1.0f);
  const auto buffer = upload(values, DType::F32, {1 << 18});
  std::fill(values.begin(), values.end(), 2.0f);
  EXPECT_EQ(download<float>(*buffer), std::vector<float>(1 << 18, 1.0f));
}

struct Counted {
  std::atomic<int> released{0};
  static void release(void* self) { ++static_cast<Counted*>(self)->released; }
};

void expect_released(const Counted& counted) {
  for (int i = 0; i < 2000 && counted.released == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(counted.released, 1);
}

TEST(Buffer, ZeroCopyReleasesOnceTheBufferIsGone) {
  alignas(64) static float values[1024];
  std::iota(values, values + 1024, 0.0f);
  Counted counted;
  auto buffer =
      client()->upload(values, DType::F32, Dims{1024}, 0, HostUse::ZeroCopy, Counted::release, &counted);
  EXPECT_EQ(download<float>(*buffer), std::vector<float>(values, values + 1024));
  if (buffer->host_address() == values) {
    EXPECT_EQ(counted.released, 0);  // aliased, so still needed
  }
  buffer.reset();
  expect_released(counted);
}

TEST(Buffer, ZeroCopyOfUnalignedDataWorks) {
  std::vector<char> storage(4 * 100 + 64);
  char* odd = storage.data() + 4 - reinterpret_cast<uintptr_t>(storage.data()) % 4;
  if (reinterpret_cast<uintptr_t>(odd) % 64 == 0) odd += 4;
  std::vector<float> values(100, 1.5f);
  std::memcpy(odd, values.data(), 400);
  Counted counted;
  auto buffer =
      client()->upload(odd, DType::F32, Dims{100}, 0, HostUse::ZeroCopy, Counted::release, &counted);
  EXPECT_EQ(download<float>(*buffer), values);
  buffer.reset();
  expect_released(counted);
}

TEST(Buffer, ReleaseRunsAlsoForACopyAndForAFailure) {
  const float value = 1;
  Counted copied, failed;
  const auto buffer =
      client()->upload(&value, DType::F32, {}, 0, HostUse::CopyNow, Counted::release, &copied);
  EXPECT_EQ(copied.released, 1);
  EXPECT_THROW(client()->upload(&value, DType::F32, {}, 9, HostUse::ZeroCopy, Counted::release, &failed),
               Error);
  EXPECT_EQ(failed.released, 1);
}

TEST(Buffer, HostAddressHoldsTheRowMajorValues) {
  const std::vector<int32_t> values{1, 2, 3, 4, 5, 6};
  const auto buffer = upload(values, DType::S32, {2, 3});
  buffer->wait();
  const auto* address = static_cast<const int32_t*>(buffer->host_address());
  ASSERT_NE(address, nullptr);
  EXPECT_EQ(std::vector<int32_t>(address, address + 6), values);
}

TEST(Buffer, CopyToAnotherDevice) {
  const std::vector<int64_t> values{-1, 0, 1LL << 40};
  auto buffer = upload(values, DType::S64, {3});
  const auto copy = buffer->copy_to(1);
  buffer.reset();  // the copy does not depend on its source
  EXPECT_EQ(copy->device(), 1);
  EXPECT_EQ(copy->dtype(), DType::S64);
  EXPECT_EQ(copy->dims(), Dims{3});
  EXPECT_EQ(download<int64_t>(*copy), values);
  EXPECT_THROW(copy->copy_to(5), Error);
}

TEST(Buffer, CopyToItsOwnDevice) {
  const std::vector<int64_t> values{4, 5};
  const auto buffer = upload(values, DType::S64, {2});
  const auto copy = buffer->copy_to(0);
  EXPECT_EQ(copy->device(), 0);
  EXPECT_EQ(download<int64_t>(*copy), values);
}

}  // namespace
}  // namespace tpu::pjrt
