#include "torch/convert.h"

#include <c10/util/Exception.h>

namespace tpu::torch_shim {

DType to_core(c10::ScalarType type) {
  using c10::ScalarType;
  switch (type) {
    case ScalarType::Bool:
      return DType::Bool;
    case ScalarType::Char:
      return DType::S8;
    case ScalarType::Short:
      return DType::S16;
    case ScalarType::Int:
      return DType::S32;
    case ScalarType::Long:
      return DType::S64;
    case ScalarType::Byte:
      return DType::U8;
    case ScalarType::UInt16:
      return DType::U16;
    case ScalarType::UInt32:
      return DType::U32;
    case ScalarType::UInt64:
      return DType::U64;
    case ScalarType::Half:
      return DType::F16;
    case ScalarType::BFloat16:
      return DType::BF16;
    case ScalarType::Float:
      return DType::F32;
    case ScalarType::Double:
      return DType::F64;
    case ScalarType::ComplexFloat:
      return DType::C64;
    case ScalarType::ComplexDouble:
      return DType::C128;
    case ScalarType::Float8_e4m3fn:
      return DType::F8E4M3;
    case ScalarType::Float8_e5m2:
      return DType::F8E5M2;
    default:
      TORCH_CHECK_NOT_IMPLEMENTED(false, "dtype ", type,
                                  " is not supported on the tpu device; convert the tensor first");
  }
}

c10::ScalarType to_torch(DType type) {
  using c10::ScalarType;
  constexpr ScalarType types[] = {
      ScalarType::Bool,       ScalarType::Char,         ScalarType::Short,         ScalarType::Int,
      ScalarType::Long,       ScalarType::Byte,         ScalarType::UInt16,        ScalarType::UInt32,
      ScalarType::UInt64,     ScalarType::Half,         ScalarType::BFloat16,      ScalarType::Float,
      ScalarType::Double,     ScalarType::ComplexFloat, ScalarType::ComplexDouble, ScalarType::Float8_e4m3fn,
      ScalarType::Float8_e5m2};
  return types[static_cast<int>(type)];
}

}  // namespace tpu::torch_shim
