#include "core/ops/lowering.h"

#include "core/hlo/evaluate.h"

namespace tpu::ops {
namespace {

using namespace tpu::testing;

TEST(Lowering, AScalarIsOneParameterForEachSlotAndType) {
  Lowering l(hlo::Precision::Highest, Platform::Cpu, true);
  const hlo::Value first = l.scalar(0, DType::F32);
  EXPECT_EQ(l.scalar(0, DType::F32).id(), first.id());
  EXPECT_NE(l.scalar(0, DType::F64).id(), first.id());
  EXPECT_NE(l.scalar(1, DType::F32).id(), first.id());
  EXPECT_EQ(l.parameters().scalars,
            (std::vector<std::pair<int, DType>>{{0, DType::F32}, {0, DType::F64}, {1, DType::F32}}));
}

TEST(Lowering, RandomReservesCountersOneAfterTheOther) {
  Lowering l(hlo::Precision::Highest, Platform::Cpu, true);
  hlo::Values out = l.random(3);
  for (hlo::Value v : l.random(int64_t{1} << 32)) out.push_back(v);
  for (hlo::Value v : l.random(1)) out.push_back(v);
  EXPECT_EQ(l.parameters().random_count, 3 + (int64_t{1} << 32) + 1);
  EXPECT_EQ(l.parameters().scalars,
            (std::vector<std::pair<int, DType>>{{Parameters::kRandom, DType::U32}}));  // one state for all
  const double top = 4294967295.0;
  const auto got = execute(l.b.finish(out), {array(DType::U32, {4}, {11, 22, top - 1, 5})});
  // seed, then the offset 5 * 2^32 + (2^32 - 2), plus 0, 3 and 2^32 + 3
  const double want[] = {11, 22, top - 1, 5, 11, 22, 1, 6, 11, 22, 1, 7};
  for (size_t i = 0; i < got.size(); i++)
    expect_array(got[i], DType::U32, {}, {want[i]}, 0, std::to_string(i));
}

TEST(Lowering, CheckReportsTheLargestOffender) {
  Lowering l(hlo::Precision::Highest, Platform::Cpu, true);
  const hlo::Value index = l.b.parameter({DType::S32, {2, 2}});
  l.check("a", index, 0, 4);
  l.check("b", index, 1, 100);
  const std::string module = l.b.finish({l.faults()});
  EXPECT_EQ(execute(module, {array(DType::S32, {2, 2}, {0, 9, -1, 3})})[0].as<int64_t>(),
            (std::vector<int64_t>{9, -1}));
  EXPECT_EQ(execute(module, {array(DType::S32, {2, 2}, {0, 1, 2, 3})})[0].as<int64_t>(),
            (std::vector<int64_t>{kNoFault, kNoFault}));
}

}  // namespace
}  // namespace tpu::ops
