#include "core/base/dtype.h"

#include <gtest/gtest.h>

#include <string>

namespace tpu {
namespace {

using enum DType;

constexpr int kTypes = static_cast<int>(F8E5M2) + 1;

// torch.promote_types, row and column in the order of kOrder; b bool, 1248 signed, u v w x unsigned of 1, 2,
// 4, 8 bytes, h f16, g bf16, f f32, d f64, c complex<f32>, z complex<f64>. '.' is a pair torch refuses (its
// wider unsigned types promote with floats only); the core answers those too, as tested below.
constexpr DType kOrder[] = {Bool, S8, S16, S32, S64, U8, U16, U32, U64, F16, BF16, F32, F64, C64, C128};
constexpr std::string_view kLetters = "b1248uvwxhgfdcz";
constexpr std::string_view kTable[] = {
    "b1248u...hgfdcz",  // bool
    "112482...hgfdcz",  // i8
    "222482...hgfdcz",  // i16
    "444484...hgfdcz",  // i32
    "888888...hgfdcz",  // i64
    "u2248u...hgfdcz",  // ui8
    "......v..hgfd..",  // ui16
    ".......w.hgfd..",  // ui32
    "........xhgfd..",  // ui64
    "hhhhhhhhhhffdcz",  // f16
    "gggggggggfgfdcz",  // bf16
    "ffffffffffffdcz",  // f32
    "dddddddddddddzz",  // f64
    "cccccc...ccczcz",  // complex<f32>
    "zzzzzz...zzzzzz",  // complex<f64>
};

TEST(DType, PromotesAsTorchDoes) {
  for (size_t i = 0; i < kLetters.size(); ++i)
    for (size_t j = 0; j < kLetters.size(); ++j) {
      const char expected = kTable[i][j];
      if (expected == '.') continue;
      EXPECT_EQ(name(promote(kOrder[i], kOrder[j])), name(kOrder[kLetters.find(expected)]))
          << name(kOrder[i]) << " with " << name(kOrder[j]);
    }
}

TEST(DType, PromotionIsSymmetricAndHoldsBothSides) {
  for (int i = 0; i < kTypes; ++i)
    for (int j = 0; j < kTypes; ++j) {
      const auto a = static_cast<DType>(i), b = static_cast<DType>(j);
      EXPECT_EQ(promote(a, b), promote(b, a)) << name(a) << " with " << name(b);
      EXPECT_EQ(promote(a, promote(a, b)), promote(a, b)) << name(a) << " with " << name(b);
    }
}

TEST(DType, WideUnsignedTakesTheNextSignedWithSigned) {
  EXPECT_EQ(promote(U16, Bool), U16);
  EXPECT_EQ(promote(U16, U8), U16);
  EXPECT_EQ(promote(U32, U64), U64);
  EXPECT_EQ(promote(U64, C64), C64);
  EXPECT_EQ(promote(U16, S8), S32);
  EXPECT_EQ(promote(U16, S32), S32);
  EXPECT_EQ(promote(U32, S16), S64);
  EXPECT_EQ(promote(U64, S64), S64);
}

TEST(DType, NamesAndSizes) {
  EXPECT_EQ(name(Bool), "i1");
  EXPECT_EQ(name(S8), "i8");
  EXPECT_EQ(name(U64), "ui64");
  EXPECT_EQ(name(BF16), "bf16");
  EXPECT_EQ(name(C128), "complex<f64>");
  EXPECT_EQ(name(F8E4M3), "f8E4M3FN");
  EXPECT_EQ(size_of(Bool), 1);
  EXPECT_EQ(size_of(U16), 2);
  EXPECT_EQ(size_of(BF16), 2);
  EXPECT_EQ(size_of(F32), 4);
  EXPECT_EQ(size_of(C64), 8);
  EXPECT_EQ(size_of(C128), 16);
  EXPECT_EQ(size_of(F8E5M2), 1);
}

TEST(DType, KindsPartitionTheTypes) {
  for (int i = 0; i < kTypes; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ((t == Bool) + is_int(t) + is_float(t) + is_complex(t), 1) << name(t);
    EXPECT_EQ(is_int(t), is_signed_int(t) != is_unsigned_int(t)) << name(t);
  }
}

TEST(DType, RealComplexAndComputeTypes) {
  EXPECT_EQ(real_of(C64), F32);
  EXPECT_EQ(real_of(C128), F64);
  EXPECT_EQ(real_of(S32), S32);
  EXPECT_EQ(complex_of(F64), C128);
  EXPECT_EQ(complex_of(F16), C64);
  EXPECT_EQ(complex_of(C128), C128);
  EXPECT_EQ(compute_type(BF16), F32);
  EXPECT_EQ(compute_type(F8E4M3), F32);
  EXPECT_EQ(compute_type(F64), F64);
  EXPECT_EQ(compute_type(S8), S8);
}

}  // namespace
}  // namespace tpu
