// What the disk cache keeps, for whom, and for how long. Faults are in disk_faults_test.cc, many processes in
// disk_processes_test.cc.
#include "core/cache/disk.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/log.h"
#include "folder.h"

namespace tpu::cache {
namespace {

using testing::contents;
using testing::Folder;
using testing::overwrite;
namespace fs = std::filesystem;

constexpr int64_t kPlenty = 1 << 30;
constexpr int64_t kHeader = 48;

std::string every_byte(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 131 + i / 256);
  return bytes;
}

TEST(Disk, RoundTripAcrossInstances) {
  Folder folder;
  Disk first(folder.cache(), Disk::Mode::On, kPlenty);
  EXPECT_EQ(first.load("key"), std::nullopt);
  EXPECT_FALSE(fs::exists(folder.cache())) << "a lookup makes no folder";
  for (size_t size : {size_t{0}, size_t{1}, size_t{47}, size_t{48}, size_t{1} << 20}) {
    const std::string key = sha256(std::to_string(size));
    EXPECT_TRUE(first.store(key, every_byte(size)));
    EXPECT_EQ(Disk(folder.cache(), Disk::Mode::On, kPlenty).load(key), every_byte(size)) << size;
  }
  EXPECT_EQ(first.usage().entries, 5);
  EXPECT_EQ(first.usage().bytes, 5 * kHeader + 1 + 47 + 48 + (1 << 20));
  EXPECT_EQ(testing::files_in(folder.cache()), 5) << "no temporary file is left";
}

TEST(Disk, StoreReplaces) {
  Folder folder;
  Disk disk(folder.cache(), Disk::Mode::On, kPlenty);
  EXPECT_TRUE(disk.store("key", "a longer old value"));
  EXPECT_TRUE(disk.store("key", "new"));
  EXPECT_EQ(disk.load("key"), "new");
  EXPECT_EQ(disk.usage().entries, 1);
}

TEST(Disk, FolderAndFilesArePrivate) {
  Folder folder;
  const std::string deep = folder.path() / "not" / "yet" / "there";
  const mode_t mask = ::umask(0);
  EXPECT_TRUE(Disk(deep, Disk::Mode::On, kPlenty).store("key", "bytes"));
  ::umask(mask);
  struct stat status;
  for (const char* path : {"not", "not/yet", "not/yet/there", "not/yet/there/key.tpuc"}) {
    ASSERT_EQ(::stat((folder.path() / path).c_str(), &status), 0) << path;
    EXPECT_EQ(status.st_mode & 0777, S_ISDIR(status.st_mode) ? 0700u : 0600u) << path;
  }
}

TEST(Disk, RelativeFolderStaysWhereItWas) {
  Folder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  Disk disk("cache", Disk::Mode::On, kPlenty);
  fs::current_path(before);
  EXPECT_TRUE(disk.store("key", "bytes"));
  EXPECT_TRUE(fs::exists(folder.entry("key")));
}

TEST(Disk, KeysCannotLeaveTheFolder) {
  Folder folder;
  Disk disk(folder.cache(), Disk::Mode::On, kPlenty);
  for (const std::string key : {"../escape", "a/b", "", ".", "nul\n", "a.b"}) {
    EXPECT_FALSE(disk.store(key, "bytes")) << key;
    EXPECT_EQ(disk.load(key), std::nullopt) << key;
  }
  EXPECT_FALSE(disk.store(std::string(129, 'k'), "bytes"));
  EXPECT_TRUE(disk.store(std::string(128, 'k'), "bytes"));
  EXPECT_EQ(testing::files_in(folder.path()), 1);
}

TEST(Disk, RemoveAndClear) {
  Folder folder;
  Disk disk(folder.cache(), Disk::Mode::On, kPlenty);
  EXPECT_EQ(disk.clear(), 0);
  for (const char* key : {"a", "b", "c"}) EXPECT_TRUE(disk.store(key, key));
  disk.remove("b");
  disk.remove("never there");
  EXPECT_EQ(disk.load("b"), std::nullopt);
  EXPECT_EQ(disk.load("a"), "a");
  overwrite(folder.path() / "cache" / "c.1.2.3.tpuc.tmp", "half");
  overwrite(folder.path() / "cache" / "notes.txt", "not ours");
  EXPECT_EQ(disk.clear(), 2);
  EXPECT_EQ(disk.usage().entries, 0);
  EXPECT_EQ(testing::files_in(folder.cache()), 1) << "only the file that isn't ours is left";
}

TEST(Disk, OffDoesNothing) {
  Folder folder;
  Disk disk(folder.cache(), Disk::Mode::Off, kPlenty);
  EXPECT_FALSE(disk.store("key", "bytes"));
  EXPECT_FALSE(fs::exists(folder.cache()));
  EXPECT_TRUE(Disk(folder.cache(), Disk::Mode::On, kPlenty).store("key", "bytes"));
  EXPECT_EQ(disk.load("key"), std::nullopt);
  EXPECT_EQ(disk.clear(), 0);
  EXPECT_EQ(disk.usage().entries, 0);
  EXPECT_TRUE(fs::exists(folder.entry("key")));
}

TEST(Disk, ReadOnlyReadsAndTouchesNothing) {
  Folder folder;
  Disk reader(folder.cache(), Disk::Mode::ReadOnly, kPlenty);
  EXPECT_FALSE(reader.store("key", "bytes"));
  EXPECT_FALSE(fs::exists(folder.cache()));

  Disk writer(folder.cache(), Disk::Mode::On, kPlenty);
  for (const char* key : {"good", "bad"}) ASSERT_TRUE(writer.store(key, "bytes"));
  overwrite(folder.entry("bad"), "damaged");
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(5);
  for (const char* key : {"good", "bad"}) fs::last_write_time(folder.entry(key), long_ago);
  const auto stamp = fs::last_write_time(folder.entry("good"));
  const auto folder_stamp = fs::last_write_time(folder.cache());

  EXPECT_EQ(reader.load("good"), "bytes");
  EXPECT_EQ(reader.load("bad"), std::nullopt);
  EXPECT_FALSE(reader.store("good", "other"));
  reader.remove("good");
  EXPECT_EQ(reader.clear(), 0);
  EXPECT_EQ(fs::last_write_time(folder.entry("good")), stamp);
  EXPECT_EQ(contents(folder.entry("bad")), "damaged");
  EXPECT_EQ(fs::last_write_time(folder.cache()), folder_stamp);
  EXPECT_EQ(writer.load("good"), "bytes");
  EXPECT_NE(fs::last_write_time(folder.entry("good")), stamp) << "mode On marks the entry as used";
}

TEST(Disk, EvictsTheLeastRecentlyUsed) {
  Folder folder;
  constexpr int64_t kEntry = 1000;
  const std::string bytes = every_byte(kEntry - kHeader);
  Disk disk(folder.cache(), Disk::Mode::On, 4 * kEntry);
  for (const char* key : {"a", "b", "c", "d"}) EXPECT_TRUE(disk.store(key, bytes));
  EXPECT_EQ(disk.usage().entries, 4) << "the cap itself fits";
  EXPECT_EQ(disk.load("a"), bytes);
  EXPECT_TRUE(disk.store("e", bytes));
  EXPECT_TRUE(disk.store("f", bytes));
  std::string left;
  for (const auto& file : fs::directory_iterator(folder.cache())) left += file.path().stem();
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, "adef") << "b and c were used least recently";
  EXPECT_EQ(disk.usage().bytes, 4 * kEntry);
}

TEST(Disk, MeasuresAgainAfterASixteenthOfTheCap) {
  Folder folder;
  constexpr int64_t kEntry = 100, kCap = 32 * kEntry;
  const std::string bytes = every_byte(kEntry - kHeader);
  Disk disk(folder.cache(), Disk::Mode::On, kCap);
  int64_t most = 0;
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(disk.store("k" + std::to_string(i), bytes));
    most = std::max(most, disk.usage().bytes);
  }
  EXPECT_GT(most, kCap) << "a scan at each store would be slow";
  EXPECT_LE(most, kCap + kCap / 16);
  EXPECT_EQ(disk.load("k39"), bytes);
  EXPECT_EQ(disk.load("k0"), std::nullopt);
}

TEST(Disk, AnEntryLargerThanTheCapIsNotKept) {
  Folder folder;
  Disk disk(folder.cache(), Disk::Mode::On, 1000);
  EXPECT_TRUE(disk.store("small", "bytes"));
  EXPECT_FALSE(disk.store("large", every_byte(1000)));
  EXPECT_TRUE(disk.store("fits", every_byte(1000 - kHeader - 100)));
  EXPECT_EQ(disk.load("small"), "bytes");
}

TEST(Disk, OldTemporaryFilesGoYoungOnesStay) {
  Folder folder;
  fs::create_directory(folder.cache());
  fs::permissions(folder.cache(), fs::perms::owner_all);
  const fs::path old = folder.path() / "cache" / "a.1.2.3.tpuc.tmp",
                 young = folder.path() / "cache" / "b.1.2.3.tpuc.tmp";
  for (const fs::path& path : {old, young}) overwrite(path, "half an ent");
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::minutes(61));
  fs::last_write_time(young, fs::file_time_type::clock::now() - std::chrono::minutes(59));
  Disk disk(folder.cache(), Disk::Mode::On, kPlenty);
  EXPECT_EQ(disk.usage().entries, 0);
  EXPECT_TRUE(disk.store("key", "bytes"));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young)) << "another process may be writing it";
}

TEST(Disk, Counts) {
  Folder folder;
  Disk disk(folder.cache(), Disk::Mode::On, kPlenty);
  auto before = counters();
  disk.load("key");
  disk.store("key", "bytes");
  disk.load("key");
  overwrite(folder.entry("key"), "damaged");
  disk.load("key");
  auto after = counters();
  EXPECT_EQ(after["disk_misses"] - before["disk_misses"], 2);
  EXPECT_EQ(after["disk_stores"] - before["disk_stores"], 1);
  EXPECT_EQ(after["disk_hits"] - before["disk_hits"], 1);
  EXPECT_EQ(after["disk_corrupt"] - before["disk_corrupt"], 1);
}

TEST(Disk, ThreadsShareOne) {
  Folder folder;
  Disk disk(folder.cache(), Disk::Mode::On, 40'000);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const std::string key = "k" + std::to_string(i % 10), bytes = key + every_byte(2000);
        if (!disk.store(key, bytes)) ++wrong;
        const auto loaded = disk.load(key);
        if (loaded && *loaded != bytes) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(disk.usage().entries, 10);
}

// Sets variables for one test and puts the old values back.
class Environment {
 public:
  Environment(std::initializer_list<std::pair<const char*, const char*>> values) {
    for (const auto& [name, value] : values) {
      const char* old = std::getenv(name);
      old_.emplace(name, old ? std::optional<std::string>(old) : std::nullopt);
      put(name, value);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : old_) put(name, value ? value->c_str() : nullptr);
  }

 private:
  static void put(const std::string& name, const char* value) {
    value ? ::setenv(name.c_str(), value, 1) : ::unsetenv(name.c_str());
  }
  std::map<std::string, std::optional<std::string>> old_;
};

TEST(DiskFromEnvironment, Defaults) {
  Environment set{{"TORCH_TPU_CACHE", nullptr},
                  {"TORCH_TPU_CACHE_DIR", nullptr},
                  {"TORCH_TPU_CACHE_MB", nullptr},
                  {"XDG_CACHE_HOME", nullptr},
                  {"HOME", "/home/someone"}};
  const Disk disk = Disk::from_environment();
  EXPECT_EQ(disk.mode(), Disk::Mode::On);
  EXPECT_EQ(disk.directory(), "/home/someone/.cache/torch_tpu");
  {
    Environment inner{{"XDG_CACHE_HOME", "/caches"}};
    EXPECT_EQ(Disk::from_environment().directory(), "/caches/torch_tpu");
    Environment wins{{"TORCH_TPU_CACHE_DIR", "/mine"}};
    EXPECT_EQ(Disk::from_environment().directory(), "/mine");
  }
  Environment relative{{"XDG_CACHE_HOME", "relative/paths/are/ignored"}};
  EXPECT_EQ(Disk::from_environment().directory(), "/home/someone/.cache/torch_tpu");
}

TEST(DiskFromEnvironment, Modes) {
  Environment home{{"HOME", "/home/someone"}, {"TORCH_TPU_CACHE", "readonly"}};
  EXPECT_EQ(Disk::from_environment().mode(), Disk::Mode::ReadOnly);
  Environment off{{"TORCH_TPU_CACHE", "off"}};
  EXPECT_EQ(Disk::from_environment().mode(), Disk::Mode::Off);
  Environment homeless{{"HOME", nullptr},
                       {"XDG_CACHE_HOME", nullptr},
                       {"TORCH_TPU_CACHE_DIR", nullptr},
                       {"TORCH_TPU_CACHE", "on"}};
  EXPECT_EQ(Disk::from_environment().mode(), Disk::Mode::Off);
}

TEST(DiskFromEnvironment, TheCapIsInMegabytes) {
  Folder folder;
  const std::string directory = folder.cache();
  Environment set(
      {{"TORCH_TPU_CACHE", "on"}, {"TORCH_TPU_CACHE_DIR", directory.c_str()}, {"TORCH_TPU_CACHE_MB", "1"}});
  Disk disk = Disk::from_environment();
  EXPECT_FALSE(disk.store("key", every_byte((1 << 20) - kHeader + 1)));
  EXPECT_TRUE(disk.store("key", every_byte((1 << 20) - kHeader)));
}

TEST(DiskFromEnvironment, WrongValuesNameTheVariable) {
  auto message = [](const char* name, const char* value) -> std::string {
    Environment set{{name, value}};
    try {
      Disk::from_environment();
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Code::Value);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message("TORCH_TPU_CACHE", "yes"), "TORCH_TPU_CACHE=yes: expected on, readonly or off");
  EXPECT_NE(message("TORCH_TPU_CACHE_MB", "-1").find("TORCH_TPU_CACHE_MB=-1"), std::string::npos);
  EXPECT_NE(message("TORCH_TPU_CACHE_MB", "many").find("TORCH_TPU_CACHE_MB=many"), std::string::npos);
  EXPECT_NE(message("TORCH_TPU_CACHE_MB", "9223372036854775807").find("TORCH_TPU_CACHE_MB"),
            std::string::npos);
}

}  // namespace
}  // namespace tpu::cache
