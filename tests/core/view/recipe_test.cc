#include "core/view/recipe.h"

#include <random>

#include "core/hlo/evaluate.h"
#include "core/view/bits.h"

namespace tpu::view {
namespace {

using namespace tpu::testing;
using hlo::Builder;
using hlo::product;
using hlo::row_major;
using hlo::Type;
using hlo::Value;
using hlo::Values;

std::mt19937 random_numbers(7);

int64_t pick(int64_t from, int64_t to) {  // both included
  return std::uniform_int_distribution<int64_t>(from, to)(random_numbers);
}

// The byte position in the cell of each element of the view, in row-major order.
std::vector<int64_t> positions(const Layout& v) {
  std::vector<int64_t> out;
  const int64_t n = product(v.sizes);
  const Dims places = row_major(v.sizes);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = v.offset;
    for (size_t d = 0; d < v.sizes.size(); d++) at += i / places[d] % v.sizes[d] * v.strides[d];
    out.push_back(at * size_of(v.dtype));
  }
  return out;
}

Array read_on_host(const Array& cell, const Layout& v) {
  Array out{v.dtype, v.sizes, {}};
  for (int64_t at : positions(v))
    out.bytes.insert(out.bytes.end(), cell.bytes.begin() + at, cell.bytes.begin() + at + size_of(v.dtype));
  return out;
}

Array write_on_host(Array cell, const Array& update, const Layout& v) {
  const int64_t width = size_of(v.dtype);
  const auto at = positions(v);
  for (size_t i = 0; i < at.size(); i++)
    std::copy_n(update.bytes.begin() + static_cast<int64_t>(i) * width, width, cell.bytes.begin() + at[i]);
  return cell;
}

// Bytes that make small whole numbers of every type, so that no NaN hides what moved where.
Array filled(DType dtype, const Dims& dims, int start, bool bools) {
  Numbers n(product(dims));
  for (size_t i = 0; i < n.size(); i++) {
    const double value = static_cast<double>((start + 7 * i) % 113);
    n[i] = bools ? std::complex<double>((start + i / 3) % 2)
                 : std::complex<double>(value, is_complex(dtype) ? 113 - value : 0);
  }
  return array(dtype, dims, n);
}

bool repeats(const Layout& v) {
  auto at = positions(v);
  std::sort(at.begin(), at.end());
  return std::adjacent_find(at.begin(), at.end()) != at.end();
}

// Reads and writes through every layout, all in one module, against a plain loop.
void check(const std::vector<Layout>& layouts) {
  std::vector<Array> inputs;
  for (const Layout& v : layouts) {
    const bool bools = v.cell_dtype == DType::Bool || v.dtype == DType::Bool;  // their bytes are 0 or 1
    inputs.push_back(filled(v.cell_dtype, v.cell_dims, 1, bools));
    inputs.push_back(filled(v.dtype, v.sizes, 50, bools));
  }
  const auto out = evaluate(inputs, [&](Builder&, const Values& x) {
    Values y;
    for (size_t i = 0; i < layouts.size(); i++) {
      y.push_back(read(x[2 * i], layouts[i]));
      y.push_back(write(x[2 * i], x[2 * i + 1], layouts[i]));
    }
    return y;
  });
  for (size_t i = 0; i < layouts.size(); i++) {
    const Layout& v = layouts[i];
    const std::string what =
        text(name(v.cell_dtype), hlo::str(v.cell_dims), " seen as ", name(v.dtype), " sizes ",
             hlo::str(v.sizes), " strides ", hlo::str(v.strides), " offset ", v.offset);
    const Array seen = read_on_host(inputs[2 * i], v);
    EXPECT_EQ(out[2 * i].dtype, v.dtype) << what;
    EXPECT_EQ(out[2 * i].dims, v.sizes) << what;
    EXPECT_EQ(out[2 * i].bytes, seen.bytes) << "read " << what;
    EXPECT_EQ(out[2 * i + 1].dims, v.cell_dims) << what;
    if (!repeats(v)) {
      EXPECT_EQ(out[2 * i + 1].bytes, write_on_host(inputs[2 * i], inputs[2 * i + 1], v).bytes)
          << "write " << what;
    }
    const auto at = positions(v);
    EXPECT_EQ(covers(v), !repeats(v) && at.size() * size_of(v.dtype) == inputs[2 * i].bytes.size()) << what;
  }
}

Layout whole(DType dtype, const Dims& dims) { return {dtype, dims, dtype, dims, row_major(dims), 0}; }

// One random step a PyTorch user could take: each maps a valid layout to a valid one.
void step(Layout& v) {
  const int rank = static_cast<int>(v.sizes.size());
  const int kind = static_cast<int>(pick(0, 7));
  if (kind == 0 || rank == 0) {  // unsqueeze; a new dim's stride is free
    const int64_t at = pick(0, rank);
    v.sizes.insert(v.sizes.begin() + at, 1);
    v.strides.insert(v.strides.begin() + at, pick(0, 1) ? pick(0, 20) : 1);
    return;
  }
  const int d = static_cast<int>(pick(0, rank - 1));
  const int64_t n = v.sizes[d];
  switch (kind) {
    case 1:
    case 2: {  // x[start:stop:step]
      if (n == 0) return;
      const int64_t start = pick(0, n - 1), by = pick(1, 3), stop = pick(pick(0, 9) ? start + 1 : start, n);
      v.offset += start * v.strides[d];
      v.sizes[d] = (stop - start + by - 1) / by;
      v.strides[d] *= by;
      return;
    }
    case 3: {  // transpose
      const int other = static_cast<int>(pick(0, rank - 1));
      std::swap(v.sizes[d], v.sizes[other]);
      std::swap(v.strides[d], v.strides[other]);
      return;
    }
    case 4:  // select
      if (n == 0) return;
      v.offset += pick(0, n - 1) * v.strides[d];
      v.sizes.erase(v.sizes.begin() + d);
      v.strides.erase(v.strides.begin() + d);
      return;
    case 5:  // expand
      if (n == 1) v.sizes[d] = pick(0, 3), v.strides[d] = 0;
      return;
    case 6:  // unflatten
      for (int64_t k : {2, 3})
        if (n > k && n % k == 0) {
          v.sizes[d] = k;
          v.sizes.insert(v.sizes.begin() + d, n / k);
          v.strides.insert(v.strides.begin() + d, v.strides[d] * k);
          return;
        }
      return;
    default:  // flatten two neighbours that allow it
      if (d + 1 < rank && v.strides[d] == v.strides[d + 1] * v.sizes[d + 1]) {
        v.sizes[d] *= v.sizes[d + 1];
        v.strides[d] = v.strides[d + 1];
        v.sizes.erase(v.sizes.begin() + d + 1);
        v.strides.erase(v.strides.begin() + d + 1);
      }
  }
}

Dims random_dims() {
  static const int64_t extents[] = {1, 2, 3, 4, 5, 6, 8, 12};
  Dims out;
  for (int64_t rank = pick(0, 4); rank > 0; rank--) out.push_back(extents[pick(0, 7)]);
  return out;
}

TEST(Recipe, ChainsOfViewsReadAndWriteAsALoopDoes) {
  for (int module = 0; module < 4; module++) {
    std::vector<Layout> layouts;
    for (int i = 0; i < 40; i++) {
      Layout v = whole(DType::S32, random_dims());
      if (v.cell_dims.size() > 1 &&
          pick(0, 3) == 0)  // the storage's array keeps another shape than the tensor's
        v.cell_dims = {product(v.cell_dims)};
      for (int64_t steps = pick(0, 5); steps > 0; steps--) step(v);
      layouts.push_back(v);
    }
    check(layouts);
  }
}

TEST(Recipe, AnyAsStrided) {
  for (int module = 0; module < 2; module++) {
    std::vector<Layout> layouts;
    while (layouts.size() < 40) {
      Layout v = whole(DType::S32, random_dims());
      v.sizes.clear(), v.strides.clear();
      int64_t last = 0;
      for (int64_t rank = pick(0, 3); rank > 0; rank--) {
        v.sizes.push_back(pick(1, 4));
        v.strides.push_back(pick(0, 9));
        last += (v.sizes.back() - 1) * v.strides.back();
      }
      const int64_t room = product(v.cell_dims) - 1 - last;
      if (room < 0) continue;
      v.offset = pick(0, room);
      layouts.push_back(v);
    }
    check(layouts);
  }
}

TEST(Recipe, EmptyViewsAndCells) {
  check({{DType::S32, {0}, DType::S32, {0}, {1}, 0},
         {DType::S32, {2, 0, 3}, DType::S32, {2, 0, 3}, {3, 3, 1}, 0},
         {DType::S32, {0}, DType::S32, {3, 0}, {1, 1}, 0},
         {DType::S32, {4}, DType::S32, {0, 4}, {4, 1}, 0},
         {DType::S32, {4}, DType::S32, {2, 0}, {1, 1}, 4},
         {DType::C64, {0}, DType::F32, {0, 2}, {2, 1}, 0}});
}

TEST(Recipe, OtherTypesOverTheSameBytes) {
  const DType types[] = {DType::Bool, DType::U8,  DType::S8,  DType::BF16, DType::S32,
                         DType::F32,  DType::S64, DType::C64, DType::C128};
  std::vector<Layout> layouts;
  for (DType cell : types)
    for (DType seen : types) {
      if (cell == seen) continue;
      if ((seen == DType::Bool || cell == DType::Bool) && size_of(cell) + size_of(seen) > 2)
        continue;  // no bools
      const int64_t n = 12 * size_of(cell) / size_of(seen) / 3;
      if (n == 0) continue;
      if (n > 1) layouts.push_back({cell, {2, 6}, seen, {(n + 1) / 2}, {2}, n});  // x.view(3, n)[1, ::2]
      layouts.push_back({cell, {12}, seen, {n, 3}, {1, n}, 0});                   // x.view(3, n).t()
    }
  for (size_t i = 0; i < layouts.size(); i += 60)
    check({layouts.begin() + static_cast<int64_t>(i),
           layouts.begin() + static_cast<int64_t>(std::min(layouts.size(), i + 60))});
}

TEST(Recipe, ViewAsRealAndBack) {
  const Layout parts{DType::C64, {3}, DType::F32, {3, 2}, {2, 1}, 0};
  const Layout imaginary{DType::C64, {3}, DType::F32, {3}, {2}, 1};
  const Layout pairs{DType::F32, {3, 2}, DType::C64, {3}, {1}, 0};
  check({parts, imaginary, pairs});
  EXPECT_TRUE(covers(parts));
  EXPECT_FALSE(covers(imaginary));
  EXPECT_TRUE(covers(pairs));
}

struct Common {
  const char* name;
  Layout layout;
};

// What people write all day must stay free of gathers.
const Common kCommon[] = {
    {"x[2:5]", {DType::F32, {8, 3}, DType::F32, {3, 3}, {3, 1}, 6}},
    {"x[:, 1:3]", {DType::F32, {8, 4}, DType::F32, {8, 2}, {4, 1}, 1}},
    {"x.t()", {DType::F32, {8, 3}, DType::F32, {3, 8}, {1, 3}, 0}},
    {"x.t()[1:]", {DType::F32, {8, 3}, DType::F32, {2, 8}, {1, 3}, 1}},
    {"x.permute(2, 0, 1)", {DType::F32, {2, 3, 4}, DType::F32, {4, 2, 3}, {1, 12, 4}, 0}},
    {"x[3]", {DType::F32, {8, 3}, DType::F32, {3}, {1}, 9}},
    {"x[:, 1]", {DType::F32, {8, 3}, DType::F32, {8}, {3}, 1}},
    {"x[3, 2]", {DType::F32, {8, 3}, DType::F32, {}, {}, 11}},
    {"x[::2]", {DType::F32, {8, 3}, DType::F32, {4, 3}, {6, 1}, 0}},
    {"x[1::3, ::2]", {DType::F32, {8, 3}, DType::F32, {3, 2}, {9, 2}, 3}},
    {"x[:, None]", {DType::F32, {8, 3}, DType::F32, {8, 1, 3}, {3, 3, 1}, 0}},
    {"x.flatten()", {DType::F32, {8, 3}, DType::F32, {24}, {1}, 0}},
    {"x.view(4, 6)", {DType::F32, {8, 3}, DType::F32, {4, 6}, {6, 1}, 0}},
    {"x.view(3, 8)", {DType::F32, {8, 3}, DType::F32, {3, 8}, {8, 1}, 0}},
    {"x.chunk(2)[1]", {DType::F32, {8, 3}, DType::F32, {4, 3}, {3, 1}, 12}},
    {"x.chunk(3, -1)[2]", {DType::F32, {2, 4, 9}, DType::F32, {2, 4, 3}, {36, 9, 1}, 6}},
    {"expanded", {DType::F32, {3}, DType::F32, {4, 3}, {0, 1}, 0}},
    {"heads", {DType::F32, {2, 5, 12}, DType::F32, {2, 3, 5, 4}, {60, 4, 12, 1}, 0}},
    {"one of q, k, v", {DType::F32, {2, 5, 12}, DType::F32, {2, 2, 5, 2}, {60, 2, 12, 1}, 4}},
    {"x.diagonal()", {DType::F32, {4, 4}, DType::F32, {4}, {5}, 0}},
    {"x.diagonal(1)", {DType::F32, {4, 4}, DType::F32, {3}, {5}, 1}},
    {"batched diagonal", {DType::F32, {3, 4, 4}, DType::F32, {3, 4}, {16, 5}, 0}},
    {"a matrix in a flat buffer", {DType::F32, {103}, DType::F32, {4, 10}, {10, 1}, 17}},
    {"its transpose", {DType::F32, {103}, DType::F32, {10, 4}, {1, 10}, 17}},
    {"a cube at the end of a flat buffer", {DType::F32, {103}, DType::F32, {2, 3, 4}, {12, 4, 1}, 79}},
    {"x[:, 1:3] in a flat buffer", {DType::F32, {103}, DType::F32, {4, 2}, {10, 1}, 18}},
    {"view_as_real", {DType::C64, {8}, DType::F32, {8, 2}, {2, 1}, 0}},
    {"x.real", {DType::C64, {8}, DType::F32, {8}, {2}, 0}},
};

TEST(Recipe, CommonViewsNeedNoGather) {
  std::vector<Layout> layouts;
  for (const Common& c : kCommon) {
    layouts.push_back(c.layout);
    const Layout& v = c.layout;
    const std::string module =
        write_module({{v.cell_dtype, v.cell_dims}, {v.dtype, v.sizes}},
                     [&](Builder&, const Values& x) { return Values{read(x[0], v), write(x[0], x[1], v)}; });
    EXPECT_EQ(module.find("gather"), std::string::npos) << c.name;
    EXPECT_EQ(module.find("scatter"), std::string::npos) << c.name;
  }
  check(layouts);
}

TEST(Recipe, TheWholeArrayCostsNothing) {
  const Layout v = whole(DType::F32, {2, 3});
  Builder b;
  Value cell = b.parameter({DType::F32, {2, 3}}), update = b.parameter({DType::F32, {2, 3}});
  EXPECT_EQ(read(cell, v).id(), cell.id());
  EXPECT_EQ(write(cell, update, v).id(), update.id());
  EXPECT_TRUE(v.is_whole());
  EXPECT_FALSE((Layout{DType::F32, {2, 3}, DType::F32, {3, 2}, {1, 3}, 0}).is_whole());
}

TEST(MemoryOrder, LargestStrideFirst) {
  EXPECT_EQ(memory_order({2, 3}, {3, 1}), (Dims{0, 1}));
  EXPECT_EQ(memory_order({3, 2}, {1, 3}), (Dims{1, 0}));
  EXPECT_EQ(memory_order({2, 3, 4, 5}, {60, 1, 15, 3}), (Dims{0, 2, 3, 1}));  // channels last
  EXPECT_EQ(memory_order({}, {}), Dims{});
  // Dims of size 1 stay in their place, whatever their stride, and do not keep the others apart.
  EXPECT_EQ(memory_order({3, 1, 2}, {1, 99, 3}), (Dims{2, 1, 0}));
  EXPECT_EQ(memory_order({1, 3, 2}, {0, 1, 3}), (Dims{0, 2, 1}));
}

TEST(MemoryOrder, Dense) {
  EXPECT_TRUE(is_dense({2, 3}, {3, 1}));
  EXPECT_TRUE(is_dense({3, 2}, {1, 3}));
  EXPECT_TRUE(is_dense({3, 1, 2}, {1, 99, 3}));
  EXPECT_TRUE(is_dense({}, {}));
  EXPECT_TRUE(is_dense({1, 1}, {7, 9}));
  EXPECT_FALSE(is_dense({2, 3}, {4, 1}));
  EXPECT_FALSE(is_dense({2}, {2}));
  EXPECT_FALSE(is_dense({2, 3}, {0, 1}));
  EXPECT_FALSE(is_dense({2, 2}, {1, 1}));
}

TEST(Bits, CommonUnit) {
  EXPECT_EQ(common_unit(DType::C64, DType::F32), DType::F32);
  EXPECT_EQ(common_unit(DType::S64, DType::U8), DType::U8);
  EXPECT_EQ(common_unit(DType::C128, DType::C64), DType::F32);
  EXPECT_EQ(common_unit(DType::Bool, DType::S16), DType::U8);
}

}  // namespace
}  // namespace tpu::view
