#include "core/hlo/type.h"

#include "core/base/error.h"

namespace tpu::hlo {
namespace {

std::string join(std::span<const int64_t> values) {
  std::string out;
  for (size_t i = 0; i < values.size(); i++) out += (i ? ", " : "") + std::to_string(values[i]);
  return out;
}

}  // namespace

int64_t product(std::span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

int64_t Type::elements() const { return product(dims); }

std::string Type::str() const {
  std::string out = "tensor<";
  for (int64_t d : dims) out += std::to_string(d) + "x";
  out += name(dtype);
  return out + ">";
}

std::string str(std::span<const int64_t> dims) { return "[" + join(dims) + "]"; }

std::string i64_array(std::span<const int64_t> values) {
  return values.empty() ? "array<i64>" : "array<i64: " + join(values) + ">";
}

Dims row_major(std::span<const int64_t> dims) {
  Dims strides(dims.size(), 1);
  for (int i = static_cast<int>(dims.size()) - 2; i >= 0; i--) strides[i] = strides[i + 1] * dims[i + 1];
  return strides;
}

}  // namespace tpu::hlo
