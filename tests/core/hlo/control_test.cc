#include "core/base/error.h"
#include "core/hlo/evaluate.h"

namespace tpu::hlo {
namespace {

using namespace tpu::testing;
using C = std::complex<double>;

TEST(Sort, StableByTheFirstOperand) {
  const auto out = evaluate({array(DType::F32, {2, 4}, {3, 1, 2, 1, 0, 0, -1, 5}),
                             array(DType::S32, {2, 4}, {0, 1, 2, 3, 0, 1, 2, 3})},
                            [](Builder&, const Values& v) {
                              return sort({v[0], v[1]}, -1, true,
                                          [](const Values& l, const Values& r) { return l[0] < r[0]; });
                            });
  expect_array(out[0], DType::F32, {2, 4}, {1, 1, 2, 3, -1, 0, 0, 5});
  expect_array(out[1], DType::S32, {2, 4}, {1, 3, 2, 0, 2, 0, 1, 3});
}

TEST(Sort, AlongAnOuterDimDescending) {
  const auto out = evaluate({array(DType::S32, {3, 2}, {1, 5, 3, 4, 2, 6})}, [](Builder&, const Values& v) {
    return sort({v[0]}, 0, false, [](const Values& l, const Values& r) { return l[0] > r[0]; });
  });
  expect_numbers(out[0], {3, 6, 2, 5, 1, 4});
}

TEST(WhileLoop, CountsAndCarriesState) {
  const auto out = evaluate({array(DType::S32, {}, {5})}, [](Builder& b, const Values& v) {
    return while_loop(
        {b.constant(0, DType::S32), b.constant(1.0, DType::F64), v[0]},
        [](const Values& s) { return s[0] < s[2]; },
        [](const Values& s) { return Values{s[0] + 1.0, s[1] * 2.0, s[2]}; });
  });
  expect_array(out[0], DType::S32, {}, {5});
  expect_array(out[1], DType::F64, {}, {32});
}

TEST(WhileLoop, OfOneValue) {
  const auto out = evaluate({array(DType::F32, {}, {1})}, [](Builder&, const Values& v) {
    return while_loop(
        {v[0]}, [](const Values& s) { return s[0] < 100.0; },
        [](const Values& s) { return Values{s[0] * 3.0}; });
  });
  expect_numbers(out[0], {243});
}

TEST(LinearAlgebra, Cholesky) {
  const auto out = evaluate({array(DType::F64, {2, 2}, {4, 2, 2, 5})}, [](Builder&, const Values& v) {
    Value lower = cholesky(v[0], true), upper = cholesky(v[0], false);
    return Values{slice(lower, {0, 0}, {2, 1}), slice_dim(lower, 0, 1, 2), slice_dim(upper, 0, 0, 1)};
  });
  expect_numbers(out[0], {2, 1}, 1e-12);
  expect_numbers(out[1], {1, 2}, 1e-12);
  expect_numbers(out[2], {2, 1}, 1e-12);
}

TEST(LinearAlgebra, TriangularSolve) {
  const auto out = evaluate({array(DType::F64, {2, 2}, {2, 0, 1, 4}), array(DType::F64, {2, 1}, {2, 9}),
                             array(DType::F64, {1, 2}, {5, 8}), array(DType::C128, {1, 1}, {C(0, 2)}),
                             array(DType::C128, {1, 1}, {C(4, 0)})},
                            [](Builder&, const Values& v) {
                              return Values{triangular_solve(v[0], v[1], true, true, false, false, false),
                                            triangular_solve(v[0], v[1], true, true, false, true, false),
                                            triangular_solve(v[0], v[2], false, true, false, false, false),
                                            triangular_solve(v[0], v[1], true, true, true, false, false),
                                            triangular_solve(v[3], v[4], true, true, false, true, true)};
                            });
  expect_numbers(out[0], {1, 2}, 1e-12);          // 2x = 2, x + 4y = 9
  expect_numbers(out[1], {-0.125, 2.25}, 1e-12);  // 2x + y = 2, 4y = 9
  expect_numbers(out[2], {1.5, 2}, 1e-12);        // 2x + y = 5, 4y = 8
  expect_numbers(out[3], {2, 7}, 1e-12);          // x = 2, x + y = 9
  expect_numbers(out[4], {C(0, 2)}, 1e-12);       // conj(2i) x = 4
}

TEST(Fft, EveryKind) {
  const auto out =
      evaluate({array(DType::F32, {4}, {1, 2, 3, 4}), array(DType::C64, {2, 2}, {1, 2, 3, C(0, 4)})},
               [](Builder&, const Values& v) {
                 Value half = fft(v[0], Fft::RFFT, {4});
                 return Values{half, fft(half, Fft::IRFFT, {4}), fft(v[1], Fft::FFT, {2}),
                               fft(fft(v[1], Fft::FFT, {2, 2}), Fft::IFFT, {2, 2})};
               });
  expect_array(out[0], DType::C64, {3}, {10, C(-2, 2), -2}, 1e-5);
  expect_array(out[1], DType::F32, {4}, {1, 2, 3, 4}, 1e-5);
  expect_array(out[2], DType::C64, {2, 2}, {3, -1, C(3, 4), C(3, -4)}, 1e-5);
  expect_array(out[3], DType::C64, {2, 2}, {1, 2, 3, C(0, 4)}, 1e-5);
}

TEST(CustomCall, NamesItsTarget) {
  const Type type{DType::F32, {2, 2}};
  const std::string module = write_module(
      {type}, [&](Builder& b, const Values& v) { return Values{custom_call(b, "Sharding", {v[0]}, type)}; });
  EXPECT_NE(module.find("\"stablehlo.custom_call\"(%0) {call_target_name = \"Sharding\"} : (tensor<2x2xf32>) "
                        "-> tensor<2x2xf32>"),
            std::string::npos)
      << module;
  Builder b;
  EXPECT_EQ(custom_call(b, "pair", {}, std::vector<Type>{type, type}, "has_side_effect = true").size(), 2u);
}

TEST(CustomCall, OfAnUnknownTargetIsAnError) {
  EXPECT_THROW(evaluate({array(DType::F32, {1}, {1})},
                        [](Builder& b, const Values& v) {
                          return Values{
                              custom_call(b, "no_such_target", {v[0]}, v[0].type(), "api_version = 2 : i32")};
                        }),
               Error);
}

}  // namespace
}  // namespace tpu::hlo
