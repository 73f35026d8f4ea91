#include "core/hlo/evaluate.h"

namespace tpu::hlo {
namespace {

using namespace tpu::testing;

TEST(Index, Gather) {
  // Rows 2 and 0 of a matrix, columns 1 and 2 of each.
  const auto out = evaluate(
      {array(DType::F32, {3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8}), array(DType::S64, {2, 2}, {2, 1, 0, 1})},
      [](Builder&, const Values& v) {
        GatherDims d;
        d.offset_dims = {1};
        d.collapsed_slice_dims = {0};
        d.start_index_map = {0, 1};
        d.index_vector_dim = 1;
        return Values{gather(v[0], v[1], d, {1, 2}, {2, 2})};
      });
  expect_array(out[0], DType::F32, {2, 2}, {7, 8, 1, 2});
}

TEST(Index, TakeRows) {
  const auto out =
      evaluate({array(DType::S32, {3, 2}, {0, 1, 2, 3, 4, 5}), array(DType::S32, {4}, {2, 2, 0, 1}),
                array(DType::F64, {3}, {5, 6, 7}), array(DType::S64, {0}, {})},
               [](Builder&, const Values& v) {
                 return Values{take_rows(v[0], v[1]), take_rows(v[2], v[1]), take_rows(v[0], v[3])};
               });
  expect_array(out[0], DType::S32, {4, 2}, {4, 5, 4, 5, 0, 1, 2, 3});
  expect_array(out[1], DType::F64, {4}, {7, 7, 5, 6});
  expect_array(out[2], DType::S32, {0, 2}, {});
}

TEST(Index, TakeAlongDim) {
  const auto out =
      evaluate({array(DType::F32, {2, 3}, {0, 1, 2, 3, 4, 5}), array(DType::S64, {1, 3}, {1, 0, 1}),
                array(DType::S64, {2, 2}, {2, 2, 0, 1}), array(DType::S64, {1, 2}, {0, 1}),
                array(DType::F32, {2}, {8, 9}), array(DType::S64, {3}, {1, 0, 1})},
               [](Builder&, const Values& v) {
                 return Values{take_along_dim(v[0], v[1], 0), take_along_dim(v[0], v[2], -1),
                               take_along_dim(v[0], v[3], 0), take_along_dim(v[4], v[5], 0)};
               });
  expect_array(out[0], DType::F32, {1, 3}, {3, 1, 5});
  expect_array(out[1], DType::F32, {2, 2}, {2, 2, 3, 4});
  expect_array(out[2], DType::F32, {1, 2}, {0, 4});  // the index is narrower than x
  expect_array(out[3], DType::F32, {3}, {9, 8, 9});
}

ScatterDims elements() {
  ScatterDims d;
  d.inserted_window_dims = {0};
  d.scatter_dims_to_operand_dims = {0};
  d.index_vector_dim = 1;
  return d;
}

TEST(Index, ScatterReplacesOrCombinesAndDropsWhatIsOutside) {
  const auto out = evaluate({array(DType::F32, {4}, {1, 2, 3, 4}), array(DType::S32, {4, 1}, {1, 3, 1, 9}),
                             array(DType::F32, {4}, {10, 20, 30, 40}), array(DType::S32, {2, 1}, {3, 0}),
                             array(DType::F32, {2}, {7, 8})},
                            [](Builder&, const Values& v) {
                              return Values{scatter(v[0], v[1], v[2], elements(), add),
                                            scatter(v[0], v[1], v[2], elements(), maximum),
                                            scatter(v[0], v[3], v[4], elements(), nullptr, true)};
                            });
  expect_numbers(out[0], {1, 42, 3, 24});
  expect_numbers(out[1], {1, 30, 3, 20});
  expect_numbers(out[2], {8, 2, 3, 7});
}

TEST(Index, ScatterRowsOfABatch) {
  // For each batch one column is replaced, named by an index of that batch.
  const auto out = evaluate({array(DType::S32, {2, 3}, {0, 1, 2, 3, 4, 5}), array(DType::S32, {2, 1}, {2, 0}),
                             array(DType::S32, {2}, {70, 80})},
                            [](Builder&, const Values& v) {
                              ScatterDims d;
                              d.inserted_window_dims = {1};
                              d.input_batching_dims = {0};
                              d.indices_batching_dims = {0};
                              d.scatter_dims_to_operand_dims = {1};
                              d.index_vector_dim = 1;
                              return Values{scatter(v[0], v[1], v[2], d, nullptr)};
                            });
  expect_numbers(out[0], {0, 1, 70, 80, 4, 5});
}

}  // namespace
}  // namespace tpu::hlo
