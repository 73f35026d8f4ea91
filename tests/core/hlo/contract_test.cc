#include "core/hlo/evaluate.h"

namespace tpu::hlo {
namespace {

using namespace tpu::testing;

TEST(DotGeneral, EveryArrangementOfDimensions) {
  const auto out = evaluate(
      {array(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6}), array(DType::F32, {3, 2}, {1, 0, 0, 1, 1, 1}),
       array(DType::F32, {2, 2, 1}, {1, 2, 3, 4}), array(DType::F32, {2, 2, 1}, {5, 6, 7, 8}),
       array(DType::S32, {2}, {3, 4}), array(DType::S32, {2}, {5, 6}), array(DType::BF16, {2}, {1, 2}),
       array(DType::BF16, {2}, {3, 4}), array(DType::F32, {0, 2}, {}), array(DType::C64, {1}, {{1, 2}})},
      [](Builder&, const Values& v) {
        return Values{dot_general(v[0], v[1], {}, {}, {1}, {0}),
                      dot_general(v[0], v[1], {}, {}, {0}, {1}),
                      dot_general(v[2], v[3], {0}, {0}, {1}, {1}),
                      dot_general(v[4], v[5], {}, {}, {}, {}),
                      dot_general(v[4], v[5], {}, {}, {0}, {0}),
                      dot_general(v[6], v[7], {}, {}, {0}, {0}, DType::F32),
                      dot_general(v[8], v[8], {}, {}, {0}, {0}),
                      dot_general(v[9], v[9], {}, {}, {0}, {0})};
      });
  expect_array(out[0], DType::F32, {2, 2}, {4, 5, 10, 11}, 1e-6);
  expect_array(out[1], DType::F32, {3, 3}, {1, 4, 5, 2, 5, 7, 3, 6, 9}, 1e-6);
  expect_array(out[2], DType::F32, {2, 1, 1}, {17, 53}, 1e-6);
  expect_array(out[3], DType::S32, {2, 2}, {15, 18, 20, 24});
  expect_array(out[4], DType::S32, {}, {39});
  expect_array(out[5], DType::F32, {}, {11});
  expect_array(out[6], DType::F32, {2, 2}, {0, 0, 0, 0});
  expect_array(out[7], DType::C64, {}, {{-3, 4}});
}

TEST(DotGeneral, PrecisionIsWrittenAndTaken) {
  const Type m{DType::F32, {2, 2}};
  const char* names[] = {"HIGHEST", "HIGH", "DEFAULT"};
  for (int p = 0; p < 3; p++) {
    const std::string module = write_module(
        {m, m}, [](Builder&, const Values& v) { return Values{dot_general(v[0], v[1], {}, {}, {1}, {0})}; },
        static_cast<Precision>(p));
    EXPECT_NE(module.find(std::string("#stablehlo<precision ") + names[p] + ">"), std::string::npos)
        << module;
    const Array eye = array(DType::F32, {2, 2}, {1, 0, 0, 1}), x = array(DType::F32, {2, 2}, {1, 2, 3, 4});
    expect_numbers(execute(module, {eye, x})[0], {1, 2, 3, 4});
  }
}

// NCHW input, OIHW kernel.
ConvDims images() { return {0, 1, 1, 0, 0, 1, {2, 3}, {2, 3}, {2, 3}}; }
ConvWindow plain() { return {{1, 1}, {1, 1}, {1, 1}, {{0, 0}, {0, 0}}, {}}; }

TEST(Convolution, WindowsOfAnImage) {
  const auto out = evaluate({array(DType::F32, {1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}),
                             array(DType::F32, {1, 1, 2, 2}, {1, 2, 3, 4})},
                            [](Builder&, const Values& v) {
                              ConvWindow padded = plain(), strided = plain(), spread = plain(),
                                         holes = plain(), mirrored = plain();
                              padded.padding = {{1, 0}, {0, 1}};
                              strided.stride = {2, 1};
                              spread.input_dilation = {2, 2};
                              holes.kernel_dilation = {2, 2};
                              mirrored.reverse = {true, true};
                              Values y;
                              for (const ConvWindow& w : {plain(), padded, strided, spread, holes, mirrored})
                                y.push_back(convolution(v[0], v[1], images(), w));
                              return y;
                            });
  expect_array(out[0], DType::F32, {1, 1, 2, 2}, {37, 47, 67, 77}, 1e-6);
  expect_array(out[1], DType::F32, {1, 1, 3, 3}, {11, 18, 9, 37, 47, 21, 67, 77, 33}, 1e-6);
  expect_array(out[2], DType::F32, {1, 1, 1, 2}, {37, 47}, 1e-6);
  expect_array(out[3], DType::F32, {1, 1, 4, 4}, {1, 4, 2, 6, 12, 20, 15, 24, 4, 10, 5, 12, 21, 32, 24, 36},
               1e-6);
  expect_array(out[4], DType::F32, {1, 1, 1, 1}, {1 + 6 + 21 + 36}, 1e-6);
  expect_array(out[5], DType::F32, {1, 1, 2, 2}, {23, 33, 53, 63}, 1e-6);
}

TEST(Convolution, GroupsAndOneDimension) {
  // Two channels of their own kernels; one dimension; channels last.
  const ConvDims line{0, 2, 1, 2, 0, 2, {1}, {0}, {1}};
  const auto out = evaluate(
      {array(DType::F32, {1, 3, 2}, {1, 10, 2, 20, 3, 30}), array(DType::F32, {2, 1, 2}, {1, 2, 3, 4})},
      [&](Builder&, const Values& v) {
        return Values{convolution(v[0], v[1], line, {{1}, {1}, {1}, {{0, 0}}, {}}, 2)};
      });
  expect_array(out[0], DType::F32, {1, 2, 2}, {7, 100, 11, 160}, 1e-6);
}

TEST(Convolution, BatchGroups) {
  // Each of two batch groups meets its own output feature, as in the gradient of a grouped convolution's
  // kernel.
  const ConvDims line{0, 1, 1, 0, 0, 1, {2}, {2}, {2}};
  const auto out =
      evaluate({array(DType::F32, {2, 1, 2}, {1, 2, 3, 4}), array(DType::F32, {2, 1, 1}, {5, 6})},
               [&](Builder&, const Values& v) {
                 return Values{convolution(v[0], v[1], line, {{1}, {1}, {1}, {{0, 0}}, {}}, 1, 2)};
               });
  expect_array(out[0], DType::F32, {1, 2, 2}, {5, 10, 18, 24}, 1e-6);
}

TEST(Convolution, NoSpatialDimensionIsAMatrixProduct) {
  const auto out =
      evaluate({array(DType::F32, {1, 2}, {1, 2}), array(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6})},
               [&](Builder&, const Values& v) {
                 return Values{convolution(v[0], v[1], {0, 1, 0, 1, 0, 1, {}, {}, {}}, {})};
               });
  expect_array(out[0], DType::F32, {1, 3}, {9, 12, 15}, 1e-6);
}

}  // namespace
}  // namespace tpu::hlo
