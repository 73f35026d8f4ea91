#include "core/view/bits.h"

namespace tpu::view {

using namespace hlo;

namespace {

// Bits can only be reinterpreted between types that have them: bool stands for a byte, complex for its two
// parts.
DType bits_of(DType t) { return t == DType::Bool ? DType::U8 : real_of(t); }

}  // namespace

DType common_unit(DType a, DType b) {
  const DType x = bits_of(a), y = bits_of(b);
  return size_of(x) <= size_of(y) ? x : y;
}

Value to_units(Value x, DType unit) {
  if (is_complex(x.dtype())) {
    x = concatenate({unsqueeze(real(x), -1), unsqueeze(imag(x), -1)}, x.rank());
    const int64_t k = size_of(x.dtype()) / size_of(unit);
    if (k == 1) return bitcast(x, unit);
    Dims split = x.dims(), merged = x.dims();
    split.push_back(k);
    merged.back() *= k;
    return reshape(x.builder().emit("stablehlo.bitcast_convert", {x}, Type{unit, split}), merged);
  }
  if (x.dtype() == DType::Bool) return bitcast(convert(x, DType::U8), unit);
  const int64_t k = size_of(x.dtype()) / size_of(unit);
  Dims dims = x.dims();
  if (k > 1) dims.push_back(k);
  return x.dtype() == unit ? x : x.builder().emit("stablehlo.bitcast_convert", {x}, Type{unit, dims});
}

Value from_units(Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (is_complex(dtype)) {
    const DType part = real_of(dtype);
    const int64_t k = size_of(part) / size_of(x.dtype());
    Dims dims = x.dims();
    dims.back() = 2;
    if (k > 1) {
      Dims split = dims;
      split.push_back(k);
      x = reshape(x, split);
    }
    x = x.dtype() == part ? x : x.builder().emit("stablehlo.bitcast_convert", {x}, Type{part, dims});
    const int last = x.rank() - 1;
    return complex(squeeze(slice_dim(x, last, 0, 1), last), squeeze(slice_dim(x, last, 1, 2), last));
  }
  if (dtype == DType::Bool) return convert(bitcast(x, DType::U8), dtype);
  Dims dims = x.dims();
  if (size_of(dtype) > size_of(x.dtype())) dims.pop_back();
  return x.builder().emit("stablehlo.bitcast_convert", {x}, Type{dtype, dims});
}

Layout in_units(const Layout& v, DType unit) {
  Layout out = v;
  const int64_t k = size_of(v.cell_dtype) / size_of(unit), m = size_of(v.dtype) / size_of(unit);
  out.cell_dtype = out.dtype = unit;
  if (k > 1) out.cell_dims.push_back(k);
  for (int64_t& s : out.strides) s *= m;
  out.offset *= m;
  if (m > 1) out.sizes.push_back(m), out.strides.push_back(1);
  return out;
}

}  // namespace tpu::view
