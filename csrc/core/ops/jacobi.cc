#include "core/ops/jacobi.h"

#include "core/ops/math.h"

namespace tpu::ops {

using namespace hlo;

// The columns of the left half are paired with those of the right half. Between steps the columns move on
// like the players of a round robin, the first of which keeps its seat: after n - 1 steps all pairs have met,
// and everybody is back in place.

namespace {

constexpr int64_t kSweeps = 20;  // convergence takes 5 to 10

Value left_of(Value x, int dim) { return slice_dim(x, dim, 0, x.size(dim) / 2); }
Value right_of(Value x, int dim) { return slice_dim(x, dim, x.size(dim) / 2, x.size(dim)); }

Value move_on(Value x, int dim) {
  const int64_t n = x.size(dim), half = n / 2;
  if (half == 1) return x;
  const auto part = [&](int64_t from, int64_t to) { return slice_dim(x, dim, from, to); };
  return concatenate(
      {part(0, 1), part(half, half + 1), part(1, half - 1), part(half + 1, n), part(half - 1, half)}, dim);
}

/// For each pair p, q of columns: p becomes c p - conj(s) q and q becomes s p + c q. [batch, 1, half] each.
struct Rotation {
  Value c, s;
};

// Makes the Hermitian [[a, g], [conj(g), b]] diagonal by the smaller of the two angles.
Rotation rotation(Value a, Value b, Value g) {
  Value size = abs(g), none = logical_not(size > 0.0);
  Value safe = select(none, like(size, 1), size);
  Value ratio = (b - a) / (safe * 2.0);
  Value t = copy_sign(1.0 / (abs(ratio) + sqrt(ratio * ratio + 1.0)), ratio);
  Value c = 1.0 / sqrt(t * t + 1.0);
  Value s = select(none, like(g, 0), cast_like(t * c, g) * (g / cast_like(safe, g)));
  return {cast_like(select(none, like(c, 1), c), g), s};
}

Value rotate_columns(Value x, const Rotation& r) {
  Value p = left_of(x, 2), q = right_of(x, 2);
  return concatenate({r.c * p - conjugate(r.s) * q, r.s * p + r.c * q}, 2);
}

double epsilon(Value x) { return real_of(x.dtype()) == DType::F64 ? 0x1p-52 : 0x1p-23; }

// Sweeps over all pairs until none is off by more than a rounding error. `step` gets and gives the state; its
// last element, real [batch, 1, 1], collects how far off the pairs of the sweep were.
Values sweep(int64_t n, Values state, const std::function<Values(const Values&)>& step) {
  Builder& b = state[0].builder();
  const double tolerance = epsilon(state.back());
  const size_t off = state.size() - 1;
  state.push_back(b.constant(0, DType::S32));
  return while_loop(
      state,
      [&](const Values& v) {
        Value worst = reduce_max(v[off], {0, 1, 2});
        return (v.back() < static_cast<double>(kSweeps)) & (worst > tolerance);
      },
      [&](const Values& v) -> Values {
        Values start(v.begin(), v.end() - 1);
        start[off] = full_like(start[off], 0);
        Values next =
            repeat(n - 1, start, {}, [&](Value, const Values& s, const Values&) { return step(s); });
        next.push_back(v.back() + 1.0);
        return next;
      });
}

Value pairwise_max(Value x) { return unsqueeze(reduce(x, like(x, 0), {2}, maximum), 2); }

// The matrix with a row and column of the identity more when its size is odd.
Value even(Value x, int dim) { return extend(x, dim, x.size(dim) + x.size(dim) % 2); }

}  // namespace

JacobiEigen jacobi_eigen(Value a) {
  Builder& b = a.builder();
  const int64_t batch = a.size(0), n = a.size(1);
  if (n == 1) return {real(a), full_like(a, 1)};
  // A row and column of zeros make an odd size even; nothing is rotated into them.
  a = even(even(a, 1), 2);
  const int64_t total = a.size(1);
  Value scale = largest(a);
  Value vectors = broadcast_to(eye(b, a.dtype(), total, total), a.dims());
  Values out = sweep(total, {a, vectors, scale, full_like(scale, 1)}, [&](const Values& v) -> Values {
    Value x = v[0];
    const auto middle = [&](Value block) { return turned(diagonal(block)); };
    Value top = left_of(x, 1), bottom = right_of(x, 1);
    Value g = middle(right_of(top, 2));
    const Rotation r = rotation(real(middle(left_of(top, 2))), real(middle(right_of(bottom, 2))), g);
    // Columns, then rows as their adjoint.
    x = adjoint(rotate_columns(adjoint(rotate_columns(x, r)), r));
    Value worst = maximum(v[3], pairwise_max(abs(g)) / select(v[2] > 0.0, v[2], like(v[2], 1)));
    return {move_on(move_on(x, 1), 2), move_on(rotate_columns(v[1], r), 2), v[2], worst};
  });
  return {slice_dim(real(diagonal(out[0])), 1, 0, n), slice(out[1], {0, 0, 0}, {batch, n, n})};
}

JacobiColumns jacobi_columns(Value a) {
  Builder& b = a.builder();
  const int64_t batch = a.size(0), m = a.size(1), n = a.size(2);
  if (n == 1) return {a, full(b, 1, {a.dtype(), {batch, 1, 1}})};
  a = even(a, 2);
  const int64_t total = a.size(2);
  // The vectors go through the same rotations as the columns, so they lie below them.
  Value both = concatenate({a, broadcast_to(eye(b, a.dtype(), total, total), {batch, total, total})}, 1);
  Values out =
      sweep(total, {both, full(b, 1, {real_of(a.dtype()), {batch, 1, 1}})}, [&](const Values& v) -> Values {
        Value x = slice_dim(v[0], 1, 0, m), p = left_of(x, 2), q = right_of(x, 2);
        const auto product = [](Value x, Value y) {
          return unsqueeze(dot_general(conjugate(x), y, {0, 2}, {0, 2}, {1}, {1}, {}, Precision::Highest), 1);
        };
        Value pp = real(product(p, p)), qq = real(product(q, q)), pq = product(p, q);
        Value sizes = sqrt(pp) * sqrt(qq);
        pq = keep(sizes > 0.0, pq);
        Value worst = pairwise_max(abs(pq) / select(sizes > 0.0, sizes, like(sizes, 1)));
        return {move_on(rotate_columns(v[0], rotation(pp, qq, pq)), 2), maximum(v[1], worst)};
      });
  return {slice(out[0], {0, 0, 0}, {batch, m, n}), slice(out[0], {0, m, 0}, {batch, m + n, n})};
}

}  // namespace tpu::ops
