#include <limits>

#include "core/base/error.h"
#include "core/hlo/evaluate.h"

namespace tpu::hlo {
namespace {

using namespace tpu::testing;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
using C = std::complex<double>;

struct Unary {
  const char* name;
  Value (*f)(Value);
  DType dtype;
  Numbers x;
  DType result;
  Numbers y;
  double tolerance = 0;
};

const Unary kUnary[] = {
    {"abs f32", abs, DType::F32, {-2, 3, -kInf, kNan}, DType::F32, {2, 3, kInf, kNan}},
    {"abs s8", abs, DType::S8, {-128, -3, 4}, DType::S8, {-128, 3, 4}},
    {"abs u8", abs, DType::U8, {200, 0}, DType::U8, {200, 0}},
    {"abs bool", abs, DType::Bool, {1, 0}, DType::Bool, {1, 0}},
    {"abs complex", abs, DType::C64, {C(3, -4), C(0, 2)}, DType::F32, {5, 2}, 1e-6},
    {"negate f64", negate, DType::F64, {1.5, -kInf, 0}, DType::F64, {-1.5, kInf, -0.0}},
    {"negate u8", negate, DType::U8, {1, 0}, DType::U8, {255, 0}},
    {"exp", exp, DType::F32, {0, 1, -kInf, kInf}, DType::F32, {1, 2.718281828459045, 0, kInf}, 1e-6},
    {"exp complex", exp, DType::C128, {C(0, M_PI)}, DType::C128, {C(-1, 0)}, 1e-12},
    {"expm1", expm1, DType::F64, {1e-10, 1, 0}, DType::F64, {1.00000000005e-10, 1.718281828459045, 0}, 1e-14},
    {"log", log, DType::F32, {1, 0, -1, 2}, DType::F32, {0, -kInf, kNan, 0.6931471805599453}, 1e-6},
    {"log1p", log1p, DType::F64, {1e-10, 0, -1}, DType::F64, {9.9999999995e-11, 0, -kInf}, 1e-14},
    {"sqrt", sqrt, DType::F32, {4, 0, -1, kInf}, DType::F32, {2, 0, kNan, kInf}},
    {"sqrt complex", sqrt, DType::C128, {C(-4, 0), C(3, 4)}, DType::C128, {C(0, 2), C(2, 1)}, 1e-12},
    {"rsqrt", rsqrt, DType::F32, {4, 0}, DType::F32, {0.5, kInf}, 1e-6},
    {"cbrt", cbrt, DType::F64, {-27, 8}, DType::F64, {-3, 2}, 1e-12},
    {"sin", sin, DType::F32, {0, 1, 1000}, DType::F32, {0, 0.8414709848, 0.8268795405}, 1e-6},
    {"cos", cos, DType::F32, {0, 1, kInf}, DType::F32, {1, 0.5403023058, kNan}, 1e-6},
    {"tan", tan, DType::F64, {0, 1}, DType::F64, {0, 1.5574077246549023}, 1e-12},
    {"tanh", tanh, DType::F32, {0, 0.5, 100}, DType::F32, {0, 0.46211715726, 1}, 1e-6},
    {"logistic", logistic, DType::F64, {0, 2, -1000}, DType::F64, {0.5, 0.8807970779778823, 0}, 1e-12},
    {"erf f32",
     erf,
     DType::F32,
     {0, 0.5, -1, 4, kInf, kNan},
     DType::F32,
     {0, 0.5204998778, -0.8427007929, 0.9999999846, 1, kNan},
     1e-6},
    {"erf f64",
     erf,
     DType::F64,
     {0.5, -2, 1e-9},
     DType::F64,
     {0.5204998778130465, -0.9953222650189527, 1.1283791670955126e-09},
     1e-14},
    {"erf bf16", erf, DType::BF16, {0.5, -1}, DType::BF16, {0.5204998778, -0.8427007929}, 4e-3},
    {"floor", floor, DType::F32, {1.5, -1.5, 2}, DType::F32, {1, -2, 2}},
    {"ceil", ceil, DType::F32, {1.5, -1.5, 2}, DType::F32, {2, -1, 2}},
    {"round_even", round_even, DType::F32, {0.5, 1.5, 2.5, -0.5}, DType::F32, {0, 2, 2, -0.0}},
    {"sign f32", sign, DType::F32, {-3, 0, 5, kNan}, DType::F32, {-1, 0, 1, kNan}},
    {"sign s32", sign, DType::S32, {-3, 0, 5}, DType::S32, {-1, 0, 1}},
    {"sign u8", sign, DType::U8, {0, 200}, DType::U8, {0, 1}},
    {"sign bool", sign, DType::Bool, {0, 1}, DType::Bool, {0, 1}},
    {"sign complex", sign, DType::C64, {C(3, 4), C(0, 0)}, DType::C64, {C(0.6, 0.8), C(0, 0)}, 1e-6},
    {"not bool", logical_not, DType::Bool, {0, 1}, DType::Bool, {1, 0}},
    {"not s32", logical_not, DType::S32, {0, 5}, DType::S32, {-1, -6}},
    {"popcount", popcount, DType::U8, {0, 7, 255}, DType::U8, {0, 3, 8}},
    {"leading zeros", count_leading_zeros, DType::S32, {0, 1, -1}, DType::S32, {32, 31, 0}},
    {"is_finite", is_finite, DType::F32, {1, kInf, kNan}, DType::Bool, {1, 0, 0}},
    {"is_nan f32", is_nan, DType::F32, {1, kInf, kNan}, DType::Bool, {0, 0, 1}},
    {"is_nan s64", is_nan, DType::S64, {1, 2}, DType::Bool, {0, 0}},
    {"is_nan complex", is_nan, DType::C64, {C(1, kNan), C(kNan, 0), C(1, 2)}, DType::Bool, {1, 1, 0}},
    {"real", real, DType::C64, {C(1, 2)}, DType::F32, {1}},
    {"real of real", real, DType::F32, {7}, DType::F32, {7}},
    {"imag", imag, DType::C128, {C(1, 2)}, DType::F64, {2}},
    {"imag of real", imag, DType::F32, {7}, DType::F32, {0}},
};

TEST(Elementwise, OneOperand) {
  std::vector<Array> inputs;
  for (const Unary& c : kUnary) inputs.push_back(array(c.dtype, {static_cast<int64_t>(c.x.size())}, c.x));
  const auto out = evaluate(inputs, [](Builder&, const Values& x) {
    Values y;
    for (size_t i = 0; i < x.size(); i++) y.push_back(kUnary[i].f(x[i]));
    return y;
  });
  for (size_t i = 0; i < out.size(); i++) {
    const Unary& c = kUnary[i];
    expect_array(out[i], c.result, inputs[i].dims, c.y, c.tolerance, c.name);
  }
}

struct Binary {
  const char* name;
  Value (*f)(Value, Value);
  DType dtype;
  Numbers x, y, z;
  double tolerance = 0;
};

const Binary kBinary[] = {
    {"add", add, DType::F32, {1, kInf}, {2, -kInf}, {3, kNan}},
    {"add wraps", add, DType::S8, {127, -128}, {1, -1}, {-128, 127}},
    {"add bool is or", add, DType::Bool, {1, 0, 1}, {1, 0, 0}, {1, 0, 1}},
    {"subtract", subtract, DType::U8, {1, 5}, {2, 3}, {255, 2}},
    {"multiply", multiply, DType::C64, {C(1, 2)}, {C(3, -1)}, {C(5, 5)}, 1e-6},
    {"multiply wraps", multiply, DType::S32, {1 << 20}, {1 << 20}, {0}},
    {"divide f32", divide, DType::F32, {1, -1, 0}, {0, 0, 0}, {kInf, -kInf, kNan}},
    {"divide truncates", divide, DType::S32, {-7, 7}, {2, -2}, {-3, -3}},
    {"remainder s32", remainder, DType::S32, {-7, 7}, {3, -3}, {-1, 1}},
    {"remainder f64", remainder, DType::F64, {-7.5, 7.5}, {2, -2}, {-1.5, 1.5}},
    {"maximum", maximum, DType::F32, {1, kNan, 2, kNan}, {3, 1, kNan, kNan}, {3, kNan, kNan, kNan}},
    {"minimum", minimum, DType::F32, {1, kNan, 2, -kInf}, {3, 1, kNan, 5}, {1, kNan, kNan, -kInf}},
    {"maximum f64", maximum, DType::F64, {kNan, 2}, {1, kNan}, {kNan, kNan}},
    {"maximum bf16", maximum, DType::BF16, {kNan, 2}, {1, kNan}, {kNan, kNan}},
    {"maximum f16", maximum, DType::F16, {kNan, 2}, {1, kNan}, {kNan, kNan}},
    {"maximum u8", maximum, DType::U8, {200, 1}, {100, 255}, {200, 255}},
    {"maximum bool", maximum, DType::Bool, {1, 0}, {0, 0}, {1, 0}},
    {"power f64", power, DType::F64, {2, -2, 0, kNan}, {10, 3, 0, 0}, {1024, -8, 1, 1}, 1e-12},
    {"power s32", power, DType::S32, {3, -2}, {4, 3}, {81, -8}},
    {"atan2", atan2, DType::F64, {1, -1, 0}, {-1, 0, -1}, {2.356194490192345, -M_PI_2, M_PI}, 1e-12},
    {"and bool", logical_and, DType::Bool, {1, 1, 0}, {1, 0, 0}, {1, 0, 0}},
    {"and s32", logical_and, DType::S32, {12}, {10}, {8}},
    {"or u8", logical_or, DType::U8, {12}, {10}, {14}},
    {"xor bool", logical_xor, DType::Bool, {1, 1}, {1, 0}, {0, 1}},
    {"shift_left", shift_left, DType::S32, {3, 1, 5}, {2, 31, 32}, {12, -2147483648.0, 0}},
    {"shift_right_arithmetic", shift_right_arithmetic, DType::S32, {-8, -8}, {1, 40}, {-4, -1}},
    {"shift_right_logical", shift_right_logical, DType::S8, {-8}, {1}, {124}},
    {"operator +", operator+, DType::F32, {1}, {2}, {3}},
    {"operator -", operator-, DType::F32, {1}, {2}, {-1}},
    {"operator *", operator*, DType::F32, {3}, {2}, {6}},
    {"operator /", operator/, DType::F32, {1}, {2}, {0.5}},
    {"operator &", operator&, DType::U8, {6}, {3}, {2}},
    {"operator |", operator|, DType::U8, {6}, {3}, {7}},
    {"operator ^", operator^, DType::U8, {6}, {3}, {5}},
};

TEST(Elementwise, TwoOperands) {
  std::vector<Array> inputs;
  for (const Binary& c : kBinary)
    for (const Numbers& v : {c.x, c.y}) inputs.push_back(array(c.dtype, {static_cast<int64_t>(v.size())}, v));
  const auto out = evaluate(inputs, [](Builder&, const Values& x) {
    Values z;
    for (size_t i = 0; i < std::size(kBinary); i++) z.push_back(kBinary[i].f(x[2 * i], x[2 * i + 1]));
    return z;
  });
  for (size_t i = 0; i < out.size(); i++) {
    const Binary& c = kBinary[i];
    expect_array(out[i], c.dtype, inputs[2 * i].dims, c.z, c.tolerance, c.name);
  }
}

TEST(Elementwise, Compare) {
  const Numbers x{1, 2, 3, kNan}, y{2, 2, 2, kNan};
  // EQ, NE, LT, LE, GT, GE of smaller, equal, larger, unordered
  const Numbers want[] = {{0, 1, 0, 0}, {1, 0, 1, 1}, {1, 0, 0, 0}, {1, 1, 0, 0}, {0, 0, 1, 0}, {0, 1, 1, 0}};
  const auto out =
      evaluate({array(DType::F32, {4}, x), array(DType::F32, {4}, y)}, [](Builder&, const Values& v) {
        return Values{equal(v[0], v[1]), not_equal(v[0], v[1]), v[0]<v[1], v[0] <= v[1], v[0]> v[1],
                      v[0] >= v[1]};
      });
  for (int i = 0; i < 6; i++) expect_array(out[i], DType::Bool, {4}, want[i]);
}

TEST(Elementwise, CompareKnowsTheSign) {
  const auto out =
      evaluate({array(DType::U8, {1}, {200}), array(DType::U8, {1}, {100}), array(DType::S8, {1}, {-1}),
                array(DType::S8, {1}, {1}), array(DType::Bool, {1}, {0}), array(DType::Bool, {1}, {1}),
                array(DType::C64, {2}, {C(1, 2), C(1, 3)}), array(DType::C64, {2}, {C(1, 2), C(1, 2)})},
               [](Builder&, const Values& v) {
                 return Values{v[0] > v[1], v[2] < v[3], v[4] < v[5], equal(v[6], v[7])};
               });
  for (int i = 0; i < 3; i++) expect_numbers(out[i], {1});
  expect_numbers(out[3], {1, 0});
}

TEST(Elementwise, OperandsBroadcast) {
  const auto out =
      evaluate({array(DType::F32, {2, 1}, {1, 2}), array(DType::F32, {3}, {10, 20, 30}),
                array(DType::Bool, {3}, {1, 0, 1}), array(DType::F32, {}, {7})},
               [](Builder&, const Values& v) {
                 return Values{v[0] + v[1], select(v[2], v[0], v[3]), complex(v[0], v[3]), v[0] < v[1]};
               });
  expect_array(out[0], DType::F32, {2, 3}, {11, 21, 31, 12, 22, 32});
  expect_array(out[1], DType::F32, {2, 3}, {1, 7, 1, 2, 7, 2});
  expect_array(out[2], DType::C64, {2, 1}, {C(1, 7), C(2, 7)});
  expect_array(out[3], DType::Bool, {2, 3}, {1, 1, 1, 1, 1, 1});
}

TEST(Elementwise, NumbersBesideValues) {
  const auto out = evaluate({array(DType::F32, {2}, {1, 4})}, [](Builder&, const Values& v) {
    Value x = v[0];
    return Values{x + 1.0, x - 1.0, x * 3.0,  x / 2.0, 1.0 + x,  1.0 - x,         3.0 * x,   2.0 / x,
                  -x,      x < 2.0, x <= 1.0, x > 1.0, x >= 4.0, full_like(x, 9), !(x < 2.0)};
  });
  const Numbers want[] = {{2, 5},   {0, 3}, {3, 12}, {0.5, 2}, {2, 5}, {0, -3}, {3, 12}, {2, 0.5},
                          {-1, -4}, {1, 0}, {1, 0},  {0, 1},   {0, 1}, {9, 9},  {0, 1}};
  for (size_t i = 0; i < out.size(); i++) expect_numbers(out[i], want[i], 0, std::to_string(i));
}

TEST(Elementwise, MixedTypesAndShapesAreRefused) {
  Builder b;
  Value x = b.parameter({DType::F32, {2}}), y = b.parameter({DType::F64, {2}}),
        z = b.parameter({DType::F32, {3}});
  EXPECT_THROW(x + y, Error);
  EXPECT_THROW(x < y, Error);
  EXPECT_THROW(select(x < x, x, y), Error);
  EXPECT_THROW(x + z, Error);
  EXPECT_THROW(b.emit("stablehlo.negate", {Value()}, x.type()), Error);
}

}  // namespace
}  // namespace tpu::hlo
