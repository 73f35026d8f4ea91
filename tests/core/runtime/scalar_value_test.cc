#include <limits>

#include "core/runtime/world.h"

namespace tpu::runtime {
namespace {

using namespace tpu::testing;

constexpr double kInf = std::numeric_limits<double>::infinity();
using Kind = ScalarValue::Kind;

ScalarValue of(double v) { return {Kind::Float, 0, v, 0}; }
ScalarValue of(int64_t v) { return {Kind::Int, v, 0, 0}; }
ScalarValue of(std::complex<double> v) { return {Kind::Complex, 0, v.real(), v.imag()}; }

std::complex<double> as(const ScalarValue& v, DType t) {
  const auto bits = v.as(t);
  testing::Array one{t, {}, std::vector<char>(static_cast<size_t>(size_of(t)))};
  std::memcpy(one.bytes.data(), bits.data(), one.bytes.size());
  return numbers(one)[0];
}

TEST(ScalarValue, OneOfEveryType) {
  for (int i = 0; i <= static_cast<int>(DType::C128); i++) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(as(of(int64_t{1}), t), 1.0) << name(t);
    EXPECT_EQ(as(of(1.0), t), 1.0) << name(t);
    EXPECT_EQ(as(of(0.0), t), 0.0) << name(t);
    EXPECT_EQ(as(of(std::complex<double>(1, 0)), t), 1.0) << name(t);
  }
}

TEST(ScalarValue, RoundsToNearestEven) {
  EXPECT_EQ(as(of(0.1), DType::F32), static_cast<double>(0.1f));
  EXPECT_EQ(as(of(0.1), DType::F64), 0.1);
  EXPECT_EQ(as(of(1.00390625), DType::BF16), 1.0);       // half way, to even
  EXPECT_EQ(as(of(1.01171875), DType::BF16), 1.015625);  // half way, to even
  EXPECT_EQ(as(of(1.004), DType::BF16), 1.0078125);
  EXPECT_EQ(as(of(2049.0), DType::F16), 2048.0);
  EXPECT_EQ(as(of(2051.0), DType::F16), 2052.0);
  EXPECT_EQ(as(of(6e-8), DType::F16), std::ldexp(1.0, -24));  // subnormal
}

TEST(ScalarValue, OverflowAndNonFinite) {
  EXPECT_EQ(as(of(65520.0), DType::F16), kInf);
  EXPECT_EQ(as(of(65519.0), DType::F16), 65504.0);
  EXPECT_EQ(as(of(-3.4e38), DType::BF16), -kInf);
  EXPECT_EQ(as(of(1e39), DType::F32), kInf);
  for (DType t : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    EXPECT_TRUE(std::isnan(as(of(NAN), t).real())) << name(t);
    EXPECT_EQ(as(of(-kInf), t), -kInf) << name(t);
  }
  EXPECT_EQ(as(of(NAN), DType::Bool), 1.0);
}

TEST(ScalarValue, IntegersKeepAllTheirBitsAndWrap) {
  const int64_t big = (int64_t{1} << 53) + 1;
  EXPECT_EQ(static_cast<int64_t>(of(big).as(DType::S64)[0]), big);
  EXPECT_EQ(as(of(int64_t{300}), DType::U8), 44.0);
  EXPECT_EQ(as(of(int64_t{-1}), DType::U16), 65535.0);
  EXPECT_EQ(as(of(int64_t{128}), DType::S8), -128.0);
  EXPECT_EQ(of(int64_t{-1}).as(DType::U64)[0], ~0ull);
  EXPECT_EQ(as(of(-2.9), DType::S32), -2.0);
  EXPECT_EQ(as(of(1e19), DType::U64), 1e19);
  EXPECT_EQ(as(of(0.5), DType::Bool), 1.0);
  EXPECT_EQ(as(of(int64_t{256}), DType::Bool), 1.0);
  // One rounding: over double this would become 2^53.
  EXPECT_EQ(as(of((int64_t{1} << 53) + (int64_t{1} << 29) + 1), DType::F32),
            std::ldexp(1.0, 53) + std::ldexp(1.0, 30));
}

TEST(ScalarValue, Complex) {
  const std::complex<double> z(1.5, -2);
  EXPECT_EQ(as(of(z), DType::C64), z);
  EXPECT_EQ(as(of(z), DType::C128), z);
  EXPECT_EQ(as(of(int64_t{3}), DType::C64), 3.0);
  EXPECT_EQ(as(of(std::complex<double>(0, 1)), DType::Bool), 1.0);
}

TEST(ScalarValue, EightBitFloatsAreRefused) {
  for (DType t : {DType::F8E4M3, DType::F8E5M2}) EXPECT_THROW(of(1.0).as(t), Error);
}

}  // namespace
}  // namespace tpu::runtime
