#include "core/base/log.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/base/error.h"

namespace tpu {
namespace {

TEST(Counters, StartAtZeroAndKeepTheirPlace) {
  std::atomic<int64_t>& first = counter("test.counters.place");
  EXPECT_EQ(first, 0);
  first += 3;
  for (int i = 0; i < 100; ++i) counter("test.counters.other" + std::to_string(i));
  EXPECT_EQ(&counter("test.counters.place"), &first);
  EXPECT_EQ(counters().at("test.counters.place"), 3);
}

TEST(Counters, CountFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) ++counter("test.counters.threads");
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counters().at("test.counters.threads"), 4000);
}

TEST(Log, NoticeGoesToStderrWithOurName) {
  ::testing::internal::CaptureStderr();
  notice("a device was found");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "[torch_tpu] a device was found\n");
}

TEST(Error, TextNamesTheOperator) {
  const Error named(Code::Value, "add", text("shapes ", 2, " and ", 3, " differ"));
  EXPECT_STREQ(named.what(), "add: shapes 2 and 3 differ");
  EXPECT_EQ(named.op, "add");
  EXPECT_EQ(named.code, Code::Value);
  EXPECT_STREQ(Error(Code::Value, "", "no operator").what(), "no operator");
}

}  // namespace
}  // namespace tpu
