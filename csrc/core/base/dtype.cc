#include "core/base/dtype.h"

#include <algorithm>

namespace tpu {

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) {
    const bool wide = a == DType::C128 || b == DType::C128 || a == DType::F64 || b == DType::F64;
    return wide ? DType::C128 : DType::C64;
  }
  if (is_float(a) && is_float(b)) {
    if (a == DType::F64 || b == DType::F64) return DType::F64;
    if (size_of(a) == size_of(b)) return DType::F32;  // f16 with bf16
    return size_of(a) > size_of(b) ? a : b;
  }
  if (is_float(a)) return a;
  if (is_float(b)) return b;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_unsigned_int(a) == is_unsigned_int(b)) return size_of(a) > size_of(b) ? a : b;
  const DType s = is_signed_int(a) ? a : b, u = is_signed_int(a) ? b : a;
  if (size_of(s) > size_of(u)) return s;
  switch (size_of(u)) {
    case 1:
      return DType::S16;
    case 2:
      return DType::S32;
    default:
      return DType::S64;
  }
}

}  // namespace tpu
