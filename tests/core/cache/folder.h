// For the disk cache's tests: a folder of its own, file contents, and bodies that run in a process of their
// own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace tpu::cache::testing {

namespace fs = std::filesystem;

/// A new private folder, removed at the end of the test.
class Folder {
 public:
  Folder() {
    std::string pattern = ::testing::TempDir() + "/torch_tpu_cache_XXXXXX";
    if (!::mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp " + pattern);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  fs::path path() const { return path_; }
  std::string cache() const { return path_ / "cache"; }
  fs::path entry(const std::string& key) const { return path_ / "cache" / (key + ".tpuc"); }

 private:
  fs::path path_;
};

inline std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void overwrite(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline int64_t files_in(const fs::path& path) {
  return fs::exists(path) ? std::distance(fs::directory_iterator(path), fs::directory_iterator()) : 0;
}

/// Runs `body` in a fork; its int is the exit status. Returns the process id.
template <class Body>
pid_t start(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    ::_exit(status);
  }
  return child;
}

/// The exit status of a process that was started; -1 when a signal ended it.
inline int finish(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tpu::cache::testing
