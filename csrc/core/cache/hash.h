// A fast 64-bit hash of a string of bytes, for tables in memory. Not for anything that is stored or sent.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tpu::cache {

/// Multiplies to 128 bits and folds the halves: each bit of the result depends on all bits of both factors.
inline uint64_t fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/// Two lanes of 16 bytes a step, so that the multiplications overlap; the last 32 bytes are read once more
/// from the end.
inline uint64_t hash_bytes(std::string_view bytes) {
  constexpr uint64_t k0 = 0x9e3779b97f4a7c15, k1 = 0xd1b54a32d192ed03, k2 = 0x8cb92ba72f3d8dd7,
                     k3 = 0xaef17502108ef2d9;
  const char* data = bytes.data();
  const size_t size = bytes.size();
  auto word = [](const char* at) {
    uint64_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  char padded[32] = {};
  if (size < 32) {
    if (size) std::memcpy(padded, data, size);
    data = padded;
  }
  const char* last = data + (size < 32 ? 0 : size - 32);
  uint64_t a = k0, b = k1;
  for (; data < last; data += 32) {
    a = fold(word(data) ^ k2, word(data + 8) ^ a);
    b = fold(word(data + 16) ^ k3, word(data + 24) ^ b);
  }
  a = fold(word(last) ^ k2, word(last + 8) ^ a);
  b = fold(word(last + 16) ^ k3, word(last + 24) ^ b);
  return fold(a ^ size, b ^ k0);
}

}  // namespace tpu::cache
