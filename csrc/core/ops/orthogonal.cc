#include "core/ops/orthogonal.h"

#include <cmath>

#include "core/ops/math.h"

namespace tpu::ops {

using namespace hlo;

namespace {

bool is_chebyshev(Polynomial kind) { return kind <= Polynomial::ChebyshevW; }

// The polynomial of degree 1.
Value first_degree(Polynomial kind, Value x) {
  switch (kind) {
    case Polynomial::ChebyshevU:
    case Polynomial::HermiteH:
      return x + x;
    case Polynomial::ChebyshevV:
      return x + x - 1.0;
    case Polynomial::ChebyshevW:
      return x + x + 1.0;
    case Polynomial::Laguerre:
      return 1.0 - x;
    default:
      return x;
  }
}

// Degree k + 1 from the degrees k (q) and k - 1 (p).
Value next_degree(Polynomial kind, Value x, Value k, Value q, Value p) {
  switch (kind) {
    case Polynomial::HermiteH:
      return (x + x) * q - (k + k) * p;
    case Polynomial::HermiteHe:
      return x * q - k * p;
    case Polynomial::Laguerre:
      return ((k + k + 1.0 - x) * q - k * p) / (k + 1.0);
    case Polynomial::Legendre:
      return ((k + k + 1.0) * x * q - k * p) / (k + 1.0);
    default:
      return (x + x) * q - p;
  }
}

// Chebyshev polynomials inside (-1, 1) in closed form, x = cos(angle).
Value by_angle(Polynomial kind, Value x, Value n) {
  Value angle = apply<"chlo.acos">(x), half = angle * 0.5;
  switch (kind) {
    case Polynomial::ChebyshevT:
      return cos(n * angle);
    case Polynomial::ChebyshevU:
      return sin((n + 1.0) * angle) / sin(angle);
    case Polynomial::ChebyshevV:
      return cos((n + 0.5) * angle) / cos(half);
    default:
      return sin((n + 0.5) * angle) / sin(half);
  }
}

// The value at x = 1 (`top`) or x = -1, where recurrences of high degree lose their precision.
Value at_end(Polynomial kind, Value n, bool top) {
  Value one = full_like(n, 1), odd = not_equal(hlo::remainder(n, like(n, 2)), like(n, 0));
  const auto alternating = [&](Value size) { return top ? size : select(odd, -size, size); };
  switch (kind) {
    case Polynomial::ChebyshevU:
      return alternating(n + 1.0);
    case Polynomial::ChebyshevV:
      return top ? one : alternating(n + n + 1.0);
    case Polynomial::ChebyshevW:
      return top ? n + n + 1.0 : alternating(one);
    default:
      return alternating(one);
  }
}

}  // namespace

Value orthogonal(Polynomial kind, Value x, Value n) {
  const Dims dims = broadcast_dims(x.dims(), n.dims());
  x = broadcast_to(x, dims), n = truncate(broadcast_to(n, dims));
  const DType t = x.dtype();
  Dims all;
  for (size_t i = 0; i < dims.size(); i++) all.push_back(static_cast<int64_t>(i));

  Value closed = all_bool(x, false);
  if (is_chebyshev(kind)) closed = (abs(x) < 1.0) & (n > (kind == Polynomial::ChebyshevT ? 6.0 : 8.0));
  if (is_chebyshev(kind) || kind == Polynomial::Legendre) closed = closed | equal(abs(x), like(x, 1));
  Value overflow = all_bool(x, false);
  if (kind == Polynomial::HermiteH || kind == Polynomial::HermiteHe)
    overflow = n > (t == DType::F64 ? 512.0 : 128.0);  // as torch: beyond this the numbers mean nothing
  // The recurrence runs while an element has degrees to go and is still a number.
  Value degree = select(closed | overflow, full_like(n, 1), n);
  const auto open = [](const Values& v) { return (v[0] < v[2]) & logical_not(is_nan(v[3])); };
  const Values last = while_loop(
      {like(x, 1), x, degree, first_degree(kind, x), full_like(x, 1)},
      [&](const Values& v) {
        Value more = open(v);
        return all.empty() ? more : reduce_or(more, all);
      },
      [&](const Values& v) -> Values {
        Value more = open(v), k = v[0];
        Value next = next_degree(kind, v[1], broadcast_to(k, dims), v[3], v[4]);
        return {k + 1.0, v[1], v[2], select(more, next, v[3]), select(more, v[3], v[4])};
      });
  Value y = last[3];
  if (is_chebyshev(kind)) y = select(closed, by_angle(kind, x, n), y);
  if (is_chebyshev(kind) || kind == Polynomial::Legendre) {
    y = select(equal(x, like(x, 1)), at_end(kind, n, true), y);
    y = select(equal(x, like(x, -1)), at_end(kind, n, false), y);
  }
  y = select(overflow, full_like(y, NAN), y);
  y = select(equal(n, like(n, 0)), full_like(y, 1), y);
  return select(n < 0.0, full_like(y, 0), y);
}

}  // namespace tpu::ops
