// What the disk cache needs from POSIX: a descriptor that closes itself, whole reads and writes, private
// directories.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <utility>

namespace tpu::cache {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { close(); }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  /// Some file systems report a full disk only here. False, with errno, when they do.
  bool close();

 private:
  int fd_ = -1;
};

/// Reads exactly `size` bytes; false at an early end of the file or on a fault.
bool read_all(int fd, char* out, size_t size);
/// Writes all of it, through short writes and interruptions; false, with errno, on a fault.
bool write_all(int fd, std::string_view bytes);
/// Makes the directory and its missing parents with mode 0700; false, with errno, when that fails.
bool make_directories(const std::string& path);
/// Belongs to this user, and nobody else may write to it.
bool is_private(const struct stat& status);
/// The text of errno.
std::string fault();

}  // namespace tpu::cache
