// Compiled programs on disk, shared by any number of processes. A file is one entry: a header with a
// checksum, then the bytes. Anything that is wrong with the disk or a file costs a compile, never an error.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "core/cache/file.h"
#include "core/cache/sha256.h"

namespace tpu::cache {

/// Safe from any number of threads and processes. Counters: disk_hits, disk_misses, disk_stores,
/// disk_corrupt, disk_evicted.
class Disk {
 public:
  enum class Mode { Off, ReadOnly, On };
  /// `directory` is made, private to the user (0700), on the first write. A directory owned by another user,
  /// or writable by others, is not used: an entry is code.
  Disk(std::string directory, Mode mode, int64_t max_bytes);
  /// As TORCH_TPU_CACHE, TORCH_TPU_CACHE_DIR and TORCH_TPU_CACHE_MB say. Error(Value) names a variable that
  /// makes no sense.
  static Disk from_environment();

  /// The bytes of an entry, verified; nullopt when there is none. A truncated, corrupt or foreign file is a
  /// miss (and is removed in mode On). Marks the entry as recently used. A key is a digest, or else letters,
  /// digits, '_' and '-'.
  std::optional<std::string> load(const std::string& key);
  /// Writes atomically (temporary file, rename), then evicts least recently used entries past the cap.
  /// The folder is measured at the first store and after each sixteenth of the cap written, so a process
  /// exceeds the cap by that at most. Returns false, with one log line a process, when the disk is full or
  /// read-only; also for an entry larger than the cap.
  bool store(const std::string& key, const std::string& bytes);
  /// Removes an entry whose bytes the plugin refused.
  void remove(const std::string& key);
  /// Removes every entry (and leftover temporary files); returns how many entries. Does nothing unless the
  /// mode is On.
  int64_t clear();

  struct Usage {
    int64_t entries = 0, bytes = 0;
  };
  /// What is on disk now, whoever wrote it.
  Usage usage() const;
  const std::string& directory() const { return directory_; }
  Mode mode() const { return mode_; }

 private:
  Fd open_directory(bool create) const;
  bool write_entry(int folder, const std::string& key, const std::string& bytes);
  void evict(int folder);

  std::string directory_;
  Mode mode_;
  int64_t max_bytes_;
  std::atomic<int64_t> until_scan_{0};
};

}  // namespace tpu::cache
