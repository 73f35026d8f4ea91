// Discrete Fourier transforms over any dimensions, in PyTorch's three forms.
#include <algorithm>
#include <cmath>

#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

constexpr int kAtOnce = 3;  // innermost dimensions that stablehlo.fft takes

// x transformed over `dims`, at most kAtOnce of them, the last one innermost. IRFFT's result has `length`
// elements there.
Value transform(Value x, Fft kind, const Dims& dims, int64_t length = 0) {
  const int rank = x.rank();
  Dims order, lengths, back(rank);
  for (int d = 0; d < rank; d++)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) order.push_back(d);
  order.insert(order.end(), dims.begin(), dims.end());
  for (const int64_t d : dims) lengths.push_back(x.dims()[d]);
  if (kind == Fft::IRFFT) lengths.back() = length;
  for (int i = 0; i < rank; i++) back[order[i]] = i;
  return transpose(fft(transpose(x, order), kind, lengths), back);
}

// The complex transform over any number of dimensions.
Value complex_transform(Value x, Fft kind, Dims dims) {
  while (!dims.empty()) {
    const auto from = dims.end() - std::min<std::ptrdiff_t>(dims.size(), kAtOnce);
    x = transform(x, kind, Dims(from, dims.end()));
    dims.erase(from, dims.end());
  }
  return x;
}

// Takes the dimensions that go with the real one (the last) off the end of `dims`.
Dims innermost(Dims& dims) {
  const auto from = dims.end() - std::min<std::ptrdiff_t>(dims.size(), kAtOnce);
  Dims out(from, dims.end());
  dims.erase(from, dims.end());
  return out;
}

Dims transformed(Call& c, int rank) {
  Dims dims = c.ints("dim");
  for (int64_t& d : dims) d = Call::wrap(d, rank);
  return dims;
}

// x times the factor of `normalization` (0: none, 1: 1 / sqrt(n), 2: 1 / n) for n elements a transform.
// XLA's inverse transforms divide by n themselves. Parts are scaled one by one: a complex product would
// turn infinities into NaN.
Value normalized(Call& c, Value x, int64_t n, bool inverse) {
  const int64_t normalization = c.integer("normalization");
  const double count = static_cast<double>(n);
  double factor = normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(count) : 1 / count;
  if (inverse) factor = normalization == 2 ? 1 : factor * count;
  if (factor == 1) return x;
  return is_complex(x.dtype()) ? complex(real(x) * factor, imag(x) * factor) : x * factor;
}

int64_t count(const Dims& shape, const Dims& dims) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= shape[d];
  return n;
}

// _fft_c2c(self, dim, normalization, forward)
Results complex_to_complex(Call& c) {
  Value x = c.tensor("self");
  const bool inverse = !c.flag("forward");
  const Dims dims = transformed(c, x.rank());
  if (x.elements() == 0 || dims.empty()) return x;
  return normalized(c, complex_transform(x, inverse ? Fft::IFFT : Fft::FFT, dims), count(x.dims(), dims),
                    inverse);
}

// _fft_r2c(self, dim, normalization, onesided): the last of dim has half of its elements, the others follow
// from them.
Results real_to_complex(Call& c) {
  Value x = c.tensor("self");
  Dims dims = transformed(c, x.rank());
  if (x.elements() == 0) return full(c.b, 0, c.out());
  const int64_t n = count(x.dims(), dims);
  if (!c.flag("onesided"))
    return normalized(c, complex_transform(convert(x, c.out_dtype()), Fft::FFT, dims), n, false);
  x = transform(x, Fft::RFFT, innermost(dims));
  return normalized(c, complex_transform(x, Fft::FFT, dims), n, false);
}

// _fft_c2r(self, dim, normalization, last_dim_size): the inverse of the one-sided form.
Results complex_to_real(Call& c) {
  Value x = c.tensor("self");
  Dims dims = transformed(c, x.rank());
  if (x.elements() == 0 || c.out().elements() == 0) return full(c.b, 0, c.out());
  const int64_t n = count(c.out().dims, dims);
  const Dims last = innermost(dims);
  x = transform(complex_transform(x, Fft::IFFT, dims), Fft::IRFFT, last, c.integer("last_dim_size"));
  return normalized(c, x, n, true);
}

}  // namespace

void fft(Table& t) {
  t.op("_fft_c2c", complex_to_complex);
  t.op("_fft_r2c", real_to_complex);
  t.op("_fft_c2r", complex_to_real);
}

}  // namespace tpu::ops
