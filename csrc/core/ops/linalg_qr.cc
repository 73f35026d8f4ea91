// QR factorisations by Householder reflections, with LAPACK's signs.
#include "core/ops/householder.h"
#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// The first `columns` columns of H1 .. Hk.
Value columns_of(Reflections h, int64_t columns) {
  const int64_t batch = h.v.size(0), m = h.v.size(1);
  return apply(h, broadcast_to(eye(h.v.builder(), h.v.dtype(), m, columns), {batch, m, columns}));
}

// linalg_qr(A, mode) -> Q, R
Results qr(Call& c) {
  Value a = as_batch(matrices(c, "A"));
  const std::string mode = c.str("mode");
  const int64_t m = a.size(1), n = a.size(2), k = std::min(m, n), rows = mode == "complete" ? m : k;
  Value q = full(c.b, 0, c.out(0)), r = full(c.b, 0, c.out(1));
  if (k == 0 || a.size(0) == 0) {
    if (mode != "r" && rows > 0) q = broadcast_to(reshape(eye(c.b, a.dtype(), m, rows), {m, rows}), q.dims());
    return {q, r};
  }
  const Qr f = factor_qr(a);
  r = keep(logical_not(below_diagonal(c.b, m, n)), f.factored);
  r = rows < m ? slice_dim(r, 1, 0, rows) : r;
  if (mode != "r") q = reshape(columns_of(reflections_below(f.factored, f.tau), rows), q.dims());
  return {q, reshape(r, c.out(1).dims)};
}

Results geqrf(Call& c) {
  Value a = matrices(c, "self");
  Dims dims = batch_of(a.dims());
  dims.push_back(std::min(a.size(-1), a.size(-2)));
  if (a.elements() == 0) return {a, full(c.b, 0, {a.dtype(), dims})};
  const Qr f = factor_qr(as_batch(a));
  return {reshape(f.factored, a.dims()), reshape(f.tau, dims)};
}

// The reflections that two arguments hold, [.., m, n] and [.., k].
Reflections reflections(Call& c, const char* matrix, const char* factors) {
  Value tau = c.tensor(factors);
  return reflections_below(as_batch(matrices(c, matrix)), as_batch(unsqueeze(tau, tau.rank())));
}

Results householder_product(Call& c) {
  if (c.out().elements() == 0) return full(c.b, 0, c.out());
  return reshape(columns_of(reflections(c, "input", "tau"), c.out().dims.back()), c.out().dims);
}

// ormqr(self, input2, input3, left, transpose): op(Q) other or other op(Q)
Results ormqr(Call& c) {
  Value x = matrices(c, "input3");
  if (x.elements() == 0) return x;
  const Reflections h = reflections(c, "self", "input2");
  const bool left = c.flag("left"), transpose = c.flag("transpose");
  x = as_batch(x);
  if (left) return reshape(apply(h, x, transpose), c.out().dims);
  return reshape(adjoint(apply(h, adjoint(x), !transpose)), c.out().dims);
}

}  // namespace

void linalg_qr(Table& t) {
  t.op("linalg_qr", qr);
  t.op("geqrf", geqrf, {.infer = true});
  t.op("linalg_householder_product", householder_product);
  t.op("ormqr", ormqr);
}

}  // namespace tpu::ops
