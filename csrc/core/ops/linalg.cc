#include "core/ops/linalg.h"

#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

Dims batch_of(const Dims& dims, int n) { return {dims.begin(), dims.end() - n}; }

Value matrices(Call& c, const char* name) {
  Value x = c.tensor(name);
  const DType t = real_of(x.dtype());
  if (t != DType::F32 && t != DType::F64)
    throw Error(Code::Unimplemented, c.op(), text("not implemented for matrices of ", tpu::name(x.dtype())));
  return x;
}

Value as_batch(Value x) { return reshape(x, {hlo::product(batch_of(x.dims())), x.size(-2), x.size(-1)}); }

Value with_batch(Value x, Dims batch, int matrix_dims) {
  batch.insert(batch.end(), x.dims().end() - matrix_dims, x.dims().end());
  return broadcast_to(x, batch);
}

Value extend(Value x, int dim, int64_t size) {
  if (x.size(dim) == size) return x;
  Dims high(x.rank(), 0);
  high[dim] = size - x.size(dim);
  return pad(x, like(x, 0), Dims(x.rank(), 0), high);
}

namespace {

Values starts(Value x, int dim, Value start) {
  Values out(x.rank(), like(start, 0));
  out[dim] = start;
  return out;
}

}  // namespace

Value slice_at(Value x, int dim, Value start, int64_t size) {
  Dims sizes = x.dims();
  sizes[dim] = size;
  return dynamic_slice(x, starts(x, dim, start), sizes);
}

Value write_at(Value x, Value part, int dim, Value start) {
  return dynamic_update_slice(x, part, starts(x, dim, start));
}

Blocks blocks_of(int64_t n) {
  constexpr int64_t kBlock = 32;
  const int64_t count = std::max<int64_t>(1, (n + kBlock - 1) / kBlock);
  return {(n + count - 1) / count, count};
}

Value row_index(Builder& b, int64_t m) { return iota(b, DType::S32, {1, m, 1}, 1); }
Value column_index(Builder& b, int64_t n) { return iota(b, DType::S32, {1, 1, n}, 2); }

Value below_diagonal(Builder& b, int64_t m, int64_t n, int64_t offset) {
  return row_index(b, m) - static_cast<double>(offset) > column_index(b, n);
}
Value above_diagonal(Builder& b, int64_t m, int64_t n, int64_t offset) {
  return row_index(b, m) - static_cast<double>(offset) < column_index(b, n);
}
Value as_real(Value x) { return is_complex(x.dtype()) ? complex(real(x), full_like(real(x), 0)) : x; }
Value keep(Value condition, Value x) { return select(condition, x, like(x, 0)); }
Value eye(Builder& b, DType dtype, int64_t m, int64_t n) {
  return convert(equal(row_index(b, m), column_index(b, n)), dtype);
}
Value diagonal(Value x) {
  const int64_t batch = x.size(0), m = x.size(1), n = x.size(2), k = std::min(m, n);
  if (k == 0) return reshape(slice(x, {0, 0, 0}, {batch, 0, 0}), {batch, 0, 1});
  x = reshape(slice(x, {0, 0, 0}, {batch, k, n}), {batch, k * n});
  return unsqueeze(slice(x, {0, 0}, {batch, (k - 1) * (n + 1) + 1}, {1, n + 1}), 2);
}

Value times(Value x, Value y) { return dot_general(x, y, {0}, {0}, {2}, {1}, {}, Precision::Highest); }
Value adjoint_times(Value x, Value y) {
  const auto product = [](Value l, Value r) {
    return dot_general(l, r, {0}, {0}, {1}, {1}, {}, Precision::Highest);
  };
  // The smaller operand is the cheaper one to conjugate.
  return x.elements() > y.elements() ? conjugate(product(x, conjugate(y))) : product(conjugate(x), y);
}
Value times_adjoint(Value x, Value y) {
  const auto product = [](Value l, Value r) {
    return dot_general(l, r, {0}, {0}, {2}, {2}, {}, Precision::Highest);
  };
  return y.elements() > x.elements() ? conjugate(product(conjugate(x), y)) : product(x, conjugate(y));
}
Value adjoint(Value x) { return conjugate(swap_dims(x, 1, 2)); }
Value largest(Value x) {
  Value size = abs(x);
  return reshape(reduce(size, like(size, 0), {1, 2}, maximum), {x.size(0), 1, 1});
}

Value safe_scale(Value x) {
  Value size = largest(x);
  const double limit = size.dtype() == DType::F64 ? 1e140 : 1e15;
  Value extreme = (size > limit) | ((size < 1 / limit) & (size > 0.0));
  return select(extreme & is_finite(size), size, like(size, 1));
}
Value all_finite(Value x) {
  Value finite = is_finite(real(x));
  if (is_complex(x.dtype())) finite = finite & is_finite(imag(x));
  return reshape(reduce_and(finite, {1, 2}), {x.size(0), 1, 1});
}

Values repeat(Value start, Value end, const Values& state, const Values& constants, const Body& body) {
  Values init{start, end};
  init.insert(init.end(), state.begin(), state.end());
  init.insert(init.end(), constants.begin(), constants.end());
  const auto first_constant = static_cast<int64_t>(state.size()) + 2;
  Values out = while_loop(
      init, [](const Values& v) { return v[0] < v[1]; },
      [&](const Values& v) {
        const Values fixed(v.begin() + first_constant, v.end());
        Values next{v[0] + 1.0, v[1]};
        const Values updated = body(v[0], Values(v.begin() + 2, v.begin() + first_constant), fixed);
        next.insert(next.end(), updated.begin(), updated.end());
        next.insert(next.end(), fixed.begin(), fixed.end());
        return next;
      });
  return Values(out.begin() + 2, out.begin() + first_constant);
}

Values repeat(int64_t count, const Values& state, const Values& constants, const Body& body) {
  Builder& b = state[0].builder();
  return repeat(b.constant(0, DType::S32), b.constant(count, DType::S32), state, constants, body);
}

Value rows_in_order(Value x, Value order) {
  GatherDims d;
  d.offset_dims = {2};
  d.collapsed_slice_dims = {1};
  d.operand_batching_dims = {0};
  d.indices_batching_dims = {0};
  d.start_index_map = {1};
  d.index_vector_dim = 2;
  return gather(x, order, d, {1, 1, x.size(2)}, {x.size(0), order.size(1), x.size(2)});
}

Value inverse_order(Value order) {
  ScatterDims d;
  d.update_window_dims = {};
  d.inserted_window_dims = {1};
  d.input_batching_dims = {0};
  d.indices_batching_dims = {0};
  d.scatter_dims_to_operand_dims = {1};
  d.index_vector_dim = 2;
  const int64_t batch = order.size(0), n = order.size(1);
  Value positions = iota(order.builder(), DType::S32, {batch, n}, 1);
  return unsqueeze(scatter(full_like(positions, 0), order, positions, d, nullptr, true), 2);
}

namespace {

// S32 of each matrix: 1 when it has numbers that are not finite.
Results not_finite(Call& c) {
  Value a = matrices(c, "self");
  return reshape(convert(logical_not(all_finite(as_batch(a))), DType::S32), batch_of(a.dims()));
}

// S32 of each matrix: the first zero on its diagonal, counted from 1, or 0.
Results zero_on_diagonal(Call& c) {
  Value a = matrices(c, "self");
  Value zero = equal(diagonal(as_batch(a)), like(a, 0)), none = c.b.constant(0, DType::S32);
  auto [found, place] = arg_reduce(zero, 1, true, DType::S32);
  return reshape(select(found, place + 1.0, none), batch_of(a.dims()));
}

}  // namespace

void linalg(Table& t) {
  t.op("tpu::not_finite", not_finite);
  t.op("tpu::zero_on_diagonal", zero_on_diagonal);
  linalg_cholesky(t);
  linalg_triangular(t);
  linalg_eig(t);
  linalg_eigh(t);
  linalg_exp(t);
  linalg_ldl(t);
  linalg_lu(t);
  linalg_qr(t);
  linalg_svd(t);
}

}  // namespace tpu::ops
