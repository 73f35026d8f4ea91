#include "core/cache/sha256.h"

#include <gtest/gtest.h>

#include <set>

namespace tpu::cache {
namespace {

// FIPS 180-4 example values, as published by NIST.
TEST(Sha256, NistVectors) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                   "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Lengths about the places where the padding takes another block; expected values from coreutils' sha256sum.
TEST(Sha256, PaddingBoundaries) {
  EXPECT_EQ(sha256(std::string(55, 'x')), "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  EXPECT_EQ(sha256(std::string(56, 'x')), "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  EXPECT_EQ(sha256(std::string(63, 'x')), "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2");
  EXPECT_EQ(sha256(std::string(64, 'x')), "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
  EXPECT_EQ(sha256(std::string(65, 'x')), "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9");
  EXPECT_EQ(sha256(std::string(119, 'x')),
            "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c");
  EXPECT_EQ(sha256(std::string(120, 'x')),
            "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98");
}

TEST(Digest, NamesAndValuesDoNotRunTogether) {
  const std::set<std::string> keys = {
      digest({}),
      digest({{"", ""}}),
      digest({{"", ""}, {"", ""}}),
      digest({{"ab", "c"}}),
      digest({{"a", "bc"}}),
      digest({{"abc", ""}}),
      digest({{"", "abc"}}),
      digest({{"a", "b"}, {"c", ""}}),
      digest({{"a", ""}, {"b", "c"}}),
      digest({{"c", ""}, {"a", "b"}}),
      digest({{"a", std::string("\1\0\0\0\0\0\0\0b", 9)}}),
  };
  EXPECT_EQ(keys.size(), 11u);
}

TEST(Digest, IsTheHashOfSizedParts) {
  const std::string one("\1\0\0\0\0\0\0\0", 8), two("\2\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(digest({{"a", "bc"}}), sha256(one + "a" + two + "bc"));
}

}  // namespace
}  // namespace tpu::cache
