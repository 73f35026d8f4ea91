// Element types: one enum shared by PyTorch's dtypes, PJRT's buffer types and StableHLO's type names.
#pragma once

#include <cstdint>
#include <string_view>

namespace tpu {

enum class DType : uint8_t {
  Bool,
  S8,
  S16,
  S32,
  S64,
  U8,
  U16,
  U32,
  U64,
  F16,
  BF16,
  F32,
  F64,
  C64,
  C128,
  F8E4M3,
  F8E5M2
};

/// StableHLO spelling, e.g. "f32", "i1", "complex<f32>".
constexpr std::string_view name(DType t) {
  constexpr std::string_view names[] = {"i1",   "i8",           "i16",          "i32",      "i64",   "ui8",
                                        "ui16", "ui32",         "ui64",         "f16",      "bf16",  "f32",
                                        "f64",  "complex<f32>", "complex<f64>", "f8E4M3FN", "f8E5M2"};
  return names[static_cast<int>(t)];
}

/// Bytes of one element.
constexpr int size_of(DType t) {
  constexpr int sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1};
  return sizes[static_cast<int>(t)];
}

constexpr bool is_complex(DType t) { return t == DType::C64 || t == DType::C128; }
constexpr bool is_float(DType t) {
  return (t >= DType::F16 && t <= DType::F64) || t == DType::F8E4M3 || t == DType::F8E5M2;
}
constexpr bool is_signed_int(DType t) { return t >= DType::S8 && t <= DType::S64; }
constexpr bool is_unsigned_int(DType t) { return t >= DType::U8 && t <= DType::U64; }
/// Integers without bool.
constexpr bool is_int(DType t) { return is_signed_int(t) || is_unsigned_int(t); }

/// The real type of a complex one; any other type is its own.
constexpr DType real_of(DType t) { return t == DType::C64 ? DType::F32 : t == DType::C128 ? DType::F64 : t; }
/// The complex type over a real one (f64 -> complex<f64>, every other -> complex<f32>).
constexpr DType complex_of(DType t) { return is_complex(t) ? t : t == DType::F64 ? DType::C128 : DType::C64; }
/// The type arithmetic is done in: half-width floats compute in f32 and are rounded once at the end.
constexpr DType compute_type(DType t) { return is_float(t) && t != DType::F64 ? DType::F32 : t; }

/// PyTorch's promotion of two types (torch.promote_types), without the dimension rule.
DType promote(DType a, DType b);

}  // namespace tpu
