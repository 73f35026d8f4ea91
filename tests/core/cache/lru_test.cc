#include "core/cache/lru.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tpu::cache {
namespace {

std::shared_ptr<int> number(int value) { return std::make_shared<int>(value); }
std::string key(int i) { return std::string(150, 'k') + std::to_string(i) + std::string(50, 'k'); }

struct SameHash {
  uint64_t operator()(std::string_view) const { return 42; }
};

TEST(Lru, FindsWhatWasInserted) {
  Lru<int> table(8);
  EXPECT_EQ(table.find("a"), nullptr);
  const auto one = number(1);
  EXPECT_EQ(table.insert("a", one), one);
  EXPECT_EQ(table.find("a"), one);
  table.insert("", number(2));
  table.insert(std::string("a\0b", 3), number(3));
  EXPECT_EQ(*table.find(""), 2);
  EXPECT_EQ(*table.find(std::string_view("a\0b", 3)), 3);
  EXPECT_EQ(table.find(key(1)), nullptr);
  EXPECT_EQ(table.size(), 3u);
  EXPECT_EQ(table.capacity(), 8u);
  EXPECT_EQ(table.evictions(), 0);
}

TEST(Lru, TheFirstToInsertWins) {
  Lru<int> table(8);
  const auto first = table.insert("a", number(1));
  EXPECT_EQ(table.insert("a", number(2)), first);
  EXPECT_EQ(*table.find("a"), 1);
  EXPECT_EQ(table.size(), 1u);
}

TEST(Lru, NeverHoldsMoreThanItsCapacity) {
  Lru<int> table(16);
  for (int i = 0; i < 1000; ++i) {
    table.insert(key(i), number(i));
    ASSERT_LE(table.size(), 16u);
    ASSERT_EQ(*table.find(key(i)), i);
  }
  EXPECT_EQ(table.size(), 16u);
  EXPECT_EQ(table.evictions(), 984);
  int kept = 0;
  for (int i = 0; i < 1000; ++i) kept += table.find(key(i)) != nullptr;
  EXPECT_EQ(kept, 16);
}

TEST(Lru, WhatIsUsedOutlivesWhatIsNot) {
  Lru<int> table(4);
  for (int i = 0; i < 4; ++i) table.insert(key(i), number(i));
  for (int i = 4; i < 50; ++i) {
    ASSERT_TRUE(table.find(key(1))) << i;
    table.insert(key(i), number(i));
  }
  EXPECT_TRUE(table.find(key(1)));
  EXPECT_FALSE(table.find(key(0)));
}

TEST(Lru, WithAllEntriesUsedOneStillGoes) {
  Lru<int> table(4);
  for (int i = 0; i < 4; ++i) table.insert(key(i), number(i));
  for (int i = 0; i < 4; ++i) table.find(key(i));
  table.insert(key(4), number(4));
  EXPECT_EQ(table.size(), 4u);
  EXPECT_EQ(table.evictions(), 1);
  EXPECT_TRUE(table.find(key(4)));
}

TEST(Lru, CapacitiesOfNothingAndOne) {
  Lru<int> none(0);
  EXPECT_EQ(*none.insert("a", number(1)), 1);
  EXPECT_EQ(none.find("a"), nullptr);
  Lru<int> one(1);
  one.insert("a", number(1));
  one.insert("b", number(2));
  EXPECT_EQ(one.find("a"), nullptr);
  EXPECT_EQ(*one.find("b"), 2);
}

TEST(Lru, KeysWithTheSameHashStayApart) {
  Lru<int, SameHash> table(8);
  for (int i = 0; i < 20; ++i) table.insert(key(i), number(i));
  EXPECT_EQ(table.size(), 8u);
  int kept = 0;
  for (int i = 0; i < 20; ++i)
    if (const auto found = table.find(key(i))) {
      ++kept;
      EXPECT_EQ(*found, i);
    }
  EXPECT_EQ(kept, 8);
  EXPECT_EQ(table.find("another key"), nullptr);
}

TEST(Lru, ValuesLiveWhileHeldAndDieWhenEvicted) {
  Lru<int> table(1);
  std::weak_ptr<int> watched = table.insert("a", number(1));
  auto held = table.find("a");
  table.insert("b", number(2));
  EXPECT_EQ(*held, 1);
  held.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(Lru, Clear) {
  Lru<int> table(4);
  for (int i = 0; i < 6; ++i) table.insert(key(i), number(i));
  const std::weak_ptr<int> watched = table.find(key(5));
  table.clear();
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.find(key(5)), nullptr);
  EXPECT_TRUE(watched.expired());
  for (int i = 0; i < 6; ++i) table.insert(key(i), number(i));
  EXPECT_EQ(table.size(), 4u);
  EXPECT_EQ(*table.find(key(5)), 5);
}

// A value's destructor may use the table: it runs without the lock.
TEST(Lru, DestructorsMayComeBack) {
  struct Caller {
    Lru<Caller>* table;
    ~Caller() { table->size(); }
  };
  Lru<Caller> table(1);
  table.insert("a", std::make_shared<Caller>(Caller{&table}));
  table.insert("b", std::make_shared<Caller>(Caller{&table}));
  table.clear();
  EXPECT_EQ(table.size(), 0u);
}

TEST(Lru, FourThreadsFindAndInsert) {
  Lru<int> table(32);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20'000; ++i) {
        const int k = (i * (2 * t + 1)) % 64;
        auto found = table.find(key(k));
        if (!found) found = table.insert(key(k), number(k));
        if (*found != k) ++wrong;
        if (t == 0 && i % 5000 == 4999) table.clear();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(table.size(), 32u);
}

TEST(Lru, AllThreadsGetTheSameWinner) {
  for (int round = 0; round < 200; ++round) {
    Lru<int> table(4);
    std::shared_ptr<int> got[4];
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([&, t] { got[t] = table.insert("key", number(t)); });
    for (std::thread& thread : threads) thread.join();
    for (int t = 1; t < 4; ++t) ASSERT_EQ(got[t], got[0]);
  }
}

// Keys of the dispatcher differ in a byte or two somewhere: none may share its hash with another, of any
// length.
TEST(HashBytes, EveryByteAndTheLengthCount) {
  std::set<uint64_t> hashes;
  size_t made = 0;
  for (size_t size = 0; size <= 100; ++size) {
    std::string bytes(size, '\0');
    hashes.insert(hash_bytes(bytes));
    ++made;
    for (size_t at = 0; at < size; ++at)
      for (int bit = 0; bit < 8; ++bit) {
        bytes[at] = static_cast<char>(1 << bit);
        hashes.insert(hash_bytes(bytes));
        ++made;
        bytes[at] = 0;
      }
  }
  EXPECT_EQ(hashes.size(), made);
}

// The table uses the low bits, so small differences must reach them: 4096 keys into 4096 places leave about
// 1/e empty.
TEST(HashBytes, LowBitsSpread) {
  std::set<uint64_t> places;
  for (int i = 0; i < 4096; ++i) places.insert(hash_bytes(key(i)) % 4096);
  EXPECT_GT(places.size(), 2400u);
  EXPECT_LT(places.size(), 2780u);
}

}  // namespace
}  // namespace tpu::cache
