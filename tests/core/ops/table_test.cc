#include "core/ops/table.h"

#include <set>

#include "core/graph/build.h"

namespace tpu::ops {
namespace {

using namespace tpu::testing;

TEST(Table, NamesAreWellFormed) {
  const auto& all = Table::get().all();
  EXPECT_GT(all.size(), 300u);
  for (const auto& [name, op] : all) {
    EXPECT_EQ(name, op.name);
    EXPECT_NE(op.lower, nullptr) << name;
    // An identifier, in our own namespace perhaps, and at most one overload after a dot.
    const std::string plain = name.starts_with("tpu::") ? name.substr(5) : name;
    const size_t dot = plain.find('.');
    for (const std::string& part :
         {plain.substr(0, dot), dot == std::string::npos ? "x" : plain.substr(dot + 1)}) {
      EXPECT_FALSE(part.empty()) << name;
      for (char c : part) EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c)) || c == '_') << name;
    }
    if (op.fixed_when) {
      EXPECT_FALSE(op.fixed.empty()) << name << " says when a value is fixed, but not which";
    }
    EXPECT_EQ(std::set<std::string>(op.fixed.begin(), op.fixed.end()).size(), op.fixed.size()) << name;
    EXPECT_EQ(std::set<std::string>(op.writes.begin(), op.writes.end()).size(), op.writes.size()) << name;
  }
}

TEST(Table, FindsWhatIsThere) {
  const Op* add = Table::get().find("add.Tensor");
  ASSERT_NE(add, nullptr);
  EXPECT_EQ(add->name, "add.Tensor");
  EXPECT_EQ(Table::get().find("add.Nothing"), nullptr);
  EXPECT_EQ(Table::get().find(""), nullptr);
}

Results nothing(Call&) { return Values{}; }

TEST(Table, ANameTwiceIsAnError) {
  Table t;
  t.op("  a.x   b ", nothing, {.fixed = {"p"}});
  EXPECT_EQ(t.all().size(), 2u);
  EXPECT_EQ(t.find("b")->fixed, std::vector<std::string>{"p"});
  try {
    t.op("c a.x", nothing);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.op, "a.x");
    EXPECT_EQ(e.code, Code::Internal);
  }
}

// One operator over whole tensors: its results. `scalars` are its runtime numbers, by slot.
std::vector<Array> compute(const std::string& op, const std::vector<std::pair<std::string, Arg>>& arguments,
                           const std::vector<Array>& tensors, const std::vector<hlo::Type>& results,
                           const std::vector<double>& scalars = {}) {
  graph::Graph g;
  for (size_t i = 0; i < tensors.size(); i++) {
    g.cells.push_back({tensors[i].dtype, tensors[i].dims});
    g.inputs.push_back(whole(static_cast<int>(i), g.cells.back()));
  }
  g.nodes = {node(op, arguments, results)};
  for (size_t i = 0; i < results.size(); i++) g.outputs.push_back({static_cast<int>(tensors.size() + i), {}});
  const graph::Lowered lowered = graph::lower(g, {});
  std::vector<Array> extra;
  for (auto [slot, dtype] : lowered.extra.scalars) extra.push_back(array(dtype, {}, {scalars.at(slot)}));
  return run_graph(lowered, tensors, extra);
}

TEST(Table, AddScalesAndPromotes) {
  const auto out = compute(
      "add.Tensor", {{"self", Ref{0}}, {"other", Ref{1}}, {"alpha", runtime_number(0, DType::S64)}},
      {array(DType::S32, {2, 1}, {1, 2}), array(DType::F32, {2}, {0.5, 1})}, {{DType::F32, {2, 2}}}, {3});
  expect_array(out[0], DType::F32, {2, 2}, {2.5, 4, 3.5, 5});
}

TEST(Table, Gelu) {
  const Numbers x{-1, 0, 2};
  const auto gelu = [&](const char* how, DType t) {
    return compute("gelu", {{"self", Ref{0}}, {"approximate", std::string(how)}}, {array(t, {3}, x)},
                   {{t, {3}}})[0];
  };
  expect_numbers(gelu("none", DType::F32), {-0.15865525, 0, 1.9544997}, 1e-6);
  expect_numbers(gelu("tanh", DType::F32), {-0.15880801, 0, 1.9545977}, 1e-6);
  expect_numbers(gelu("none", DType::BF16), {-0.15865525, 0, 1.9544997}, 4e-3);
}

TEST(Table, SumOverDims) {
  const Array x = array(DType::S32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto sum = [&](const Arg& dim, bool keep, DType t, const Dims& dims) {
    return compute("sum.dim_IntList",
                   {{"self", Ref{0}}, {"dim", dim}, {"keepdim", keep}, {"dtype", std::monostate{}}}, {x},
                   {{t, dims}})[0];
  };
  expect_array(sum(std::vector<int64_t>{-1}, false, DType::S64, {2}), DType::S64, {2}, {6, 15});
  expect_array(sum(std::vector<int64_t>{0}, true, DType::S64, {1, 3}), DType::S64, {1, 3}, {5, 7, 9});
  expect_array(sum(std::monostate{}, false, DType::S64, {}), DType::S64, {}, {21});
}

TEST(Table, MatrixProduct) {
  const auto out = compute("mm", {{"self", Ref{0}}, {"mat2", Ref{1}}},
                           {array(DType::F32, {2, 2}, {1, 2, 3, 4}), array(DType::F32, {2, 1}, {5, 6})},
                           {{DType::F32, {2, 1}}});
  expect_array(out[0], DType::F32, {2, 1}, {17, 39}, 1e-6);
}

}  // namespace
}  // namespace tpu::ops
