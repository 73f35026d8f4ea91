// SHA-256 and the digest of named parts: what names a compiled program on disk and what its file is verified
// with.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tpu::cache {

/// The named parts that a program's identity is made of, e.g. {"module", text}, {"plugin", "cpu 0.106 ..."}.
using Parts = std::vector<std::pair<std::string, std::string>>;

/// The 32 bytes of SHA-256 (FIPS 180-4).
std::array<uint8_t, 32> sha256_bytes(std::string_view bytes);
/// Lower-case hex SHA-256.
std::string sha256(const std::string& bytes);
/// The key of the parts: every name and value goes in with its length, so no two lists collide by
/// concatenation. With the log topic "cache" on, each part's name, size and own hash are logged: two
/// processes' logs show which part differs.
std::string digest(const Parts& parts);

}  // namespace tpu::cache
