#include "core/ops/call.h"

#include <algorithm>

#include "core/hlo/evaluate.h"

namespace tpu::ops {
namespace {

using namespace tpu::testing;

// A call of "op" over parameters of the given types; its arguments are filled in by each test.
struct Made {
  explicit Made(const std::vector<Type>& types, bool checks = true)
      : lowering(hlo::Precision::Highest, Platform::Cpu, checks) {
    for (const Type& t : types) values.push_back(lowering.b.parameter(t));
  }
  void add(const std::string& name, Arg arg) { names.push_back(name), args.push_back(std::move(arg)); }
  Call call() { return Call(lowering, op, names, args, values, outs); }

  const std::string op = "op";
  Lowering lowering;
  Values values;
  std::vector<std::string> names;
  std::vector<Arg> args;
  std::vector<Type> outs;
};

Number wrapped(DType t) { return {t, true, -1, 1.0, 1}; }
Number zero_dim(DType t) { return {t, false, -1, 1.0, 1}; }

template <typename F>
void expect_fault(F f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "no error, expected one with: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.code, Code::Internal);
    EXPECT_EQ(e.op, "op");
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Call, ArgumentsByName) {
  Made m({{DType::F32, {2}}});
  m.add("self", Ref{0});
  m.add("other", std::monostate{});
  m.add("dim", std::vector<int64_t>{1, -1});
  m.add("one", int64_t{3});
  m.add("keepdim", true);
  m.add("mode", std::string("none"));
  m.add("dtype", DType::F64);
  m.add("p", Number{DType::F64, true, -1, 0.5, 0});
  m.add("scales", std::vector<double>{1.5});
  m.add("mask", std::vector<bool>{true, false});
  m.add("list", std::vector<Ref>{{0}, {-1}});
  Call c = m.call();
  EXPECT_TRUE(c.has("self"));
  EXPECT_FALSE(c.has("other"));
  EXPECT_FALSE(c.has("nothing of the kind"));
  EXPECT_EQ(c.tensor("self").id(), m.values[0].id());
  EXPECT_FALSE(c.maybe("other").has_value());
  EXPECT_TRUE(c.maybe("self").has_value());
  EXPECT_EQ(c.ints("dim"), (Dims{1, -1}));
  EXPECT_EQ(c.ints("one"), Dims{3});
  EXPECT_EQ(c.ints("other"), Dims{});
  EXPECT_EQ(c.integer("one"), 3);
  EXPECT_TRUE(c.flag("keepdim"));
  EXPECT_EQ(c.str("mode"), "none");
  EXPECT_EQ(c.dtype("dtype", DType::F32), DType::F64);
  EXPECT_EQ(c.dtype("other", DType::F32), DType::F32);
  EXPECT_EQ(c.number("p"), 0.5);
  EXPECT_TRUE(c.is_fixed("p"));
  EXPECT_EQ(c.numbers("scales"), std::vector<double>{1.5});
  EXPECT_EQ(c.flags("mask"), (std::vector<bool>{true, false}));
  EXPECT_EQ(c.maybe_tensors("list").size(), 2u);
  EXPECT_FALSE(c.maybe_tensors("list")[1].has_value());
  EXPECT_EQ(c.dtype_of("self"), DType::F32);
  EXPECT_EQ(c.dtype_of("one"), DType::S64);
  EXPECT_EQ(c.dtype_of("keepdim"), DType::Bool);
}

TEST(Call, WrongUseIsAnErrorThatNamesTheArgument) {
  Made m({{DType::F32, {2}}});
  m.add("self", Ref{0});
  m.add("p", Number{DType::F64, true, 0, 0, 0});
  m.add("none", std::monostate{});
  m.add("list", std::vector<Ref>{{0}, {-1}});
  m.add("far", Ref{9});
  Call c = m.call();
  expect_fault([&] { c.tensor("missing"); }, "its schema has no argument missing");
  expect_fault([&] { c.integer("self"); }, "argument self is not an integer");
  expect_fault([&] { c.flag("self"); }, "argument self is not a bool");
  expect_fault([&] { c.str("self"); }, "argument self is not a string");
  expect_fault([&] { c.ints("self"); }, "argument self is not a list of integers");
  expect_fault([&] { c.dtype("self", DType::F32); }, "argument self is not a dtype");
  expect_fault([&] { c.tensors("self"); }, "argument self is not a list of tensors");
  expect_fault([&] { c.tensor("none"); }, "argument none is not a tensor or a number");
  expect_fault([&] { c.number("p"); }, "is read as a constant but is not fixed");
  expect_fault([&] { c.tensors("list"); }, "argument list is not a tensor");
  expect_fault([&] { c.tensor("far"); }, "argument far is not a tensor");
}

struct Promotion {
  DType want;
  std::vector<Arg> args;  // a Ref's value is an index into the types below
};

// Values 0.. are tensors with dimensions, the second half 0-d tensors of the same dtypes.
const DType kTypes[] = {DType::Bool, DType::U8,  DType::S8,  DType::S32, DType::S64, DType::F16,
                        DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128};
constexpr int kCount = std::size(kTypes);

int place(DType t) { return static_cast<int>(std::find(kTypes, kTypes + kCount, t) - kTypes); }
Ref dimensioned(DType t) { return {place(t)}; }
Ref scalar_tensor(DType t) { return {kCount + place(t)}; }

TEST(Call, PromotedFollowsTorchResultType) {
  const Promotion cases[] = {
      // tensors with dimensions
      {DType::F32, {dimensioned(DType::F32), dimensioned(DType::S64)}},
      {DType::F32, {dimensioned(DType::F16), dimensioned(DType::BF16)}},
      {DType::S16, {dimensioned(DType::U8), dimensioned(DType::S8)}},
      {DType::S64, {dimensioned(DType::Bool), dimensioned(DType::S64)}},
      {DType::C128, {dimensioned(DType::F64), dimensioned(DType::C64)}},
      {DType::C64, {dimensioned(DType::F16), dimensioned(DType::C64)}},
      // a 0-d tensor counts only in a higher category
      {DType::F32, {dimensioned(DType::F32), scalar_tensor(DType::F64)}},
      {DType::BF16, {scalar_tensor(DType::F32), dimensioned(DType::BF16)}},
      {DType::F64, {dimensioned(DType::S32), scalar_tensor(DType::F64)}},
      {DType::S8, {dimensioned(DType::S8), scalar_tensor(DType::S64)}},
      {DType::S64, {dimensioned(DType::Bool), scalar_tensor(DType::S64)}},
      {DType::C64, {dimensioned(DType::F32), scalar_tensor(DType::C128)}},
      {DType::C128, {dimensioned(DType::F64), scalar_tensor(DType::C64)}},
      {DType::F64, {scalar_tensor(DType::F32), scalar_tensor(DType::F64)}},
      // Python numbers count least, with the default dtypes
      {DType::F16, {dimensioned(DType::F16), wrapped(DType::F64)}},
      {DType::F16, {scalar_tensor(DType::F16), wrapped(DType::F64)}},
      {DType::F32, {dimensioned(DType::S64), wrapped(DType::F64)}},
      {DType::F32, {dimensioned(DType::Bool), wrapped(DType::F64)}},
      {DType::S64, {dimensioned(DType::Bool), wrapped(DType::S64)}},
      {DType::Bool, {dimensioned(DType::Bool), wrapped(DType::Bool)}},
      {DType::U8, {dimensioned(DType::U8), wrapped(DType::S64)}},
      {DType::U8, {dimensioned(DType::U8), wrapped(DType::Bool)}},
      {DType::C64, {dimensioned(DType::F32), wrapped(DType::C128)}},
      {DType::C128, {dimensioned(DType::F64), wrapped(DType::C128)}},
      {DType::C64, {dimensioned(DType::S32), wrapped(DType::C128)}},
      {DType::C64, {wrapped(DType::F64), wrapped(DType::C128)}},
      {DType::F32, {wrapped(DType::F64), wrapped(DType::S64)}},
      {DType::S64, {int64_t{1}, true}},
      // a 0-d CPU tensor is a 0-d tensor
      {DType::F64, {dimensioned(DType::S32), zero_dim(DType::F64)}},
      {DType::F32, {dimensioned(DType::F32), zero_dim(DType::F64)}},
      {DType::F64, {zero_dim(DType::F64), wrapped(DType::F64)}},
      // None does not count
      {DType::S8, {dimensioned(DType::S8), std::monostate{}}},
  };
  std::vector<Type> types;
  for (DType t : kTypes) types.push_back({t, {2}});
  for (DType t : kTypes) types.push_back({t, {}});
  for (size_t i = 0; i < std::size(cases); i++) {
    Made m(types);
    m.add("self", cases[i].args[0]);
    m.add("other", cases[i].args[1]);
    EXPECT_EQ(name(m.call().promoted({"self", "other"})), name(cases[i].want)) << "case " << i;
    EXPECT_EQ(name(m.call().promoted({"other", "self"})), name(cases[i].want)) << "case " << i << " swapped";
  }
}

TEST(Call, DimsAreWrappedAndSorted) {
  Made m({{DType::F32, {2, 3, 4}}});
  m.add("dim", std::vector<int64_t>{-1, 0});
  m.add("none", std::monostate{});
  m.add("empty", std::vector<int64_t>{});
  Call c = m.call();
  EXPECT_EQ(c.dims("dim", 3), (Dims{0, 2}));
  EXPECT_EQ(c.dims("none", 3), (Dims{0, 1, 2}));
  EXPECT_EQ(c.dims("empty", 2), (Dims{0, 1}));
  EXPECT_EQ(c.dims("dim", 0), Dims{});
  EXPECT_EQ(Call::wrap(-1, 3), 2);
  EXPECT_EQ(Call::wrap(-1, 0), 0);
}

TEST(Call, NumbersBecomeValuesOfTheTypeAsked) {
  Made m({});
  m.add("f", Number{DType::F64, true, -1, 2.75, 0});
  m.add("i", Number{DType::S64, true, -1, 0.0, (int64_t{1} << 53) + 1});
  m.add("b", Number{DType::Bool, true, -1, 1.0, 1});
  m.add("c", Number{DType::C128, true, -1, {1, 2}, 0});
  m.add("n", int64_t{7});
  m.add("list", std::vector<Number>{wrapped(DType::F64), wrapped(DType::S64)});
  Call c = m.call();
  Values out{
      c.tensor("f"), c.scalar("f", DType::S32), c.scalar("f", DType::Bool),      c.scalar("f", DType::BF16),
      c.tensor("i"), c.scalar("b", DType::F32), c.tensor("c", DType::C64),       c.scalar("c", DType::F32),
      c.tensor("n"), c.scalar("n", DType::F32), c.scalars("list", DType::F32)[1]};
  const auto got = execute(m.lowering.b.finish(out), {});
  const Numbers want{2.75, 2, 1, 2.75, 0, 1, {1, 2}, 1, 7, 7, 1};
  for (size_t i = 0; i < got.size(); i++)
    if (i != 4) expect_numbers(got[i], {want[i]}, 0, std::to_string(i));
  EXPECT_EQ(got[4].as<int64_t>()[0], (int64_t{1} << 53) + 1);
}

TEST(Call, IndexMovesClampsAndReports) {
  Made m({{DType::S64, {4}}, {DType::S32, {2}}, {DType::U8, {2}}});
  Call c = m.call();
  Values out{c.index(m.values[0], 0, 3, true), c.index(m.values[1], 1, 5), c.index(m.values[2], 2, 200),
             m.lowering.faults()};
  ASSERT_EQ(m.lowering.parameters().checks.size(), 3u);
  EXPECT_EQ(m.lowering.parameters().checks[1].op, "op");
  EXPECT_EQ(m.lowering.parameters().checks[1].message,
            "index # is out of bounds for dimension 1 with size 5");
  const std::string module = m.lowering.b.finish(out);
  auto got = execute(module, {array(DType::S64, {4}, {0, -1, 2, -3}), array(DType::S32, {2}, {4, 0}),
                              array(DType::U8, {2}, {199, 0})});
  expect_numbers(got[0], {0, 2, 2, 0});
  expect_numbers(got[1], {4, 0});
  expect_numbers(got[2], {199, 0});
  EXPECT_EQ(got[3].as<int64_t>(), std::vector<int64_t>(3, kNoFault));
  got = execute(module, {array(DType::S64, {4}, {0, -4, 2, 1}), array(DType::S32, {2}, {-1, 9}),
                         array(DType::U8, {2}, {200, 0})});
  expect_numbers(got[0], {0, 0, 2, 1});  // clamped
  expect_numbers(got[1], {0, 4});
  expect_numbers(got[2], {199, 0});
  EXPECT_EQ(got[3].as<int64_t>(), (std::vector<int64_t>{-4, 9, 200}));  // as the user wrote them
}

TEST(Call, NoIndicesNoCheck) {
  Made m({{DType::S64, {0}}});
  m.call().index(m.values[0], 0, 3);
  EXPECT_TRUE(m.lowering.parameters().checks.empty());
  Made off({{DType::S64, {2}}}, false);
  off.call().index(off.values[0], 0, 3);
  EXPECT_TRUE(off.lowering.parameters().checks.empty());
}

TEST(Call, ResultTypes) {
  Made m({});
  m.outs = {{DType::BF16, {2}}, {DType::S64, {}}};
  Call c = m.call();
  EXPECT_EQ(c.outs(), 2);
  EXPECT_EQ(c.out_dtype(1), DType::S64);
  EXPECT_EQ(c.compute_dtype(), DType::F32);
  EXPECT_EQ(c.out().dims, Dims{2});
}

}  // namespace
}  // namespace tpu::ops
