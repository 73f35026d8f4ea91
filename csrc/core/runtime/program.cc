#include "core/runtime/program.h"

#include <cstring>
#include <new>

#include "core/base/error.h"

namespace tpu::runtime {
namespace {

uint16_t bfloat16_bits(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  if (v != v) return 0x7FC0;
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

uint16_t half_bits(float v) {
  const _Float16 h = static_cast<_Float16>(v);
  uint16_t bits;
  std::memcpy(&bits, &h, 2);
  return bits;
}

template <typename T>
std::array<uint64_t, 2> bits_of(T v) {
  std::array<uint64_t, 2> out{};
  std::memcpy(out.data(), &v, sizeof v);
  return out;
}

}  // namespace

std::array<uint64_t, 2> ScalarValue::as(DType t) const {
  const bool is_int = kind == Kind::Int;
  const double real = is_int ? static_cast<double>(integer) : re;
  const float single = is_int ? static_cast<float>(integer) : static_cast<float>(re);  // rounded once
  if (t == DType::Bool) return bits_of<uint8_t>(is_int ? integer != 0 : re != 0 || im != 0);
  switch (t) {
    case DType::F32:
      return bits_of(single);
    case DType::F64:
      return bits_of(real);
    case DType::BF16:
      return bits_of(bfloat16_bits(single));
    case DType::F16:
      return bits_of(half_bits(single));
    case DType::C64:
      return bits_of(std::array{single, static_cast<float>(im)});
    case DType::C128:
      return bits_of(std::array{real, im});
    case DType::F8E4M3:
    case DType::F8E5M2:
      throw Error(Code::Unimplemented, "", "a float8 scalar: convert it from float32 in the program");
    default:
      break;
  }
  // Of the integers only u64 reaches beyond 2^63.
  const int64_t whole = is_int         ? integer
                        : re >= 0x1p63 ? static_cast<int64_t>(static_cast<uint64_t>(re))
                                       : static_cast<int64_t>(re);
  std::array<uint64_t, 2> out{};
  std::memcpy(out.data(), &whole, static_cast<size_t>(size_of(t)));  // little-endian: the low bytes
  return out;
}

void Program::launch(Device& device, std::span<Cell* const> cells, std::span<const ScalarValue> scalars,
                     Generator* generator, std::vector<ArrayPtr>& outputs) const {
  if (!executable) return pretend(device, cells, outputs);
  // Reused between launches of a thread: no allocation once warm.
  thread_local std::vector<pjrt::Buffer*> arguments;
  thread_local std::vector<int64_t> keep;
  thread_local std::vector<ArrayPtr> extras;
  thread_local std::vector<std::unique_ptr<pjrt::Buffer>> results;
  arguments.clear(), keep.clear(), extras.clear(), results.clear();

  for (int k : plan.cells) arguments.push_back(&cells[k]->materialize()->buffer());
  for (const auto& [slot, dtype] : plan.extra.scalars) {
    if (slot == ops::Parameters::kRandom) {
      const Generator::State s = generator->advance(plan.extra.random_count);
      const uint32_t words[4] = {static_cast<uint32_t>(s.seed), static_cast<uint32_t>(s.seed >> 32),
                                 static_cast<uint32_t>(s.offset), static_cast<uint32_t>(s.offset >> 32)};
      extras.push_back(device.upload(words, {DType::U32, {4}}));
    } else {
      extras.push_back(device.scalar(scalars[slot].as(dtype), dtype));
    }
    arguments.push_back(&extras.back()->buffer());
  }
  device.need(bytes);
  std::unique_lock enqueue(device.enqueue());
  for (size_t i = 0; i < plan.written.size(); i++)
    if (plan.donated[i] >= 0 && cells[plan.written[i]]->array.use_count() > 1)
      keep.push_back(plan.donated[i]);
  pjrt::Event done;
  try {
    done = executable->execute(arguments, device.index(), keep, results);
  } catch (const Error& e) {
    if (e.code == Code::OutOfMemory) throw device.out_of_memory(bytes);
    throw;
  } catch (const std::bad_alloc&) {
    throw device.out_of_memory(bytes);
  }

  outputs.clear();
  size_t next = 0;
  for (; next < plan.outputs.size(); next++)
    outputs.push_back(std::make_shared<Array>(std::move(results[next]), device));
  for (int k : plan.written) {
    Cell& cell = *cells[k];
    cell.array = std::make_shared<Array>(std::move(results[next++]), device);
    cell.type = {cell.array->buffer().dtype(), cell.array->buffer().dims()};
  }
  enqueue.unlock();
  device.launched(std::move(done),
                  checks ? std::make_shared<Array>(std::move(results[next]), device) : nullptr, checks);
  extras.clear();
}

void Program::pretend(Device& device, std::span<Cell* const> cells, std::vector<ArrayPtr>& outputs) const {
  outputs.clear();
  for (const hlo::Type& type : plan.outputs) outputs.push_back(device.zeros(type));
  for (int k : plan.written) cells[k]->array = device.zeros(cells[k]->type);
}

}  // namespace tpu::runtime
