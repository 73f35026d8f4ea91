// Matrix products: mm, bmm, addmm and their kin, grouped and quantised ones.
#include <algorithm>

#include "core/ops/contract.h"
#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// XLA's CPU device multiplies integer matrices a hundred times slower than floating ones. So they are cut
// into limbs of 16 bits, whose products add up exactly in f64, and put together modulo the width of the type.
Value integer_product(Value x, Value y, const Dims& x_batch, const Dims& y_batch, const Dims& x_contract,
                      const Dims& y_contract) {
  const DType t = x.dtype();
  const int limbs = std::max(1, size_of(t) / 2);
  const auto limb = [&](Value v, int i) {
    if (limbs > 1) v = shift_right_logical(v, like(v, 16 * i)) & like(v, 0xffff);
    return convert(v, DType::F64);
  };
  Value sum;
  for (int i = 0; i < limbs; i++)
    for (int j = 0; i + j < limbs; j++) {
      Value part = dot_general(limb(x, i), limb(y, j), x_batch, y_batch, x_contract, y_contract);
      part = convert(part, DType::S64);
      part = shift_left(part, like(part, 16 * (i + j)));
      sum = sum ? sum + part : part;
    }
  return convert(sum, t);
}

bool is_slow_integer_product(Call& c, Value x, Value y, const Dims& x_contract) {
  constexpr int64_t kSmall = 1 << 12, kExact = 1 << 21;
  int64_t depth = 1;
  for (int64_t d : x_contract) depth *= x.dims()[d];
  return is_int(x.dtype()) && c.lowering.platform == Platform::Cpu && depth <= kExact &&
         std::max(x.elements(), y.elements()) > kSmall;
}

}  // namespace

Value product(Call& c, Value x, Value y, const Dims& x_batch, const Dims& y_batch, const Dims& x_contract,
              const Dims& y_contract) {
  const DType t = compute_type(x.dtype());
  if (is_slow_integer_product(c, x, y, x_contract))
    return integer_product(x, y, x_batch, y_batch, x_contract, y_contract);
  // XLA's CPU device has fast loops for f32 only; a TPU multiplies halves natively and adds up in f32.
  if (t != x.dtype() && c.lowering.platform == Platform::Cpu) x = convert(x, t), y = convert(y, t);
  return dot_general(x, y, x_batch, y_batch, x_contract, y_contract, t);
}

Value fast_sum(Call& c, Value x, const Dims& dims) {
  constexpr int64_t kLongRow = 16;
  int64_t row = 1;
  int first = x.rank();
  while (first > 0 && std::find(dims.begin(), dims.end(), first - 1) != dims.end()) row *= x.size(--first);
  // Leading dimensions count as one; fused with what makes x, their loop would not vectorise.
  const bool leading = c.lowering.platform == Platform::Cpu && first == x.rank() && !dims.empty() &&
                       dims.back() == static_cast<int64_t>(dims.size()) - 1;
  if (leading && x.elements() > 0) {
    Dims merged{1};
    for (int i = 0; i < x.rank(); i++)
      if (i < static_cast<int>(dims.size()))
        merged[0] *= x.size(i);
      else
        merged.push_back(x.size(i));
    return reduce_sum(optimization_barrier(reshape(x, merged)), {0});
  }
  const bool f = x.dtype() == DType::F32 || x.dtype() == DType::F64;
  if (!f || row < kLongRow || x.elements() == 0 || c.lowering.platform != Platform::Cpu)
    return reduce_sum(x, dims);
  const Dims kept(x.dims().begin(), x.dims().begin() + first);
  Value rows = reshape(x, {x.elements() / row, row});
  Value sums = reshape(dot_general(rows, full(c.b, 1, Type{x.dtype(), {row}}), {}, {}, {1}, {0}), kept);
  Dims rest;
  for (int64_t d : dims)
    if (d < first) rest.push_back(d);
  return reduce_sum(sums, rest);
}

namespace {

constexpr auto zero_or_one = [](double v) { return v == 0 || v == 1; };

// The type a linear combination is computed in.
DType wide(Call& c) { return c.out_dtype() == DType::Bool ? DType::S32 : c.compute_dtype(); }

// The factor is this number, and that is part of the key; other factors are runtime parameters.
bool is(Call& c, const char* factor, double value) {
  return !is_complex(c.dtype_of(factor)) && c.is_fixed(factor) && c.number(factor) == value;
}

Value scaled(Call& c, const char* factor, Value x) {
  return is(c, factor, 1) ? x : c.scalar(factor, x.dtype()) * x;
}

// beta * self + alpha * x in the compute type. beta == 0 ignores self, whatever it holds.
Value combined(Call& c, Value x) {
  const DType t = wide(c);
  x = scaled(c, "alpha", convert(x, t));
  if (is(c, "beta", 0)) return broadcast_to(x, c.out().dims);
  return scaled(c, "beta", c.tensor("self", t)) + x;
}

Value mm(Call& c, const char* x, const char* y) {
  return product(c, c.tensor(x), c.tensor(y), {}, {}, {1}, {0});
}

Value bmm(Call& c, const char* x, const char* y) {
  return product(c, c.tensor(x), c.tensor(y), {0}, {0}, {2}, {1});
}

Value scalar_at(Value vector, Value i) { return reshape(dynamic_slice(vector, {i}, {1}), {}); }

// Walks the rows [0, ends.back()) of `rows` sorted into groups, a block of one group at a time: `body` gets
// the group, the first row of the block, which of its rows count (bool, [block, 1]) and the state.
Value walk_groups(Value ends, int64_t rows, int64_t block, const Values& constant, Value state,
                  const std::function<Value(const Values& constant, Value state, Value group, Value start,
                                            Value mask)>& body) {
  Builder& b = state.builder();
  const int64_t groups = ends.size(0);
  Value zero = b.constant(0, DType::S32);
  Values init{zero, zero, ends, state};
  init.insert(init.end(), constant.begin(), constant.end());
  return while_loop(
      init, [&](const Values& v) { return v[0] < like(v[0], static_cast<double>(groups)); },
      [&](const Values& v) -> Values {
        Value group = v[0], row = v[1], end = scalar_at(v[2], group);
        Builder& r = group.builder();
        // A block that would run over the last row is moved up; the rows before `row` are masked.
        Value start = minimum(row, r.constant(rows - block, DType::S32));
        Value at = iota(r, DType::S32, {block, 1}, 0) + start;
        Value next = minimum(row + r.constant(block, DType::S32), end);
        Value out = body(Values(v.begin() + 4, v.end()), v[3], group, start, (at >= row) & (at < next));
        Values result{group + convert(next >= end, DType::S32), maximum(next, row), v[2], out};
        result.insert(result.end(), v.begin() + 4, v.end());
        return result;
      })[3];
}

constexpr int64_t kGroupBlock = 64;

// [t, k] x [g, k, n] -> [t, n]: row r is multiplied by the matrix of the group it is in.
Value grouped_rows(Call& c, Value x, Value w, Value ends) {
  const int64_t t = x.size(0), k = x.size(1), n = w.size(2), block = std::min(t, kGroupBlock);
  Value out = full(c.b, 0, Type{compute_type(x.dtype()), {t, n}});
  if (out.elements() == 0 || k == 0) return out;
  return walk_groups(ends, t, block, {x, w}, out,
                     [&](const Values& in, Value out, Value group, Value start, Value mask) {
                       Value zero = like(start, 0);
                       Value rows = dynamic_slice(in[0], {start, zero}, {block, k});
                       Value matrix = reshape(dynamic_slice(in[1], {group, zero, zero}, {1, k, n}), {k, n});
                       Value old = dynamic_slice(out, {start, zero}, {block, n});
                       Value fresh = product(c, rows, matrix, {}, {}, {1}, {0});
                       return dynamic_update_slice(out, select(mask, fresh, old), {start, zero});
                     });
}

// [m, t] x [t, n] -> [g, m, n]: each group's share of the contraction.
Value grouped_sums(Call& c, Value x, Value y, Value ends) {
  const int64_t m = x.size(0), t = x.size(1), n = y.size(1), block = std::min(t, kGroupBlock);
  Value out = full(c.b, 0, Type{compute_type(x.dtype()), {ends.size(0), m, n}});
  if (out.elements() == 0 || t == 0) return out;
  return walk_groups(ends, t, block, {x, y}, out,
                     [&](const Values& in, Value out, Value group, Value start, Value mask) {
                       Value zero = like(start, 0);
                       Value left = dynamic_slice(in[0], {zero, start}, {m, block});
                       Value right = dynamic_slice(in[1], {start, zero}, {block, n});
                       left = select(reshape(mask, {1, block}), left, full_like(left, 0));
                       right = select(mask, right, full_like(right, 0));
                       Value old = dynamic_slice(out, {group, zero, zero}, {1, m, n});
                       Value fresh = reshape(product(c, left, right, {}, {}, {1}, {0}), {1, m, n});
                       return dynamic_update_slice(out, old + fresh, {group, zero, zero});
                     });
}

Value grouped_mm(Call& c) {
  Value x = c.tensor("self"), y = c.tensor("mat2");
  if (x.rank() == 3 && y.rank() == 3) return product(c, x, y, {0}, {0}, {2}, {1});
  Value ends = c.tensor("offs", DType::S32);
  if (x.rank() == 2 && y.rank() == 3) return grouped_rows(c, x, y, ends);
  if (x.rank() == 3) return swap_dims(grouped_rows(c, swap_dims(y, 0, 1), swap_dims(x, 1, 2), ends), 0, 1);
  return grouped_sums(c, x, y, ends);
}

Value gelu(Value x) { return 0.5 * x * (1.0 + erf(x * 0.70710678118654752)); }

}  // namespace

void matmul(Table& t) {
  const Options factors{.fixed = {"alpha", "beta"}, .fixed_when = zero_or_one};

  t.op("mm mm.dtype", [](Call& c) -> Results { return mm(c, "self", "mat2"); });
  t.op("bmm bmm.dtype", [](Call& c) -> Results { return bmm(c, "self", "mat2"); });
  t.op("addmm addmm.dtype", [](Call& c) -> Results { return combined(c, mm(c, "mat1", "mat2")); }, factors);
  t.op(
      "baddbmm baddbmm.dtype", [](Call& c) -> Results { return combined(c, bmm(c, "batch1", "batch2")); },
      factors);
  // The batch is summed away.
  t.op(
      "addbmm",
      [](Call& c) -> Results {
        return combined(c, product(c, c.tensor("batch1"), c.tensor("batch2"), {}, {}, {0, 2}, {0, 1}));
      },
      factors);
  t.op("mv",
       [](Call& c) -> Results { return product(c, c.tensor("self"), c.tensor("vec"), {}, {}, {1}, {0}); });
  t.op(
      "addmv",
      [](Call& c) -> Results {
        return combined(c, product(c, c.tensor("mat"), c.tensor("vec"), {}, {}, {1}, {0}));
      },
      factors);
  t.op("dot",
       [](Call& c) -> Results { return product(c, c.tensor("self"), c.tensor("tensor"), {}, {}, {0}, {0}); });
  t.op("vdot", [](Call& c) -> Results {
    return product(c, conjugate(c.tensor("self")), c.tensor("other"), {}, {}, {0}, {0});
  });
  // beta * self + alpha * vec1 vec2^T; bools are summed as integers, and any sum but 0 is true.
  t.op(
      "addr",
      [](Call& c) -> Results {
        const DType t = wide(c);
        return combined(c, unsqueeze(c.tensor("vec1", t), 1) * unsqueeze(c.tensor("vec2", t), 0));
      },
      factors);
  t.op(
      "_addmm_activation",
      [](Call& c) -> Results {
        Value x = combined(c, mm(c, "mat1", "mat2"));
        return c.flag("use_gelu") ? gelu(x) : maximum(x, like(x, 0));
      },
      factors);
  // Its Meta kernel takes bf16 only; the maths takes any.
  t.op("_grouped_mm",
       [](Call& c) -> Results { return convert(grouped_mm(c), c.dtype("out_dtype", c.dtype_of("self"))); },
       {.infer = true});
  t.op("_int_mm", [](Call& c) -> Results {
    return dot_general(c.tensor("self", DType::S32), c.tensor("mat2", DType::S32), {}, {}, {1}, {0});
  });
  // int8 weights of [out, in], one scale a row.
  t.op("_weight_int8pack_mm", [](Call& c) -> Results {
    const DType t = c.compute_dtype();
    return dot_general(c.tensor("self", t), c.tensor("mat2", t), {}, {}, {1}, {1}) * c.tensor("scales", t);
  });
  // Operands in 8-bit floats; their scales are 0-d, [m, 1] or [1, n].
  t.op("_scaled_mm", [](Call& c) -> Results {
    const auto scale = [&](const char* name) {
      Value s = c.tensor(name, DType::F32);
      return s.elements() == 1 ? reshape(s, {}) : s;
    };
    Value x = dot_general(c.tensor("self", DType::F32), c.tensor("mat2", DType::F32), {}, {}, {1}, {0});
    x = x * scale("scale_a") * scale("scale_b");
    if (c.has("bias")) x = x + c.tensor("bias", DType::F32);
    if (c.has("scale_result")) x = x * c.tensor("scale_result", DType::F32);
    return x;
  });
}

}  // namespace tpu::ops
