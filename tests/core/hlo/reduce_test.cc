#include <limits>

#include "core/hlo/evaluate.h"

namespace tpu::hlo {
namespace {

using namespace tpu::testing;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
using C = std::complex<double>;

struct Case {
  const char* name;
  Value (*f)(Value, const Dims&);
  DType dtype;
  Dims from, over, to;
  Numbers x, y;
};

const Case kCases[] = {
    {"sum", reduce_sum, DType::F32, {2, 3}, {1}, {2}, {1, 2, 3, 4, 5, 6}, {6, 15}},
    {"sum of all", reduce_sum, DType::S32, {2, 2}, {0, 1}, {}, {1, 2, 3, 4}, {10}},
    {"sum over no dims", reduce_sum, DType::S32, {2}, {}, {2}, {1, 2}, {1, 2}},
    {"sum of nothing", reduce_sum, DType::F32, {0, 2}, {0}, {2}, {}, {0, 0}},
    {"sum complex", reduce_sum, DType::C64, {2}, {0}, {}, {C(1, 2), C(3, 4)}, {C(4, 6)}},
    {"prod", reduce_prod, DType::F64, {2, 2}, {0}, {2}, {1, 2, 3, 4}, {3, 8}},
    {"prod of nothing", reduce_prod, DType::S64, {0}, {0}, {}, {}, {1}},
    {"max", reduce_max, DType::S8, {3}, {0}, {}, {-128, -3, -100}, {-3}},
    {"max -inf", reduce_max, DType::F32, {2}, {0}, {}, {-kInf, -kInf}, {-kInf}},
    {"max of nothing", reduce_max, DType::S64, {0}, {0}, {}, {}, {-9223372036854775808.0}},
    {"max NaN first", reduce_max, DType::F32, {3}, {0}, {}, {kNan, 1, 2}, {kNan}},
    {"max NaN last", reduce_max, DType::F32, {3}, {0}, {}, {1, 2, kNan}, {kNan}},
    {"max NaN f64", reduce_max, DType::F64, {4}, {0}, {}, {1, kNan, 2, kInf}, {kNan}},
    {"max NaN bf16", reduce_max, DType::BF16, {3}, {0}, {}, {1, kNan, 2}, {kNan}},
    {"max NaN f16", reduce_max, DType::F16, {3}, {0}, {}, {1, kNan, 2}, {kNan}},
    {"max NaN by rows", reduce_max, DType::F32, {2, 2}, {0}, {2}, {1, kNan, 2, 3}, {2, kNan}},
    {"max bool", reduce_max, DType::Bool, {2, 2}, {1}, {2}, {0, 0, 0, 1}, {0, 1}},
    {"min", reduce_min, DType::U8, {3}, {0}, {}, {200, 3, 255}, {3}},
    {"min of nothing", reduce_min, DType::F32, {0}, {0}, {}, {}, {kInf}},
    {"min NaN", reduce_min, DType::F32, {3}, {0}, {}, {1, kNan, -kInf}, {kNan}},
    {"min bool", reduce_min, DType::Bool, {2, 2}, {1}, {2}, {0, 1, 1, 1}, {0, 1}},
    {"and bool", reduce_and, DType::Bool, {2, 2}, {1}, {2}, {0, 1, 1, 1}, {0, 1}},
    {"and s32", reduce_and, DType::S32, {2}, {0}, {}, {12, 10}, {8}},
    {"or bool", reduce_or, DType::Bool, {2, 2}, {1}, {2}, {0, 0, 0, 1}, {0, 1}},
    {"or of nothing", reduce_or, DType::Bool, {0}, {0}, {}, {}, {0}},
    {"or u8", reduce_or, DType::U8, {2}, {0}, {}, {12, 3}, {15}},
};

TEST(Reduce, EveryFunction) {
  std::vector<Array> inputs;
  for (const Case& c : kCases) inputs.push_back(array(c.dtype, c.from, c.x));
  const auto out = evaluate(inputs, [](Builder&, const Values& x) {
    Values y;
    for (size_t i = 0; i < x.size(); i++) y.push_back(kCases[i].f(x[i], kCases[i].over));
    return y;
  });
  for (size_t i = 0; i < out.size(); i++)
    expect_array(out[i], kCases[i].dtype, kCases[i].to, kCases[i].y, 0, kCases[i].name);
}

// Long enough that the CPU vectorises it.
TEST(Reduce, NanWinsAnywhereInALongRow) {
  std::vector<Array> inputs;
  for (int at : {0, 1, 517, 1023}) {
    Numbers x(1024, 1.0);
    x[at] = kNan;
    inputs.push_back(array(DType::F32, {1024}, x));
  }
  const auto out = evaluate(inputs, [](Builder&, const Values& x) {
    Values y;
    for (Value v : x)
      y.insert(y.end(), {reduce_max(v, {0}), reduce_min(v, {0}), arg_reduce(v, 0, true, DType::S32).second});
    return y;
  });
  const double at[] = {0, 1, 517, 1023};
  for (size_t i = 0; i < 4; i++) {
    expect_numbers(out[3 * i], {kNan});
    expect_numbers(out[3 * i + 1], {kNan});
    expect_numbers(out[3 * i + 2], {at[i]});
  }
}

TEST(Reduce, SeveralOperandsTogether) {
  const auto out = evaluate(
      {array(DType::F32, {3}, {1, 2, 3}), array(DType::S32, {3}, {4, 5, 6})}, [](Builder&, const Values& x) {
        return reduce({x[0], x[1]}, {like(x[0], 0), like(x[1], 1)}, {0},
                      [](const Values& l, const Values& r) { return Values{l[0] + r[0], l[1] * r[1]}; });
      });
  expect_array(out[0], DType::F32, {}, {6});
  expect_array(out[1], DType::S32, {}, {120});
}

struct Arg {
  DType dtype;
  Numbers x;
  size_t first_max, first_min;
};

const Arg kArgs[] = {
    {DType::F32, {1, 3, 3, -1, -1}, 1, 3},
    {DType::F32, {1, kNan, 3, kNan, 0}, 1, 1},
    {DType::F32, {-kInf, -kInf}, 0, 0},
    {DType::F32, {kInf, kInf, 1}, 0, 2},
    {DType::F32, {0.0, -0.0}, 0, 0},
    {DType::BF16, {2, kNan, 3}, 1, 1},
    {DType::S64, {-9223372036854775808.0, -9223372036854775808.0}, 0, 0},
    {DType::S8, {127, -128, 127}, 0, 1},
    {DType::U8, {0, 255, 255, 0}, 1, 0},
    {DType::Bool, {0, 1, 1, 0}, 1, 0},
    {DType::Bool, {1, 1}, 0, 0},
};

TEST(ArgReduce, FirstOfEqualsFirstNan) {
  std::vector<Array> inputs;
  for (const Arg& c : kArgs) inputs.push_back(array(c.dtype, {static_cast<int64_t>(c.x.size())}, c.x));
  const auto out = evaluate(inputs, [](Builder&, const Values& x) {
    Values y;
    for (Value v : x)
      for (bool largest : {true, false}) {
        auto [value, index] = arg_reduce(v, -1, largest, DType::S64);
        y.insert(y.end(), {value, index});
      }
    return y;
  });
  for (size_t i = 0; i < std::size(kArgs); i++) {
    const Arg& c = kArgs[i];
    const std::string what = text("case ", i);
    expect_array(out[4 * i], c.dtype, {}, {c.x[c.first_max]}, 0, what);
    expect_array(out[4 * i + 1], DType::S64, {}, {static_cast<double>(c.first_max)}, 0, what);
    expect_array(out[4 * i + 2], c.dtype, {}, {c.x[c.first_min]}, 0, what);
    expect_array(out[4 * i + 3], DType::S64, {}, {static_cast<double>(c.first_min)}, 0, what);
  }
}

TEST(ArgReduce, AlongADim) {
  const auto out = evaluate({array(DType::F32, {2, 3}, {1, 5, 2, 4, 3, 6})}, [](Builder&, const Values& x) {
    return Values{arg_reduce(x[0], 0, true, DType::S32).second,
                  arg_reduce(x[0], 1, false, DType::S32).second};
  });
  expect_array(out[0], DType::S32, {3}, {1, 0, 1});
  expect_array(out[1], DType::S32, {2}, {0, 1});
}

TEST(ReduceWindow, SumsAndPads) {
  const auto out = evaluate({array(DType::F32, {5}, {1, 2, 3, 4, 5})}, [](Builder&, const Values& x) {
    Window plain{{2}, {}, {}, {}, {}}, padded{{3}, {2}, {}, {}, {{1, 1}}}, dilated{{2}, {1}, {}, {2}, {}},
        spread{{1}, {1}, {2}, {}, {}}, prefix{{5}, {}, {}, {}, {{4, 0}}};
    Values y;
    for (const Window& w : {plain, padded, dilated, spread, prefix})
      y.push_back(reduce_window(x[0], like(x[0], 0), w, add));
    return y;
  });
  expect_array(out[0], DType::F32, {4}, {3, 5, 7, 9});
  expect_array(out[1], DType::F32, {3}, {3, 9, 9});
  expect_array(out[2], DType::F32, {3}, {4, 6, 8});
  expect_array(out[3], DType::F32, {9}, {1, 0, 2, 0, 3, 0, 4, 0, 5});
  expect_array(out[4], DType::F32, {5}, {1, 3, 6, 10, 15});
}

TEST(ReduceWindow, SeveralOperands) {
  const auto out =
      evaluate({array(DType::F32, {1, 4}, {3, 1, 2, 5}), array(DType::S32, {1, 4}, {0, 1, 2, 3})},
               [](Builder& b, const Values& x) {
                 Window w{{1, 2}, {1, 2}, {}, {}, {}};
                 return reduce_window({x[0], x[1]}, {lowest(b, DType::F32), like(x[1], -1)}, w,
                                      [](const Values& l, const Values& r) {
                                        Value left = l[0] >= r[0];
                                        return Values{select(left, l[0], r[0]), select(left, l[1], r[1])};
                                      });
               });
  expect_array(out[0], DType::F32, {1, 2}, {3, 5});
  expect_array(out[1], DType::S32, {1, 2}, {0, 3});
}

TEST(Reduce, LowestAndHighest) {
  struct {
    DType dtype;
    double low, high;
  } const cases[] = {
      {DType::Bool, 0, 1},       {DType::S8, -128, 127},     {DType::S16, -32768, 32767},
      {DType::U8, 0, 255},       {DType::U16, 0, 65535},     {DType::S32, -2147483648.0, 2147483647.0},
      {DType::F16, -kInf, kInf}, {DType::BF16, -kInf, kInf}, {DType::F64, -kInf, kInf}};
  const auto out = evaluate({}, [&](Builder& b, const Values&) {
    Values y;
    for (const auto& c : cases) y.insert(y.end(), {lowest(b, c.dtype), highest(b, c.dtype)});
    y.insert(y.end(), {lowest(b, DType::S64), highest(b, DType::S64), highest(b, DType::U64)});
    return y;
  });
  size_t i = 0;
  for (const auto& c : cases) {
    expect_array(out[i++], c.dtype, {}, {c.low});
    expect_array(out[i++], c.dtype, {}, {c.high});
  }
  EXPECT_EQ(out[i].as<int64_t>()[0], INT64_MIN);
  EXPECT_EQ(out[i + 1].as<int64_t>()[0], INT64_MAX);
  EXPECT_EQ(out[i + 2].as<uint64_t>()[0], UINT64_MAX);
}

}  // namespace
}  // namespace tpu::hlo
