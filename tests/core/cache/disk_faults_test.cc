// Damaged files, unsafe folders and full disks: each is a miss or a store that says no, never an error.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdint>
#include <string>

#include "core/cache/disk.h"
#include "folder.h"

namespace tpu::cache {
namespace {

using testing::contents;
using testing::finish;
using testing::Folder;
using testing::overwrite;
using testing::start;
namespace fs = std::filesystem;

constexpr int64_t kPlenty = 1 << 30;

class DiskFaults : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(disk.store("key", "the bytes of a program")); }

  // A miss, after which the file is gone and a new store works.
  void expect_replaced(const std::string& what) {
    EXPECT_EQ(disk.load("key"), std::nullopt) << what;
    EXPECT_FALSE(fs::exists(fs::symlink_status(folder.entry("key")))) << what;
    EXPECT_TRUE(disk.store("key", "the bytes of a program")) << what;
    EXPECT_EQ(disk.load("key"), "the bytes of a program") << what;
  }

  Folder folder;
  Disk disk{folder.cache(), Disk::Mode::On, kPlenty};
};

TEST_F(DiskFaults, TruncatedAnywhere) {
  const std::string whole = contents(folder.entry("key"));
  ASSERT_EQ(whole.size(), 48 + 22u);
  for (size_t size = 0; size < whole.size(); ++size) {
    overwrite(folder.entry("key"), whole.substr(0, size));
    EXPECT_EQ(disk.load("key"), std::nullopt) << "cut to " << size << " bytes";
    EXPECT_FALSE(fs::exists(folder.entry("key"))) << "cut to " << size << " bytes";
  }
  expect_replaced("removed");
}

TEST_F(DiskFaults, AnyBitFlipped) {
  const std::string whole = contents(folder.entry("key"));
  for (size_t bit = 0; bit < whole.size() * 8; bit += 3) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    overwrite(folder.entry("key"), damaged);
    EXPECT_EQ(disk.load("key"), std::nullopt) << "bit " << bit;
    EXPECT_FALSE(fs::exists(folder.entry("key"))) << "bit " << bit;
  }
}

TEST_F(DiskFaults, ForeignFiles) {
  const std::string whole = contents(folder.entry("key"));
  overwrite(folder.entry("key"), whole + "x");
  expect_replaced("longer than it says");
  overwrite(folder.entry("key"), std::string(5000, 'x'));
  expect_replaced("something else");
  std::string other_version = whole;
  ++other_version[4];
  overwrite(folder.entry("key"), other_version);
  expect_replaced("another format version");
  std::string huge = whole;
  for (int i = 8; i < 16; ++i) huge[i] = '\xff';
  overwrite(folder.entry("key"), huge);
  expect_replaced("a length no machine has");
}

TEST_F(DiskFaults, ThingsThatAreNotFiles) {
  fs::remove(folder.entry("key"));
  ASSERT_EQ(::mkfifo(folder.entry("key").c_str(), 0600), 0);
  expect_replaced("a pipe");
  fs::rename(folder.entry("key"), folder.path() / "elsewhere");
  fs::create_symlink(folder.path() / "elsewhere", folder.entry("key"));
  expect_replaced("a symbolic link");
  fs::remove(folder.entry("key"));
  fs::create_directory(folder.entry("key"));
  EXPECT_EQ(disk.load("key"), std::nullopt);
  EXPECT_FALSE(disk.store("key", "bytes"));
  EXPECT_EQ(testing::files_in(folder.cache()), 1) << "no temporary file is left";
}

TEST_F(DiskFaults, AFileThatOthersMayWriteIsNotCode) {
  fs::permissions(folder.entry("key"), fs::perms::others_write, fs::perm_options::add);
  expect_replaced("writable by others");
}

void expect_unused(const std::string& directory) {
  Disk disk(directory, Disk::Mode::On, kPlenty);
  EXPECT_EQ(disk.load("key"), std::nullopt);
  EXPECT_FALSE(disk.store("other", "bytes"));
  EXPECT_EQ(disk.usage().entries, 0);
  EXPECT_EQ(disk.clear(), 0);
  EXPECT_EQ(Disk(directory, Disk::Mode::ReadOnly, kPlenty).load("key"), std::nullopt);
}

TEST_F(DiskFaults, FoldersThatOthersMayWriteAreRefused) {
  const std::string link = folder.path() / "link";
  fs::create_directory_symlink(folder.cache(), link);
  EXPECT_EQ(Disk(link, Disk::Mode::On, kPlenty).load("key"), "the bytes of a program")
      << "a link to a private folder";
  for (fs::perms open : {fs::perms::others_write, fs::perms::group_write}) {
    fs::permissions(folder.cache(), open, fs::perm_options::add);
    expect_unused(folder.cache());
    expect_unused(link);
    EXPECT_TRUE(fs::exists(folder.entry("key")));
    EXPECT_EQ(testing::files_in(folder.cache()), 1);
    fs::permissions(folder.cache(), open, fs::perm_options::remove);
    EXPECT_EQ(disk.load("key"), "the bytes of a program") << "used again once it is private";
  }
}

TEST_F(DiskFaults, FoldersOfOthersAreRefused) {
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(folder.cache().c_str(), 65534, 65534), 0);
    expect_unused(folder.cache());
    EXPECT_TRUE(fs::exists(folder.entry("key")));
  } else {
    expect_unused("/");
  }
}

TEST_F(DiskFaults, TheFolderIsAFile) {
  const fs::path file = folder.path() / "file";
  overwrite(file, "precious");
  expect_unused(file);
  expect_unused(file / "below");
  EXPECT_EQ(contents(file), "precious");
}

TEST_F(DiskFaults, TheFolderCannotBeWritten) {
  // Root may write anywhere, so as root the test goes on as "nobody", in a process of its own.
  const bool root = ::geteuid() == 0;
  for (const fs::path& path : {folder.path(), fs::path(folder.cache()), folder.entry("key")})
    ASSERT_TRUE(!root || ::chown(path.c_str(), 65534, 65534) == 0);
  fs::permissions(folder.cache(), fs::perms::owner_read | fs::perms::owner_exec);
  const pid_t child = start([&] {
    if (root && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return 1;
    if (disk.store("other", "bytes")) return 2;
    if (disk.load("key") != "the bytes of a program") return 3;
    if (Disk(disk.directory() + "/new", Disk::Mode::On, kPlenty).store("other", "bytes")) return 4;
    return 0;
  });
  EXPECT_EQ(finish(child), 0);
  fs::permissions(folder.cache(), fs::perms::owner_all);
  EXPECT_EQ(testing::files_in(folder.cache()), 1);
}

TEST_F(DiskFaults, TheFolderVanishes) {
  fs::remove_all(folder.cache());
  EXPECT_EQ(disk.load("key"), std::nullopt);
  EXPECT_TRUE(disk.store("key", "again"));
  EXPECT_EQ(disk.load("key"), "again");
}

// In a process of its own: what fits is stored, what doesn't leaves nothing behind, and what was there still
// loads.
int store_on_a_small_disk(Disk& disk, const std::string& before) {
  if (!disk.store("small", "fits")) return 1;
  if (disk.store("large", std::string(1 << 20, 'x'))) return 2;
  if (disk.load("large")) return 3;
  if (disk.load("small") != "fits" || (!before.empty() && !disk.load(before))) return 4;
  if (testing::files_in(disk.directory()) != (before.empty() ? 1 : 2)) return 5;
  return 0;
}

TEST_F(DiskFaults, AWriteStopsHalfway) {
  const pid_t child = start([&] {
    ::signal(SIGXFSZ, SIG_IGN);  // write() then says EFBIG, after a short write up to the limit
    const rlimit limit{100'000, 100'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 10;
    return store_on_a_small_disk(disk, "key");
  });
  EXPECT_EQ(finish(child), 0);
}

TEST(DiskFull, AFullFileSystem) {
  Folder folder;
  constexpr int kCannotMount = 77;
  const pid_t child = start([&] {
    // In a mount namespace of its own, so that the mount ends with the process.
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=256k,mode=0700") != 0)
      return kCannotMount;
    Disk disk(folder.cache(), Disk::Mode::On, kPlenty);
    return store_on_a_small_disk(disk, "");
  });
  const int status = finish(child);
  if (status == kCannotMount)
    GTEST_SKIP() << "mounting a small tmpfs needs root; AWriteStopsHalfway tests the same path";
  EXPECT_EQ(status, 0);
}

TEST(DiskNoticeDeathTest, OneLineAProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // starts the program anew: nothing was said yet
  auto go_wrong_often = [] {
    Disk disk("/dev/null", Disk::Mode::On, kPlenty);
    for (int i = 0; i < 3; ++i) {
      disk.store("key", "bytes");
      disk.load("key");
    }
    Disk("/dev/null/below", Disk::Mode::On, kPlenty).store("key", "bytes");
    ::_exit(0);
  };
  EXPECT_EXIT(go_wrong_often(), ::testing::ExitedWithCode(0),
              "^\\[torch_tpu\\] compilation cache: cannot use /dev/null: [^\n]*\n$");
}

}  // namespace
}  // namespace tpu::cache
