#include "core/ops/lowering.h"

#include "core/base/error.h"

namespace tpu::ops {

using namespace hlo;

Value Lowering::scalar(int slot, DType dtype) {
  auto [at, fresh] = scalars_.try_emplace({slot, dtype});
  if (fresh) {
    at->second = b.parameter(Type{dtype, {}});
    parameters_.scalars.emplace_back(slot, dtype);
  }
  return at->second;
}

Values Lowering::random(int64_t count) {
  if (!static_cast<bool>(random_state_)) {  // plain ! is the maths of Values
    random_state_ = b.parameter(Type{DType::U32, {4}});
    parameters_.scalars.emplace_back(Parameters::kRandom, DType::U32);
  }
  Values word;
  for (int i = 0; i < 4; i++) word.push_back(reshape(slice(random_state_, {i}, {i + 1}), {}));
  // The counter is 64 bits wide, in two words.
  const uint64_t skip = static_cast<uint64_t>(parameters_.random_count);
  Value low = word[2] + b.constant(static_cast<int64_t>(skip & 0xffffffffu), DType::U32);
  Value carry = convert(low < word[2], DType::U32);
  Value high = word[3] + b.constant(static_cast<int64_t>(skip >> 32), DType::U32) + carry;
  parameters_.random_count += count;
  return {word[0], word[1], low, high};
}

void Lowering::check(const std::string& op, Value index, int64_t dim, int64_t size, Code code) {
  if (!bounds_checks || index.elements() == 0) return;
  Value wide = convert(index, DType::S64);
  Value bad = (wide < b.constant(int64_t{0}, DType::S64)) | (wide >= b.constant(size, DType::S64));
  report(op, select(bad, wide, b.constant(kNoFault, DType::S64)),
         text("index # is out of bounds for dimension ", dim, " with size ", size), code);
}

void Lowering::require(const std::string& op, Value holds, const std::string& message, Code code) {
  if (!bounds_checks || holds.elements() == 0) return;
  report(op, select(holds, b.constant(kNoFault, DType::S64), b.constant(int64_t{0}, DType::S64)), message,
         code);
}

void Lowering::report(const std::string& op, Value found, const std::string& message, Code code) {
  Dims all;
  for (int i = 0; i < found.rank(); i++) all.push_back(i);
  faults_.push_back(reshape(reduce_max(found, all), {1}));
  parameters_.checks.push_back({op, message, code});
}

Value Lowering::faults() { return concatenate(faults_, 0); }

}  // namespace tpu::ops
