#include "core/hlo/builder.h"

#include <limits>

#include "core/hlo/evaluate.h"

namespace tpu::hlo {
namespace {

using namespace tpu::testing;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
using C = std::complex<double>;

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) n++;
  return n;
}

TEST(Builder, TextIsDeterministicAndPlain) {
  const auto body = [](Builder& b, const Values& x) {
    return Values{reduce_sum(x[0] * 2.0 + b.constant(2, DType::F32), {0})};
  };
  const std::string first = write_module({{DType::F32, {3}}}, body);
  EXPECT_EQ(first, write_module({{DType::F32, {3}}}, body));
  EXPECT_EQ(first.find("loc("), std::string::npos);
  EXPECT_EQ(first.rfind("module @program {\nfunc.func public @main(%0: tensor<3xf32>) -> (tensor<f32>) {", 0),
            0u)
      << first;
}

TEST(Builder, EqualConstantsAreWrittenOnce) {
  const std::string text = write_module({}, [](Builder& b, const Values&) {
    return Values{b.constant(1, DType::F32), b.constant(1.0, DType::F32), b.constant(1.0, DType::F64),
                  b.constant(1, DType::F32, {2})};
  });
  EXPECT_EQ(count(text, "stablehlo.constant"), 3u);
}

TEST(Builder, ConstantsInsideARegionAreTheirOwn) {
  const std::string text = write_module({{DType::F32, {3}}}, [](Builder& b, const Values& x) {
    Value zero = b.constant(0, DType::F32);
    return Values{reduce(x[0], zero, {0}, [](Value l, Value r) { return l + (r + 0.0); })};
  });
  EXPECT_EQ(count(text, "stablehlo.constant"), 2u);
  expect_numbers(execute(text, {array(DType::F32, {3}, {1, 2, 3})})[0], {6});
}

TEST(Builder, AliasedParameterIsMarked) {
  Builder b;
  Value x = b.parameter({DType::F32, {2}}), y = b.parameter({DType::F32, {2}});
  const std::string text = b.finish({x + y, x * y}, {-1, 1});
  EXPECT_EQ(count(text, "tf.aliasing_output"), 1u);
  EXPECT_NE(text.find("%1: tensor<2xf32> {tf.aliasing_output = 1 : i32}"), std::string::npos) << text;
  const auto out = execute(text, {array(DType::F32, {2}, {1, 2}), array(DType::F32, {2}, {3, 4})});
  expect_numbers(out[0], {4, 6});
  expect_numbers(out[1], {3, 8});
}

struct Constant {
  DType dtype;
  double value;
  C want;
};

// What each type makes of a double: rounding to nearest even, overflow to infinity, wrapping integers.
const Constant kConstants[] = {
    {DType::F32, 0.1, 0.1f},
    {DType::F32, 1e39, kInf},
    {DType::F32, -kInf, -kInf},
    {DType::F32, kNan, kNan},
    {DType::F32, 1e-45, 1e-45f},
    {DType::F64, 0.1, 0.1},
    {DType::F64, kNan, kNan},
    {DType::F64, kInf, kInf},
    {DType::F16, 65519, 65504},
    {DType::F16, 65520, kInf},
    {DType::F16, -1e30, -kInf},
    {DType::F16, kNan, kNan},
    {DType::F16, 0.1, static_cast<double>(static_cast<_Float16>(0.1f))},
    {DType::BF16, 1.00390625, 1},
    {DType::BF16, 1.01171875, 1.015625},
    {DType::BF16, 3.39e38, 3.3895313892515355e38},
    {DType::BF16, 3.4e38, kInf},
    {DType::BF16, -kInf, -kInf},
    {DType::BF16, kNan, kNan},
    {DType::S8, 300, 44},
    {DType::S8, -129, 127},
    {DType::U8, -1, 255},
    {DType::S16, 32768, -32768},
    {DType::U16, 65537, 1},
    {DType::S32, 2147483648.0, -2147483648.0},
    {DType::U32, -1, 4294967295.0},
    {DType::S32, 2.9, 2},
    {DType::S32, -2.9, -2},
    {DType::S64, -5, -5},
    {DType::U64, 1e19, 1e19},
    {DType::Bool, 0, 0},
    {DType::Bool, 0.5, 1},
    {DType::Bool, kNan, 1},
    {DType::C64, 2.5, 2.5},
    {DType::C128, -kInf, -kInf},
};

TEST(Builder, ConstantsOfEveryType) {
  const auto out = evaluate({}, [](Builder& b, const Values&) {
    Values values;
    for (const Constant& c : kConstants) values.push_back(b.constant(c.value, c.dtype, {2}));
    return values;
  });
  for (size_t i = 0; i < out.size(); i++) {
    const Constant& c = kConstants[i];
    expect_array(out[i], c.dtype, {2}, {c.want, c.want}, 0, text(name(c.dtype), " ", c.value));
  }
}

TEST(Builder, IntegerConstantsAreExact) {
  const int64_t big = std::numeric_limits<int64_t>::max(), low = std::numeric_limits<int64_t>::min();
  const auto out = evaluate({}, [&](Builder& b, const Values&) {
    return Values{b.constant(big, DType::S64),
                  b.constant(low, DType::S64),
                  b.constant(int64_t{-1}, DType::U64),
                  b.constant(int64_t{257}, DType::U8),
                  b.constant(2, DType::Bool),
                  b.constant(7, DType::F32),
                  b.constants({3, -1, 300}, DType::S64),
                  b.constants({}, DType::S32),
                  b.constants({3, 4}, DType::U8),
                  b.constants({1, 0}, DType::Bool)};
  });
  EXPECT_EQ(out[0].as<int64_t>(), std::vector<int64_t>{big});
  EXPECT_EQ(out[1].as<int64_t>(), std::vector<int64_t>{low});
  EXPECT_EQ(out[2].as<uint64_t>(), std::vector<uint64_t>{~0ull});
  expect_numbers(out[3], {1});
  expect_numbers(out[4], {1});
  expect_numbers(out[5], {7});
  expect_numbers(out[6], {3, -1, 300});
  expect_array(out[7], DType::S32, {0}, {});
  expect_numbers(out[8], {3, 4});
  expect_numbers(out[9], {1, 0});
}

TEST(Builder, ComplexConstants) {
  const auto out = evaluate({}, [](Builder& b, const Values&) {
    return Values{b.constant(C(1.5, -2), DType::C64), b.constant(C(kNan, kInf), DType::C128, {2}),
                  b.constant(C(0, 1e39), DType::C64)};
  });
  expect_array(out[0], DType::C64, {}, {C(1.5, -2)});
  expect_array(out[1], DType::C128, {2}, {C(kNan, kInf), C(kNan, kInf)});
  expect_array(out[2], DType::C64, {}, {C(0, kInf)});
}

TEST(Builder, EmptyConstants) {
  const auto out = evaluate({}, [](Builder& b, const Values&) {
    return Values{b.constant(1.0, DType::F32, {0, 3}), full(b, 2, {DType::S64, {2, 0}})};
  });
  expect_array(out[0], DType::F32, {0, 3}, {});
  expect_array(out[1], DType::S64, {2, 0}, {});
}

TEST(Builder, EightBitFloatsOverflowAsTorchDoes) {
  const auto out = evaluate({}, [](Builder& b, const Values&) {
    Values v;
    for (double x : {448.0, 464.0, 465.0, kInf, -1.0}) v.push_back(b.constant(x, DType::F8E4M3));
    for (double x : {57344.0, 61439.0, 61440.0, -kInf, kNan}) v.push_back(b.constant(x, DType::F8E5M2));
    for (Value& x : v) x = bitcast(x, DType::U8);
    return v;
  });
  const double want[] = {0x7E, 0x7E, 0x7F, 0x7F, 0xB8, 0x7B, 0x7B, 0x7C, 0xFC};
  for (size_t i = 0; i < std::size(want); i++) expect_numbers(out[i], {want[i]}, 0, std::to_string(i));
  EXPECT_GT(numbers(out[9])[0].real(), 0x7C);  // any NaN
}

TEST(Type, Spelling) {
  EXPECT_EQ((Type{DType::C64, {2, 0}}).str(), "tensor<2x0xcomplex<f32>>");
  EXPECT_EQ((Type{DType::Bool, {}}).str(), "tensor<i1>");
  EXPECT_EQ(i64_array({}), "array<i64>");
  EXPECT_EQ(i64_array(Dims{1, -2}), "array<i64: 1, -2>");
  EXPECT_EQ(str(Dims{1, 2}), "[1, 2]");
  EXPECT_EQ(row_major(Dims{2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(product(Dims{}), 1);
  EXPECT_EQ((Type{DType::F32, {3, 0, 2}}).elements(), 0);
}

TEST(Value, NegativeSizesCountFromTheEnd) {
  Builder b;
  Value x = b.parameter({DType::F32, {2, 3}});
  EXPECT_EQ(x.size(-1), 3);
  EXPECT_EQ(x.size(0), 2);
  EXPECT_FALSE(static_cast<bool>(Value()));
  EXPECT_TRUE(static_cast<bool>(x));
}

}  // namespace
}  // namespace tpu::hlo
