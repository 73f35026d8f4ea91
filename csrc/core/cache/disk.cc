#include "core/cache/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <limits>
#include <memory>
#include <vector>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/log.h"

namespace tpu::cache {
namespace {

constexpr std::string_view kEntry = ".tpuc", kTemporary = ".tpuc.tmp";
constexpr int64_t kNanoseconds = 1'000'000'000, kLeftoverAge = 3600 * kNanoseconds;

struct Header {
  char magic[4] = {'T', 'P', 'U', 'C'};
  uint32_t version = 1;
  uint64_t length = 0;
  std::array<uint8_t, 32> checksum{};
};
static_assert(sizeof(Header) == 48 && std::endian::native == std::endian::little, "the layout of the file");

struct Found {
  std::string name;
  int64_t bytes, used;  // `used` in nanoseconds since 1970
  bool temporary;
};

// A user needs to hear once that the cache does not work; the rest is for who asks (TORCH_TPU_LOG=cache).
void complain(const std::string& message) {
  static std::atomic_flag said;
  if (said.test_and_set())
    log("cache", message);
  else
    notice("compilation cache: " + message);
}

void count(const char* name) { counter(name).fetch_add(1, std::memory_order_relaxed); }

// Out of memory, say, is a miss as well.
template <class Result, class Body>
Result guarded(Result otherwise, Body body) {
  try {
    return body();
  } catch (const std::exception& error) {
    complain(error.what());
    return otherwise;
  }
}

bool is_key(const std::string& key) {
  auto plain = [](unsigned char c) { return c < 128 && (std::isalnum(c) || c == '_' || c == '-'); };
  return !key.empty() && key.size() <= 128 && std::all_of(key.begin(), key.end(), plain);
}

std::string entry_name(const std::string& key) { return key + std::string(kEntry); }

std::string temporary_name(const std::string& key) {
  static std::atomic<uint64_t> made{0};
  // The random part tells containers apart that share the folder and a process id.
  uint64_t random = 0;
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) random = 0;
  return text(key, '.', ::getpid(), '.', made.fetch_add(1), '.', random, kTemporary);
}

int64_t since_1970(const timespec& time) { return int64_t{time.tv_sec} * kNanoseconds + time.tv_nsec; }

timespec now() {
  timespec time;
  ::clock_gettime(CLOCK_REALTIME, &time);
  return time;
}

// The kernel's own stamps are milliseconds apart, too coarse to order entries by. Best effort.
void mark_used(int fd) {
  const timespec times[2] = {now(), now()};
  (void)::futimens(fd, times);
}

// The entries and temporary files in the folder. A file that another process removes meanwhile is left out.
std::vector<Found> scan(int folder) {
  std::vector<Found> found;
  Fd again(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(again ? ::fdopendir(again.get()) : nullptr, ::closedir);
  if (!listing) return found;
  again.release();
  while (const dirent* item = ::readdir(listing.get())) {
    const std::string_view name = item->d_name;
    const bool temporary = name.ends_with(kTemporary);
    struct stat status;
    if (!temporary && !name.ends_with(kEntry)) continue;
    if (::fstatat(folder, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
      continue;
    found.push_back({std::string(name), status.st_size, since_1970(status.st_mtim), temporary});
  }
  return found;
}

bool remove_file(int folder, const std::string& name) {
  return ::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT;
}

// The payload of an open entry, or nullopt when the file isn't one, whole and unchanged.
std::optional<std::string> read_entry(int fd) {
  struct stat status;
  Header header;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !is_private(status)) return std::nullopt;
  if (!read_all(fd, reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  const Header expected;
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 ||
      header.version != expected.version ||
      header.length != static_cast<uint64_t>(status.st_size) - sizeof header)
    return std::nullopt;
  std::string bytes(header.length, '\0');
  if (!read_all(fd, bytes.data(), bytes.size()) || sha256_bytes(bytes) != header.checksum)
    return std::nullopt;
  return bytes;
}

std::string default_directory() {
  const char* caches = std::getenv("XDG_CACHE_HOME");
  if (caches && *caches == '/') return std::string(caches) + "/torch_tpu";
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/torch_tpu" : "";
}

}  // namespace

Disk::Disk(std::string directory, Mode mode, int64_t max_bytes)
    : directory_(std::move(directory)), mode_(mode), max_bytes_(max_bytes) {
  // A later chdir must not move the cache.
  std::error_code ignored;
  if (!directory_.empty()) directory_ = std::filesystem::absolute(directory_, ignored).lexically_normal();
}

Disk Disk::from_environment() {
  const std::string mode = env::get("TORCH_TPU_CACHE");
  if (mode != "on" && mode != "readonly" && mode != "off")
    throw Error(Code::Value, "", text("TORCH_TPU_CACHE=", mode, ": expected on, readonly or off"));
  const int64_t megabytes = env::get_int("TORCH_TPU_CACHE_MB");
  if (megabytes < 0 || megabytes > std::numeric_limits<int64_t>::max() >> 20)
    throw Error(Code::Value, "",
                text("TORCH_TPU_CACHE_MB=", megabytes, ": expected a size of at least 0, in MB"));
  std::string directory = env::get("TORCH_TPU_CACHE_DIR");
  if (directory.empty()) directory = default_directory();
  if (directory.empty() && mode != "off")
    complain("there is no home directory (HOME); set TORCH_TPU_CACHE_DIR to keep compiled programs");
  const Mode chosen = directory.empty() || mode == "off" ? Mode::Off
                      : mode == "on"                     ? Mode::On
                                                         : Mode::ReadOnly;
  return Disk(std::move(directory), chosen, megabytes << 20);
}

// Opened and checked anew for each operation: the folder may be removed, replaced or opened to others at any
// time.
Fd Disk::open_directory(bool create) const {
  if (mode_ == Mode::Off || directory_.empty()) return Fd();
  auto open = [&] { return Fd(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); };
  Fd folder = open();
  if (!folder && errno == ENOENT) {
    if (!create) return folder;
    if (make_directories(directory_)) folder = open();
  }
  struct stat status;
  if (!folder || ::fstat(folder.get(), &status) != 0) {
    complain(text("cannot use ", directory_, ": ", fault()));
    return Fd();
  }
  if (!is_private(status)) {
    complain(text(directory_,
                  " is not used: it belongs to another user or others may write to it, and an entry is ",
                  "code; run chmod go-w on it, or set TORCH_TPU_CACHE_DIR"));
    return Fd();
  }
  return folder;
}

std::optional<std::string> Disk::load(const std::string& key) {
  return guarded(std::optional<std::string>(), [&]() -> std::optional<std::string> {
    if (mode_ == Mode::Off) return std::nullopt;
    const Fd folder = is_key(key) ? open_directory(false) : Fd();
    if (!folder) {
      count("disk_misses");
      return std::nullopt;
    }
    // O_NONBLOCK: a pipe by that name must not hang us.
    const Fd file(
        ::openat(folder.get(), entry_name(key).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file && errno != ELOOP) {
      count("disk_misses");
      return std::nullopt;
    }
    std::optional<std::string> bytes = file ? read_entry(file.get()) : std::nullopt;
    count(bytes ? "disk_hits" : "disk_misses");
    if (bytes) {
      if (mode_ == Mode::On) mark_used(file.get());
    } else {
      count("disk_corrupt");
      log("cache", text(directory_, '/', entry_name(key), " is damaged or not an entry: compiling again"));
      if (mode_ == Mode::On) remove_file(folder.get(), entry_name(key));
    }
    return bytes;
  });
}

bool Disk::store(const std::string& key, const std::string& bytes) {
  return guarded(false, [&] {
    if (mode_ != Mode::On || !is_key(key)) return false;
    const auto size = static_cast<int64_t>(bytes.size() + sizeof(Header));
    if (size > max_bytes_) {
      log("cache", text("an entry of ", size, " bytes exceeds the cap of ", max_bytes_, " and is not kept"));
      return false;
    }
    const Fd folder = open_directory(true);
    if (!folder || !write_entry(folder.get(), key, bytes)) return false;
    count("disk_stores");
    if (until_scan_.fetch_sub(size) <= size) {
      until_scan_ = max_bytes_ / 16;
      evict(folder.get());
    }
    return true;
  });
}

bool Disk::write_entry(int folder, const std::string& key, const std::string& bytes) {
  Header header;
  header.length = bytes.size();
  header.checksum = sha256_bytes(bytes);
  const std::string temporary = temporary_name(key), name = entry_name(key);
  Fd file(::openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) {
    complain(
        text("cannot write to ", directory_, ": ", fault(), "; programs will be compiled again next time"));
    return false;
  }
  const std::string_view head(reinterpret_cast<const char*>(&header), sizeof header);
  bool written = write_all(file.get(), head) && write_all(file.get(), bytes);
  if (written) mark_used(file.get());
  // Not synced: it would cost 10 ms, and a file that a power cut leaves half written fails its checksum.
  written = written && file.close() && ::renameat(folder, temporary.c_str(), folder, name.c_str()) == 0;
  if (!written) {
    // The temporary file is gone when somebody clears the cache at this moment: nothing to complain about.
    if (errno != ENOENT)
      complain(
          text("cannot write to ", directory_, ": ", fault(), "; programs will be compiled again next time"));
    ::unlinkat(folder, temporary.c_str(), 0);
    return false;
  }
  return true;
}

void Disk::evict(int folder) {
  std::vector<Found> found = scan(folder);
  const int64_t leftover = since_1970(now()) - kLeftoverAge;
  for (const Found& file : found)
    if (file.temporary && file.used < leftover) remove_file(folder, file.name);
  std::erase_if(found, [](const Found& file) { return file.temporary; });

  int64_t total = 0;
  for (const Found& file : found) total += file.bytes;
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.used < b.used; });
  for (const Found& file : found) {
    if (total <= max_bytes_) break;
    if (!remove_file(folder, file.name)) continue;
    total -= file.bytes;
    count("disk_evicted");
  }
}

void Disk::remove(const std::string& key) {
  guarded(false, [&] {
    const Fd folder = mode_ == Mode::On && is_key(key) ? open_directory(false) : Fd();
    return folder && remove_file(folder.get(), entry_name(key));
  });
}

int64_t Disk::clear() {
  return guarded(int64_t{0}, [&] {
    int64_t entries = 0;
    const Fd folder = mode_ == Mode::On ? open_directory(false) : Fd();
    if (!folder) return entries;
    for (const Found& file : scan(folder.get()))
      if (remove_file(folder.get(), file.name) && !file.temporary) ++entries;
    return entries;
  });
}

Disk::Usage Disk::usage() const {
  return guarded(Usage(), [&] {
    Usage usage;
    const Fd folder = open_directory(false);
    if (!folder) return usage;
    for (const Found& file : scan(folder.get()))
      if (!file.temporary) ++usage.entries, usage.bytes += file.bytes;
    return usage;
  });
}

}  // namespace tpu::cache
