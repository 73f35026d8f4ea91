// Orthogonal polynomials of a degree given element by element, as torch.special has them.
#pragma once

#include "core/ops/call.h"

namespace tpu::ops {

enum class Polynomial {
  ChebyshevT,
  ChebyshevU,
  ChebyshevV,
  ChebyshevW,
  HermiteH,
  HermiteHe,
  Laguerre,
  Legendre
};

/// P_n(x); n is truncated to an integer, 0 below zero. Floats of one dtype.
Value orthogonal(Polynomial kind, Value x, Value n);

}  // namespace tpu::ops
