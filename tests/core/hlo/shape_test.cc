#include <numeric>

#include "core/base/error.h"
#include "core/hlo/evaluate.h"

namespace tpu::hlo {
namespace {

using namespace tpu::testing;

// 0, 1, 2, ... of the given shape.
Array counting(const Dims& dims, DType dtype = DType::S32) {
  Numbers n(product(dims));
  for (size_t i = 0; i < n.size(); i++) n[i] = static_cast<double>(i);
  return array(dtype, dims, n);
}

struct Case {
  const char* name;
  Dims from;
  Value (*f)(Builder&, Value);
  Dims to;
  Numbers want;
};

const Case kCases[] = {
    {"reshape", {2, 3}, [](Builder&, Value x) { return reshape(x, {3, 2}); }, {3, 2}, {0, 1, 2, 3, 4, 5}},
    {"broadcast_in_dim",
     {2},
     [](Builder&, Value x) { return broadcast_in_dim(x, {2, 3}, {0}); },
     {2, 3},
     {0, 0, 0, 1, 1, 1}},
    {"broadcast_in_dim that transposes",
     {2, 2},
     [](Builder&, Value x) { return broadcast_in_dim(x, {2, 2}, {1, 0}); },
     {2, 2},
     {0, 2, 1, 3}},
    {"broadcast_to",
     {2, 1},
     [](Builder&, Value x) { return broadcast_to(x, {2, 2, 2}); },
     {2, 2, 2},
     {0, 0, 1, 1, 0, 0, 1, 1}},
    {"broadcast_to nothing", {1}, [](Builder&, Value x) { return broadcast_to(x, {0}); }, {0}, {}},
    {"transpose", {2, 3}, [](Builder&, Value x) { return transpose(x, {1, 0}); }, {3, 2}, {0, 3, 1, 4, 2, 5}},
    {"swap_dims", {1, 2, 2}, [](Builder&, Value x) { return swap_dims(x, -1, 1); }, {1, 2, 2}, {0, 2, 1, 3}},
    {"unsqueeze", {2}, [](Builder&, Value x) { return unsqueeze(x, -1); }, {2, 1}, {0, 1}},
    {"squeeze", {1, 2}, [](Builder&, Value x) { return squeeze(x, -2); }, {2}, {0, 1}},
    {"slice",
     {3, 4},
     [](Builder&, Value x) { return slice(x, {1, 0}, {3, 4}, {1, 3}); },
     {2, 2},
     {4, 7, 8, 11}},
    {"slice to nothing", {3}, [](Builder&, Value x) { return slice(x, {2}, {2}); }, {0}, {}},
    {"slice_dim", {2, 3}, [](Builder&, Value x) { return slice_dim(x, -1, 1, 3); }, {2, 2}, {1, 2, 4, 5}},
    {"pad",
     {2},
     [](Builder& b, Value x) { return pad(x, b.constant(9, DType::S32), {1}, {2}, {1}); },
     {6},
     {9, 0, 9, 1, 9, 9}},
    {"pad that crops",
     {4},
     [](Builder& b, Value x) { return pad(x, b.constant(9, DType::S32), {-1}, {-1}); },
     {2},
     {1, 2}},
    {"pad of nothing",
     {0},
     [](Builder& b, Value x) { return pad(x, b.constant(9, DType::S32), {1}, {1}, {3}); },
     {2},
     {9, 9}},
    {"concatenate",
     {2, 2},
     [](Builder&, Value x) { return concatenate({x, x}, -1); },
     {2, 4},
     {0, 1, 0, 1, 2, 3, 2, 3}},
    {"concatenate one", {2}, [](Builder&, Value x) { return concatenate({x}, 0); }, {2}, {0, 1}},
    {"reverse", {2, 3}, [](Builder&, Value x) { return reverse(x, {1}); }, {2, 3}, {2, 1, 0, 5, 4, 3}},
    {"reverse nothing", {2}, [](Builder&, Value x) { return reverse(x, {}); }, {2}, {0, 1}},
    {"iota",
     {1},
     [](Builder& b, Value) { return iota(b, DType::S32, {2, 3}, 1); },
     {2, 3},
     {0, 1, 2, 0, 1, 2}},
    {"iota of no dims", {1}, [](Builder& b, Value) { return iota(b, DType::S32, {}, 0); }, {}, {0}},
    {"dynamic_slice",
     {3, 3},
     [](Builder& b, Value x) {
       return dynamic_slice(x, {b.constant(1, DType::S32), b.constant(9, DType::S32)}, {2, 2});
     },
     {2, 2},
     {4, 5, 7, 8}},
    {"dynamic_update_slice",
     {2, 2},
     [](Builder& b, Value x) {
       return dynamic_update_slice(x, full(b, 7, {DType::S32, {1, 2}}),
                                   {b.constant(1, DType::S32), b.constant(0, DType::S32)});
     },
     {2, 2},
     {0, 1, 7, 7}},
    {"full", {1}, [](Builder& b, Value) { return full(b, 3, {DType::S32, {2}}); }, {2}, {3, 3}},
    {"full_like", {2}, [](Builder&, Value x) { return full_like(x, -1); }, {2}, {-1, -1}},
    {"barrier", {2}, [](Builder&, Value x) { return optimization_barrier(x); }, {2}, {0, 1}},
};

TEST(Shape, EveryFunction) {
  std::vector<Array> inputs;
  for (const Case& c : kCases) inputs.push_back(counting(c.from));
  const auto out = evaluate(inputs, [](Builder& b, const Values& x) {
    Values y;
    for (size_t i = 0; i < x.size(); i++) {
      y.push_back(kCases[i].f(b, x[i]));
      EXPECT_EQ(y.back().dims(), kCases[i].to) << kCases[i].name;
    }
    return y;
  });
  for (size_t i = 0; i < out.size(); i++)
    expect_array(out[i], DType::S32, kCases[i].to, kCases[i].want, 0, kCases[i].name);
}

TEST(Shape, NoOperationForNoChange) {
  const Type type{DType::F32, {2, 3}};
  const std::string same = write_module({type}, [](Builder&, const Values& x) { return Values{x[0]}; });
  EXPECT_EQ(same, write_module({type}, [](Builder&, const Values& x) {
              Value y = reshape(broadcast_to(transpose(x[0], {0, 1}), {2, 3}), {2, 3});
              return Values{concatenate({reverse(slice(y, {0, 0}, {2, 3}), {})}, 0)};
            }));
}

TEST(Shape, BroadcastDims) {
  EXPECT_EQ(broadcast_dims({2, 1}, {3}), (Dims{2, 3}));
  EXPECT_EQ(broadcast_dims({}, {4}), (Dims{4}));
  EXPECT_EQ(broadcast_dims({1}, {0}), (Dims{0}));
  EXPECT_EQ(broadcast_dims({0}, {1}), (Dims{0}));
  EXPECT_THROW(broadcast_dims({2}, {3}), Error);
  EXPECT_THROW(broadcast_dims({0}, {2}), Error);
}

TEST(Shape, WrongShapesAreRefused) {
  Builder b;
  Value x = b.parameter({DType::F32, {2, 3}});
  EXPECT_THROW(reshape(x, {7}), Error);
  EXPECT_THROW(broadcast_to(x, {3}), Error);
  EXPECT_THROW(broadcast_to(x, {4, 3}), Error);
}

}  // namespace
}  // namespace tpu::hlo
