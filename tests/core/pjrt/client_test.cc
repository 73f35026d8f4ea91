#include "core/pjrt/client.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/base/error.h"
#include "core/fixture.h"

namespace tpu::pjrt {
namespace {

using testing::client;

TEST(Client, HasTheDevicesAskedFor) {
  EXPECT_EQ(client()->platform_name(), "cpu");
  EXPECT_TRUE(client()->host_memory());
  EXPECT_FALSE(client()->platform_version().empty());
  ASSERT_EQ(client()->device_count(), 2);
  EXPECT_NE(client()->device(0), client()->device(1));
  EXPECT_NE(client()->device_id(0), client()->device_id(1));
  EXPECT_FALSE(client()->device_kind(0).empty());
  EXPECT_NE(client()->device_description(0), client()->device_description(1));
}

TEST(Client, DeviceIndexIsChecked) {
  for (int index : {-1, 2}) {
    try {
      client()->device(index);
      FAIL() << index;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Code::InvalidArgument);
      EXPECT_EQ(std::string(error.what()),
                "there is no device " + std::to_string(index) + ": this process has 2 device(s)");
    }
  }
}

TEST(Client, FailureSaysWhatTheDeviceSaidAndWhatToDo) {
  try {
    Client::create(Plugin::load(PLUGIN_FAILING));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Code::Unavailable);
    const std::string text = error.what();
    EXPECT_NE(text.find("in use by process 4711"), std::string::npos) << text;
    EXPECT_NE(text.find(PLUGIN_FAILING), std::string::npos) << text;
    EXPECT_NE(text.find("TORCH_TPU_PLATFORM"), std::string::npos) << text;
  }
}

TEST(Client, ASecondOneMayComeAndGo) {
  auto other = Client::create(testing::plugin(), {{"cpu_device_count", int64_t{1}}});
  EXPECT_EQ(other->device_count(), 1);
  const float value = 3;
  auto buffer = other->upload(&value, DType::F32, {}, 0);
  std::weak_ptr<Client> watch = other;
  other.reset();
  EXPECT_FALSE(watch.expired());  // the buffer keeps its client
  float back = 0;
  buffer->download(&back);
  EXPECT_EQ(back, 3);
  buffer.reset();
  EXPECT_TRUE(watch.expired());
}

// In a process of its own: statics that exist before the plugin is loaded die after the plugin's own.
TEST(ClientDeathTest, StaticsMayOutliveThePluginAtExit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static std::shared_ptr<Client> kept;
        static std::unique_ptr<Buffer> buffer;
        kept = Client::create(testing::plugin());
        const float value = 1;
        buffer = kept->upload(&value, DType::F32, {}, 0);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Client, MemoryStatisticsGrowWithBuffersWhereKept) {
  const auto before = client()->memory_stats(0);
  if (!before) {
    EXPECT_FALSE(client()->memory_stats(1));  // none for any device then
    return;
  }
  const auto held = testing::upload<char>(std::vector<char>(1 << 20), DType::S8, {1 << 20});
  held->wait();
  EXPECT_GE(client()->memory_stats(0)->bytes_in_use, before->bytes_in_use + (1 << 20));
}

TEST(Client, ElementTypesMapBothWays) {
  for (int i = 0; i <= static_cast<int>(DType::F8E5M2); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(from_pjrt(to_pjrt(dtype)), dtype) << name(dtype);
  }
  EXPECT_EQ(to_pjrt(DType::Bool), PJRT_Buffer_Type_PRED);
  EXPECT_EQ(to_pjrt(DType::BF16), PJRT_Buffer_Type_BF16);
  EXPECT_EQ(to_pjrt(DType::F32), PJRT_Buffer_Type_F32);
  EXPECT_EQ(to_pjrt(DType::C64), PJRT_Buffer_Type_C64);
  try {
    from_pjrt(PJRT_Buffer_Type_S4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Code::Unimplemented);
  }
}

}  // namespace
}  // namespace tpu::pjrt
