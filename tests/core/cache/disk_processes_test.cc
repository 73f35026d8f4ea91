// Many processes on one folder, and processes that are killed while they write.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "core/cache/disk.h"
#include "folder.h"

namespace tpu::cache {
namespace {

using testing::finish;
using testing::Folder;
using testing::start;
namespace fs = std::filesystem;

constexpr int64_t kPlenty = 1 << 30;

// Bytes that tell of which key they are, and of what size they should be.
std::string program(const std::string& key, size_t size) {
  std::string bytes = key + ' ' + std::to_string(size) + ' ';
  while (bytes.size() < size) bytes += key;
  return bytes;
}
bool is_program(const std::string& bytes, const std::string& key) {
  const size_t space = bytes.find(' ');
  return space != std::string::npos && bytes == program(key, std::stoul(bytes.substr(space + 1)));
}

TEST(DiskProcesses, KilledWhileWriting) {
  Folder folder;
  int64_t temporaries = 0;
  for (int round = 0; round < 12; ++round) {
    const pid_t child = start([&] {
      Disk disk(folder.cache(), Disk::Mode::On, kPlenty);
      for (int i = 0;; ++i) {
        const std::string key = "k" + std::to_string(i % 8);
        disk.store(key, program(key, 200'000 + 1000 * i));
      }
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(60 + 7 * round));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    EXPECT_EQ(finish(child), -1);
  }
  Disk disk(folder.cache(), Disk::Mode::ReadOnly, kPlenty);
  int64_t entries = 0;
  for (const auto& file : fs::directory_iterator(folder.cache())) {
    if (file.path().extension() != ".tpuc") {
      ++temporaries;
      continue;
    }
    ++entries;
    const std::string key = file.path().stem();
    const auto bytes = disk.load(key);
    ASSERT_TRUE(bytes) << key;
    EXPECT_TRUE(is_program(*bytes, key)) << key;
  }
  EXPECT_GT(entries, 0);
  EXPECT_EQ(disk.usage().entries, entries) << "what was half written is no entry";
  EXPECT_EQ(Disk(folder.cache(), Disk::Mode::On, kPlenty).clear(), entries);
  EXPECT_EQ(testing::files_in(folder.cache()), 0) << temporaries << " half-written files";
}

TEST(DiskProcesses, FourShareTheKeys) {
  Folder folder;
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p)
    children.push_back(start([&, p] {
      Disk disk(folder.cache(), Disk::Mode::On, kPlenty);
      for (int i = 0; i < 200; ++i) {
        const std::string key = "k" + std::to_string((i * 7 + p) % 20);
        if (!disk.store(key, program(key, 500 + 100 * p + i))) return 1;
        const auto bytes = disk.load(key);
        if (!bytes) return 2;  // nobody evicts: it must be there, whoever wrote it last
        if (!is_program(*bytes, key)) return 3;
      }
      return 0;
    }));
  for (pid_t child : children) EXPECT_EQ(finish(child), 0);
  EXPECT_EQ(testing::files_in(folder.cache()), 20);
  Disk disk(folder.cache(), Disk::Mode::ReadOnly, kPlenty);
  for (int i = 0; i < 20; ++i) {
    const std::string key = "k" + std::to_string(i);
    const auto bytes = disk.load(key);
    EXPECT_TRUE(bytes && is_program(*bytes, key)) << key;
  }
}

// Each evicts what the others store and load; a miss is allowed, a wrong or partial entry or a failed store
// is not.
TEST(DiskProcesses, FourEvictAtOnce) {
  Folder folder;
  constexpr int64_t kCap = 20'000;
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p)
    children.push_back(start([&, p] {
      Disk disk(folder.cache(), Disk::Mode::On, kCap);
      for (int i = 0; i < 100; ++i) {
        const std::string key = "k" + std::to_string((i * 7 + p) % 40);
        if (!disk.store(key, program(key, 1000))) return 1;
        const auto bytes = disk.load("k" + std::to_string(i % 40));
        if (bytes && !is_program(*bytes, "k" + std::to_string(i % 40))) return 2;
      }
      return 0;
    }));
  for (pid_t child : children) EXPECT_EQ(finish(child), 0);
  EXPECT_LE(Disk(folder.cache(), Disk::Mode::On, kCap).usage().bytes, kCap + 4 * kCap / 16);
}

}  // namespace
}  // namespace tpu::cache
