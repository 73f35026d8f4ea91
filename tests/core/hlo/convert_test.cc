#include <limits>

#include "core/hlo/evaluate.h"

namespace tpu::hlo {
namespace {

using namespace tpu::testing;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
using C = std::complex<double>;

struct Case {
  DType from;
  Numbers x;
  DType to;
  Numbers y;
};

const Case kCases[] = {
    {DType::F32, {1.9, -1.9, -0.5}, DType::S32, {1, -1, 0}},
    {DType::F32, {300, -1, 255.9}, DType::U8, {44, 255, 255}},
    {DType::F32, {200, -129}, DType::S8, {-56, 127}},
    {DType::F64, {-1, 5e9}, DType::U32, {4294967295.0, 705032704.0}},
    {DType::F64, {1.5, -2.5}, DType::S64, {1, -2}},
    {DType::F32, {0.1, 0, -0.0, kNan, kInf}, DType::Bool, {1, 0, 0, 1, 1}},
    {DType::S32, {256, 0, -1}, DType::Bool, {1, 0, 1}},
    {DType::C64, {C(0, 1), C(0, 0), C(1, 0)}, DType::Bool, {1, 0, 1}},
    {DType::Bool, {1, 0}, DType::F32, {1, 0}},
    {DType::Bool, {1, 0}, DType::S8, {1, 0}},
    {DType::S32, {300, -1}, DType::U8, {44, 255}},
    {DType::U8, {200}, DType::S8, {-56}},
    {DType::S8, {-1}, DType::U32, {4294967295.0}},
    {DType::S64, {-3}, DType::F32, {-3}},
    {DType::U64, {1e19}, DType::F64, {1e19}},
    {DType::F32, {1.00390625, 1.01171875, kNan, 3.4e38}, DType::BF16, {1, 1.015625, kNan, kInf}},
    {DType::F32, {65519, 65520, kNan}, DType::F16, {65504, kInf, kNan}},
    {DType::F64, {0.1, 1e39}, DType::F32, {0.1f, kInf}},
    {DType::BF16, {0.5}, DType::F16, {0.5}},
    {DType::F32, {1.5}, DType::C64, {1.5}},
    {DType::S32, {-2}, DType::C128, {-2}},
    {DType::Bool, {1}, DType::C64, {1}},
    {DType::C64, {C(1.5, 2)}, DType::F32, {1.5}},
    {DType::C64, {C(1.5, 2)}, DType::S32, {1}},
    {DType::C64, {C(1.5, 2)}, DType::C128, {C(1.5, 2)}},
    {DType::F32, {7}, DType::F32, {7}},
};

TEST(Convert, FollowsPyTorch) {
  std::vector<Array> inputs;
  for (const Case& c : kCases) inputs.push_back(array(c.from, {static_cast<int64_t>(c.x.size())}, c.x));
  const auto out = evaluate(inputs, [](Builder&, const Values& x) {
    Values y;
    for (size_t i = 0; i < x.size(); i++) y.push_back(convert(x[i], kCases[i].to));
    return y;
  });
  for (size_t i = 0; i < out.size(); i++)
    expect_array(out[i], kCases[i].to, inputs[i].dims, kCases[i].y, 0,
                 text(name(kCases[i].from), " to ", name(kCases[i].to)));
}

// Every pair of types keeps 0 and 1. (One type of each kind and width class: a compile of all pairs takes
// seconds.)
TEST(Convert, EveryPairOfTypes) {
  std::vector<Array> inputs;
  for (DType t : {DType::Bool, DType::S8, DType::S64, DType::U32, DType::BF16, DType::F64, DType::C64})
    inputs.push_back(array(t, {2}, {0, 1}));
  const auto out = evaluate(inputs, [](Builder&, const Values& x) {
    Values y;
    for (Value from : x)
      for (Value to : x) y.push_back(convert(from, to.dtype()));
    return y;
  });
  for (size_t i = 0; i < out.size(); i++)
    expect_array(out[i], inputs[i % inputs.size()].dtype, {2}, {0, 1}, 0, std::to_string(i));
}

TEST(Convert, EightBitFloats) {
  const auto out = evaluate({array(DType::F32, {3}, {1.5, -448, 0.0625})}, [](Builder&, const Values& x) {
    return Values{convert(convert(x[0], DType::F8E4M3), DType::F32),
                  convert(convert(x[0], DType::F8E5M2), DType::BF16)};
  });
  expect_numbers(out[0], {1.5, -448, 0.0625});
  expect_numbers(out[1], {1.5, -448, 0.0625});
}

TEST(Bitcast, KeepsTheBits) {
  const auto out = evaluate(
      {array(DType::F32, {2}, {1, -0.0}), array(DType::U16, {1}, {0x3F80})}, [](Builder&, const Values& x) {
        return Values{bitcast(x[0], DType::U32), bitcast(x[1], DType::BF16), bitcast(x[0], DType::F32)};
      });
  expect_array(out[0], DType::U32, {2}, {0x3F800000, 2147483648.0});
  expect_array(out[1], DType::BF16, {1}, {1});
  expect_array(out[2], DType::F32, {2}, {1, -0.0});
}

}  // namespace
}  // namespace tpu::hlo
