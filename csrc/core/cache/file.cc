#include "core/cache/file.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tpu::cache {

bool Fd::close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

bool read_all(int fd, char* out, size_t size) {
  while (size > 0) {
    const ssize_t n = ::read(fd, out, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    out += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool make_directories(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    // A parent that is there already, or that another process makes at this moment, is as good.
    if (::mkdir(path.substr(0, end).c_str(), 0700) != 0 && errno != EEXIST) return false;
    if (end == std::string::npos) return true;
  }
}

bool is_private(const struct stat& status) {
  return status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string fault() { return std::system_category().message(errno); }

}  // namespace tpu::cache
