#include "core/ops/random.h"

#include <cmath>
#include <limits>

#include "core/ops/order.h"
#include "core/ops/scan.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

// The distributions drawn by rejection; a part of the random family.
void rejection(Table& t);

namespace {

// Bits of the mantissa: integers up to 2^digits are exact.
int digits(DType t) { return t == DType::BF16 ? 8 : t == DType::F16 ? 11 : t == DType::F64 ? 53 : 24; }

// The largest value random_ reaches.
uint64_t top(DType t) {
  if (t == DType::Bool) return 1;
  if (is_float(t)) return uint64_t{1} << digits(t);
  return std::numeric_limits<uint64_t>::max() >> (64 - 8 * size_of(t) + (is_signed_int(t) ? 1 : 0));
}

// Integers in [low, low + count); count 0 stands for 2^64.
Value integers(Call& c, int64_t low, uint64_t count) {
  const Dims& dims = c.out().dims;
  Value offset;
  if (count != 0 && count <= uint64_t{1} << 32) {
    // The high word of bits * count; its bias is below count / 2^32.
    Value wide = convert(bits32(c, dims), DType::U64) * c.b.constant(static_cast<int64_t>(count), DType::U64);
    offset = shift_right_logical(wide, like(wide, 32));
  } else {
    offset = bits64(c, dims);
    if (count) offset = remainder(offset, c.b.constant(static_cast<int64_t>(count), DType::U64));
  }
  return convert(offset, DType::S64) + c.b.constant(low, DType::S64);
}

// What a distribution with tails is drawn in: all of f64's or f32's bits, whatever the result's type.
Type real(Call& c) { return {c.out_dtype() == DType::F64 ? DType::F64 : DType::F32, c.out().dims}; }

// -log(1 - u), never 0: a division by it stays finite.
Value exponential(Call& c, const Type& type) {
  return maximum(-log1p(-uniform(c, type)), c.b.constant(0x1p-25, type.dtype));
}

Results normal_of(Call& c) {
  if (is_complex(c.out_dtype())) {
    const Type part{real_of(c.out_dtype()), c.out().dims};
    Value std = c.scalar("std", part.dtype) * M_SQRT1_2;
    return complex(normal(c, part) * std, normal(c, part) * std) + c.scalar("mean", c.out_dtype());
  }
  const DType t = c.compute_dtype();
  return c.tensor("mean", t) + c.tensor("std", t) * normal(c, c.out());
}

// True with probability p, a value of a float type.
Value flip(Call& c, Value p) { return uniform(c, {p.dtype(), c.out().dims}) < p; }

// bernoulli(self) takes its probabilities from self; the others from p. Doubles keep all their bits.
Results bernoulli(Call& c) {
  const char* name = c.has("p") ? "p" : "self";
  const bool number = c.op() == "bernoulli.p" || c.op() == "bernoulli_.float";
  const bool wide = !number && c.dtype_of(name) == DType::F64;
  return flip(c, c.tensor(name, wide ? DType::F64 : DType::F32));
}

// native_dropout(input, p, train) -> (input * mask / (1 - p), mask)
Results dropout(Call& c) {
  const DType t = c.compute_dtype();
  Value x = c.tensor("input", t);
  if (c.has("train") && !c.flag("train")) return {x, full(c.b, 1, c.out(1))};
  Value keep = 1.0 - c.scalar("p", DType::F32);
  Value mask = flip(c, keep);
  Value scale = convert(select(keep > 0.0, 1.0 / keep, like(keep, 0)), t);
  return {x * convert(mask, t) * scale, mask};
}

// multinomial(self [.., C], num_samples, replacement) -> s64 [.., num_samples]
Results multinomial(Call& c) {
  const int64_t k = c.integer("num_samples");
  Value p = c.tensor("self");
  p = convert(p, compute_type(p.dtype()));
  const bool flat = p.rank() == 1;
  if (flat) p = unsqueeze(p, 0);
  const int64_t rows = p.size(0), n = p.size(1);
  const Dims& dims = c.out().dims;
  if (rows == 0 || k == 0) return full(c.b, 0, c.out());
  c.require((p >= 0.0) & is_finite(p), "probability tensor contains either `inf`, `nan` or element < 0");
  c.require(reduce_sum(p, {1}) > 0.0, "invalid multinomial distribution (sum of probabilities <= 0)");
  if (!c.flag("replacement") || k == 1) {
    // The k largest of p / Exponential(1) are k draws without replacement.
    Value score = p / exponential(c, p.type());
    if (k == 1) return reshape(arg_reduce(score, 1, true, DType::S64).second, dims);
    return reshape(best(c, score, k, true), dims);
  }
  // With replacement: look uniform numbers up in the cumulative sum. The running maximum over the elements
  // that have a weight makes it rise there only, whatever the sums round to, so that no zero is ever drawn.
  Value zero = like(p, 0);
  Value sum = select(p > zero, scan_along(p, 1, add), zero);
  Value cumulative = scan_along(sum, 1, maximum);
  Value total = slice_dim(cumulative, 1, n - 1, n);
  Value at = search(cumulative, uniform(c, {p.dtype(), {rows, k}}) * total, true);
  return reshape(minimum(at, c.b.constant(n - 1, at.dtype())), dims);
}

// A permutation of n: its index in the low bits of random 64-bit keys, sorted.
Results randperm(Call& c) {
  const int64_t n = c.out().elements();
  int bits = 0;
  while ((int64_t{1} << bits) < n) bits++;
  Value key = bits64(c, {n});
  Value low = c.b.constant((int64_t{1} << bits) - 1, DType::U64);
  key = (key & !low) | iota(c.b, DType::U64, {n}, 0);
  if (n > 1)
    key = hlo::sort({key}, 0, false, [](const Values& l, const Values& r) { return l[0] < r[0]; })[0];
  return convert(key & low, DType::S64);
}

}  // namespace

void random(Table& t) {
  // uniform(self, from, to): from + u * (to - from); what rounds up to `to` counts as `from`.
  t.op("uniform", [](Call& c) -> Results {
    if (is_complex(c.out_dtype())) {  // both parts
      const Type part{real_of(c.out_dtype()), c.out().dims};
      Value low = c.scalar("from", part.dtype), width = c.scalar("to", part.dtype) - low;
      return complex(low + uniform(c, part) * width, low + uniform(c, part) * width);
    }
    const DType ct = c.compute_dtype();
    Value from = c.scalar("from", ct), to = c.scalar("to", ct);
    Value x = convert(from + uniform(c, c.out()) * (to - from), c.out_dtype());
    return select(x < convert(to, c.out_dtype()), x, convert(from, c.out_dtype()));
  });
  t.op("normal_ normal_functional normal.Tensor_float normal.float_Tensor normal.Tensor_Tensor", normal_of);
  t.op("random", [](Call& c) -> Results { return integers(c, 0, top(c.out_dtype()) + 1); });
  t.op("random.to", [](Call& c) -> Results { return integers(c, 0, c.integer("to")); });
  t.op("random.from", [](Call& c) -> Results {
    const int64_t from = c.integer("from");
    const uint64_t end = c.has("to") ? static_cast<uint64_t>(c.integer("to")) : top(c.out_dtype()) + 1;
    return integers(c, from, end - static_cast<uint64_t>(from));
  });
  t.op("bernoulli bernoulli.p bernoulli_.float bernoulli.Tensor", bernoulli);
  t.op("exponential", [](Call& c) -> Results {
    Value x = exponential(c, real(c)) / c.scalar("lambd", real(c).dtype);
    return c.out_dtype() == DType::F16 ? maximum(x, like(x, 0x1p-24)) : x;  // f16 would round it to 0
  });
  t.op("cauchy", [](Call& c) -> Results {
    const Type t = real(c);
    return c.scalar("median", t.dtype) + c.scalar("sigma", t.dtype) * tan(M_PI * (uniform(c, t) - 0.5));
  });
  t.op("log_normal", [](Call& c) -> Results {
    const Type t = real(c);
    return exp(c.scalar("mean", t.dtype) + c.scalar("std", t.dtype) * normal(c, t));
  });
  // The number of trials up to the first success: at least 1.
  t.op("geometric", [](Call& c) -> Results {
    const Type t = real(c);
    Value trials = ceil(log1p(-uniform(c, t)) / log1p(-c.scalar("p", t.dtype)));
    return maximum(trials, like(trials, 1));
  });
  t.op("multinomial", multinomial);
  t.op("randperm randperm.generator", randperm);
  t.op("native_dropout", dropout);
  t.op("native_dropout_backward", [](Call& c) -> Results {
    const DType ct = c.compute_dtype();
    return c.tensor("grad_output", ct) * c.tensor("mask", ct) * c.scalar("scale", ct);
  });
  // Here p is the probability to keep an element.
  t.op("_fused_dropout", [](Call& c) -> Results {
    const DType ct = c.compute_dtype();
    Value p = c.scalar("p", DType::F32), mask = flip(c, p);
    return {c.tensor("self", ct) * convert(mask, ct) / convert(p, ct), mask};
  });
  rejection(t);
}

}  // namespace tpu::ops
