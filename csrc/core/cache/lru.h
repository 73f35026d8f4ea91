// A bounded table in memory from key bytes to shared values, made for lookups on the dispatch path.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/cache/hash.h"

namespace tpu::cache {

struct HashBytes {
  uint64_t operator()(std::string_view bytes) const { return hash_bytes(bytes); }
};

/// Keeps at most `capacity` values; keys are compared byte by byte, the hash only finds the place. Recency is
/// a second chance: a lookup sets a bit under a shared lock, eviction goes round and takes the first entry
/// whose bit is clear, clearing bits as it passes. So an entry used since the last round outlives all that
/// were not. Safe from any number of threads.
template <class Value, class Hash = HashBytes>
class Lru {
 public:
  explicit Lru(size_t capacity) : capacity_(capacity) {}
  Lru(const Lru&) = delete;
  Lru& operator=(const Lru&) = delete;

  /// The value of the key, or null. It lives on in the caller's hands when it is evicted meanwhile.
  std::shared_ptr<Value> find(std::string_view key) const {
    const Key wanted{Hash()(key), key};
    std::shared_lock lock(mutex_);
    const auto at = index_.find(wanted);
    if (at == index_.end()) return nullptr;
    Entry& entry = *at->second;
    // Read before write: threads that look up the same key would otherwise fight for its cache line.
    if (!entry.used.load(std::memory_order_relaxed)) entry.used.store(true, std::memory_order_relaxed);
    return entry.value;
  }

  /// Keeps the value under the key, evicting another when full, and returns the value that is kept: the one
  /// already there when another thread was first. With capacity 0 nothing is kept and `value` is returned.
  std::shared_ptr<Value> insert(std::string key, std::shared_ptr<Value> value) {
    if (capacity_ == 0) return value;
    const uint64_t hash = Hash()(key);
    std::shared_ptr<Value> evicted;  // destroyed after the lock is gone: freeing a program takes long
    std::unique_lock lock(mutex_);
    if (const auto at = index_.find(Key{hash, key}); at != index_.end()) return at->second->value;
    Entry* entry;
    if (entries_.size() < capacity_) {
      entry = &entries_.emplace_back();
    } else {
      entry = &oldest();
      index_.erase(Key{entry->hash, entry->key});
      evicted = std::move(entry->value);
      evictions_.fetch_add(1, std::memory_order_relaxed);
    }
    entry->hash = hash;
    entry->key = std::move(key);
    entry->value = std::move(value);
    entry->used.store(false, std::memory_order_relaxed);
    index_.emplace(Key{hash, entry->key}, entry);
    return entry->value;
  }

  /// Forgets everything.
  void clear() {
    std::deque<Entry> old;
    std::unique_lock lock(mutex_);
    index_.clear();
    entries_.swap(old);
    hand_ = 0;
    lock.unlock();
  }

  size_t size() const {
    std::shared_lock lock(mutex_);
    return entries_.size();
  }
  size_t capacity() const { return capacity_; }
  /// How many entries made room for others since the table was made.
  int64_t evictions() const { return evictions_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    uint64_t hash = 0;
    std::string key;
    std::shared_ptr<Value> value;
    std::atomic<bool> used{false};
  };
  // Points into an Entry's key (or the caller's, while looking up), and carries the hash so that none is
  // computed twice.
  struct Key {
    uint64_t hash;
    std::string_view bytes;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const noexcept { return key.hash; }
  };

  Entry& oldest() {
    for (;; hand_ = (hand_ + 1) % entries_.size()) {
      Entry& entry = entries_[hand_];
      if (entry.used.exchange(false, std::memory_order_relaxed)) continue;
      hand_ = (hand_ + 1) % entries_.size();
      return entry;
    }
  }

  const size_t capacity_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<Key, Entry*, KeyHash> index_;
  std::deque<Entry> entries_;  // a ring that does not move its entries
  size_t hand_ = 0;
  std::atomic<int64_t> evictions_{0};
};

}  // namespace tpu::cache
