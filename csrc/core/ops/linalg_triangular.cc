// Triangular systems, by substitution in blocks whose diagonals are inverted first.
#include "core/ops/linalg.h"
#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// l x = b row after row: row i of x is (b - l x)[i] / l[i, i], where x has zeros in the rows to come. `l` is
// strictly lower, `scale` [batch, n, 1] what the rows are divided by.
Value substitute(Value l, Value scale, Value rhs) {
  return repeat(rhs.size(1), {full_like(rhs, 0)}, {l, scale, rhs},
                [](Value i, const Values& state, const Values& in) -> Values {
                  Value row = slice_at(in[2], 1, i, 1) - times(slice_at(in[0], 1, i, 1), state[0]);
                  return {write_at(state[0], row / slice_at(in[1], 1, i, 1), 1, i)};
                })[0];
}

// The diagonal blocks of l, [batch * count, size, size].
Value diagonal_blocks(Value l, Blocks blocks) {
  const int64_t batch = l.size(0), count = blocks.count, size = blocks.size;
  Value x = reshape(l, {batch, count, size, count, size});
  Value here = equal(iota(l.builder(), DType::S32, {count, count}, 0),
                     iota(l.builder(), DType::S32, {count, count}, 1));
  x = select(reshape(here, {1, count, 1, count, 1}), x, like(x, 0));
  return reshape(reduce_sum(x, {3}), {batch * count, size, size});
}

Value solve_lower(Value l, Value rhs, bool unit) {
  Builder& b = l.builder();
  const int64_t batch = l.size(0), n = l.size(1);
  const Blocks blocks = blocks_of(n);
  const int64_t total = blocks.total();
  Value scale = unit ? full(b, 1, {l.dtype(), {batch, n, 1}}) : diagonal(l);
  l = keep(below_diagonal(b, n, n), l);
  if (blocks.count == 1) return substitute(l, scale, rhs);

  // Padding: rows of the identity.
  l = extend(extend(l, 1, total), 2, total);
  scale = pad(scale, like(scale, 1), {0, 0, 0}, {0, total - n, 0});
  rhs = extend(rhs, 1, total);
  const int64_t size = blocks.size, all = batch * blocks.count;
  Value inverse = substitute(diagonal_blocks(l, blocks), reshape(scale, {all, size, 1}),
                             broadcast_to(eye(b, l.dtype(), size, size), {all, size, size}));
  inverse = reshape(inverse, {batch, total, size});
  Value x = repeat(blocks.count, {full_like(rhs, 0)}, {l, inverse, rhs},
                   [&](Value i, const Values& state, const Values& in) -> Values {
                     Value at = i * static_cast<double>(size);
                     Value rest =
                         slice_at(in[2], 1, at, size) - times(slice_at(in[0], 1, at, size), state[0]);
                     return {write_at(state[0], times(slice_at(in[1], 1, at, size), rest), 1, at)};
                   })[0];
  return slice_dim(x, 1, 0, n);
}

}  // namespace

Value solve_triangle(Value a, Value b, Triangle t) {
  if (b.elements() == 0) return b;
  if (t.lower) return solve_lower(a, b, t.unit);
  // Backwards, an upper triangle is a lower one.
  return reverse(solve_lower(reverse(a, {1, 2}), reverse(b, {1}), t.unit), {1});
}

namespace {

/// The two operands with their batches broadcast to one: [batch, n, n] and [batch, n, k].
std::pair<Value, Value> operands(Value a, Value b) {
  const Dims batch = broadcast_dims(batch_of(a.dims()), batch_of(b.dims()));
  return {as_batch(with_batch(a, batch)), as_batch(with_batch(b, batch))};
}

Results solve_triangular(Call& c) {
  auto [a, b] = operands(matrices(c, "self"), matrices(c, "B"));
  Triangle triangle{!c.flag("upper"), c.flag("unitriangular")};
  if (c.flag("left")) return reshape(solve_triangle(a, b, triangle), c.out().dims);
  // x a = b, transposed.
  triangle.lower = !triangle.lower;
  return reshape(swap_dims(solve_triangle(swap_dims(a, 1, 2), swap_dims(b, 1, 2), triangle), 1, 2),
                 c.out().dims);
}

// triangular_solve(self, A, upper, transpose, unitriangular) -> solution, A
Results old_triangular_solve(Call& c) {
  auto [a, b] = operands(matrices(c, "A"), matrices(c, "self"));
  Triangle triangle{!c.flag("upper"), c.flag("unitriangular")};
  Value matrix = a;
  if (c.flag("transpose")) {
    a = swap_dims(a, 1, 2);
    triangle.lower = !triangle.lower;
  }
  return {reshape(solve_triangle(a, b, triangle), c.out(0).dims), reshape(matrix, c.out(1).dims)};
}

}  // namespace

void linalg_triangular(Table& t) {
  t.op("linalg_solve_triangular", solve_triangular);
  t.op("triangular_solve", old_triangular_solve);
}

}  // namespace tpu::ops
