#include <cmath>

#include "core/ops/math.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// Lowers the entry `op` for tensors already at hand.
Value lower(Call& c, const std::string& op, const std::vector<std::string>& names, const Values& values,
            const Type& out) {
  const Op* entry = Table::get().find(op);
  if (!entry) throw Error(Code::Internal, c.op(), "there is no entry " + op);
  std::vector<Arg> args;
  args.reserve(values.size());
  for (size_t i = 0; i < values.size(); i++) args.push_back(Ref{static_cast<int>(i)});
  const std::vector<Type> outs{out};
  Call inner(c.lowering, op, names, args, values, outs);
  return entry->lower(inner)[0];
}

// "_foreach_add_.Scalar" -> {"add", "Scalar"}
std::pair<std::string, std::string> split(const std::string& op) {
  const size_t start = op.find("_foreach_") + 9, dot = std::min(op.find('.'), op.size());
  std::string base = op.substr(start, dot - start);
  if (base.back() == '_') base.pop_back();
  return {base, dot < op.size() ? op.substr(dot + 1) : ""};
}

// For each tensor the argument that the overload's kind gives: one of a list, or one for all.
Values each(Call& c, const std::string& kind, const char* list, const char* one, const char* numbers) {
  if (kind == "List") return c.tensors(list);
  // A number takes the type of the result, which PyTorch has promoted already; halves compute in f32.
  Values out;
  for (int i = 0; i < c.outs(); i++)
    out.push_back(kind == "ScalarList" ? c.scalars(numbers, c.compute_dtype(i))[i]
                  : kind == "Tensor"   ? c.tensor(one)
                                       : c.scalar(one, c.compute_dtype(i)));
  return out;
}

// _foreach_<op>(self): the entry <op> of each.
Results unary(Call& c) {
  const std::string base = split(c.op()).first;
  Values out;
  const Values xs = c.tensors("self");
  for (size_t i = 0; i < xs.size(); i++) out.push_back(lower(c, base, {"self"}, {xs[i]}, c.out(i)));
  return out;
}

// _foreach_<op>(self, other | scalar | scalars [, alpha])
Results binary_of(Call& c) {
  const auto [base, kind] = split(c.op());
  const Values xs = c.tensors("self");
  const bool one = kind == "Tensor";
  const Values ys = each(c, kind, "other", one ? "other" : "scalar", "scalars");
  const std::string op = base == "clamp_min"                      ? "maximum"
                         : base == "clamp_max"                    ? "minimum"
                         : base == "maximum" || base == "minimum" ? base
                                                                  : base + ".Tensor";
  const bool scaled = base == "add" || base == "sub";
  Values out;
  for (size_t i = 0; i < xs.size(); i++) {
    if (scaled) {
      Value alpha =
          c.has("alpha") ? c.scalar("alpha", c.compute_dtype(i)) : c.b.constant(1, c.compute_dtype(i));
      out.push_back(lower(c, op, {"self", "other", "alpha"}, {xs[i], ys[i], alpha}, c.out(i)));
    } else {
      out.push_back(lower(c, op, {"self", "other"}, {xs[i], ys[i]}, c.out(i)));
    }
  }
  return out;
}

// _foreach_addcmul and _foreach_addcdiv
Results ternary(Call& c) {
  const auto [base, kind] = split(c.op());
  const Values xs = c.tensors("self"), t1 = c.tensors("tensor1"), t2 = c.tensors("tensor2");
  const Values values = each(c, kind, "", "value", "scalars");
  Values out;
  for (size_t i = 0; i < xs.size(); i++)
    out.push_back(
        lower(c, base, {"self", "tensor1", "tensor2", "value"}, {xs[i], t1[i], t2[i], values[i]}, c.out(i)));
  return out;
}

Results lerp(Call& c) {
  const std::string kind = split(c.op()).second;
  const Values xs = c.tensors("self"), ends = c.tensors("tensors1");
  const Values weights = each(c, kind, "weights", "weight", "weight");
  Values out;
  for (size_t i = 0; i < xs.size(); i++)
    out.push_back(lower(c, "lerp.Tensor", {"self", "end", "weight"}, {xs[i], ends[i], weights[i]}, c.out(i)));
  return out;
}

Results pow_of(Call& c) {
  const std::string kind = split(c.op()).second;
  Values out;
  if (kind == "ScalarAndTensor") {
    const Values ys = c.tensors("exponent");
    for (size_t i = 0; i < ys.size(); i++)
      out.push_back(lower(c, "pow.Tensor_Tensor", {"self", "exponent"},
                          {c.scalar("self", c.compute_dtype(i)), ys[i]}, c.out(i)));
    return out;
  }
  const Values xs = c.tensors("self"), ys = each(c, kind, "exponent", "exponent", "exponent");
  for (size_t i = 0; i < xs.size(); i++)
    out.push_back(lower(c, "pow.Tensor_Tensor", {"self", "exponent"}, {xs[i], ys[i]}, c.out(i)));
  return out;
}

Value power_sum(Value x, double p, const Dims& all) {
  if (p == 2) return accurate_sum(x * x, all);
  if (p == 1) return accurate_sum(abs(x), all);
  if (p == 0) return reduce_sum(convert(not_equal(x, like(x, 0)), x.dtype()), all);
  return accurate_sum(power(abs(x), like(x, p)), all);
}

// _foreach_norm(self, ord, dtype) and _foreach_powsum, the same without the root.
Results norm_of(Call& c) {
  const bool root = split(c.op()).first == "norm";
  const double p = c.number("ord");
  const Values xs = c.tensors("self");
  Values out;
  for (size_t i = 0; i < xs.size(); i++) {
    Value x = is_complex(xs[i].dtype()) ? abs(xs[i]) : xs[i];
    x = convert(x, c.compute_dtype(i));
    Dims all;
    for (int d = 0; d < x.rank(); d++) all.push_back(d);
    if (root && std::isinf(p)) {
      Value size = abs(x);
      out.push_back(p > 0 ? reduce(size, like(size, 0), all, maximum) : reduce_min(size, all));
      continue;
    }
    Value sum = power_sum(x, p, all);
    if (root && p == 2)
      sum = sqrt(sum);
    else if (root && p != 1 && p != 0)
      sum = power(sum, like(sum, 1 / p));
    out.push_back(sum);
  }
  return out;
}

// _amp_foreach_non_finite_check_and_unscale_(self, found_inf, inv_scale): self * inv_scale, and whether
// anything in self was not finite.
Results unscale(Call& c) {
  Value scale = reshape(c.tensor("inv_scale", DType::F32), {});
  Value found = c.tensor("found_inf");
  Value bad = not_equal(reshape(found, {}), like(found, 0));
  Values out;
  for (Value x : c.tensors("self")) {
    const DType t = compute_type(x.dtype());
    Dims all;
    for (int d = 0; d < x.rank(); d++) all.push_back(d);
    bad = bad | reduce_or(!is_finite(x), all);
    out.push_back(convert(convert(x, t) * convert(scale, t), x.dtype()));
  }
  out.push_back(reshape(convert(bad, found.dtype()), found.dims()));
  return out;
}

// _amp_update_scale_(self, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval): the
// scale shrinks after an overflow, and grows after growth_interval steps without one unless it would
// overflow.
Results update_scale(Call& c) {
  Value scale = c.tensor("self"), tracker = c.tensor("growth_tracker"), found = c.tensor("found_inf");
  const DType t = scale.dtype(), count = tracker.dtype();
  Value overflow = broadcast_to(reshape(found > 0.0, {}), scale.dims());
  Value next = tracker + like(tracker, 1);
  Value due = equal(next, c.b.constant(c.integer("growth_interval"), count));
  Value grown = scale * c.scalar("scale_growth_factor", t);
  Value shrunk = scale * c.scalar("scale_backoff_factor", t);
  Value fresh = select(reshape(due, scale.dims()) & is_finite(grown), grown, scale);
  return {select(overflow, shrunk, fresh),
          select(reshape(overflow, tracker.dims()) | due, like(tracker, 0), next)};
}

}  // namespace

void foreach (Table& t) {
  for (const char* op : {"abs",   "acos", "asin",  "atan",       "ceil",  "cos",    "cosh",    "erf",
                         "erfc",  "exp",  "expm1", "floor",      "frac",  "lgamma", "log",     "log10",
                         "log1p", "log2", "neg",   "reciprocal", "round", "rsqrt",  "sigmoid", "sign",
                         "sin",   "sinh", "sqrt",  "tan",        "tanh",  "trunc",  "max"})
    t.op(std::string("_foreach_") + op, unary);
  for (const char* op : {"add", "sub", "mul", "div", "clamp_min", "clamp_max", "maximum", "minimum"})
    for (const char* kind : {".List", ".Scalar", ".ScalarList"})
      t.op(std::string("_foreach_") + op + kind, binary_of);
  t.op("_foreach_add.Tensor _foreach_mul.Tensor _foreach_div.Tensor", binary_of);
  for (const char* op : {"addcmul", "addcdiv"})
    for (const char* kind : {".Scalar", ".ScalarList"}) t.op(std::string("_foreach_") + op + kind, ternary);
  t.op("_foreach_lerp.List _foreach_lerp.Scalar _foreach_lerp.ScalarList", lerp);
  t.op("_foreach_pow.List _foreach_pow.Scalar _foreach_pow.ScalarList _foreach_pow.ScalarAndTensor", pow_of);
  t.op("_foreach_norm.Scalar _foreach_powsum.Scalar", norm_of, {.fixed = {"ord"}});
  t.op("_foreach_zero", [](Call& c) -> Results {
    Values out;
    for (Value x : c.tensors("self")) out.push_back(full_like(x, 0));
    return out;
  });
  t.op("_foreach_clone", [](Call& c) -> Results { return c.tensors("self"); });
  t.op("_foreach_copy", [](Call& c) -> Results {
    Values out = c.tensors("src"), to = c.tensors("self");
    for (size_t i = 0; i < out.size(); i++)
      out[i] = convert(broadcast_to(out[i], to[i].dims()), to[i].dtype());
    return out;
  });
  t.op("_foreach_mm", [](Call& c) -> Results {
    const Values xs = c.tensors("self"), ys = c.tensors("mat2");
    Values out;
    for (size_t i = 0; i < xs.size(); i++)
      out.push_back(lower(c, "mm", {"self", "mat2"}, {xs[i], ys[i]}, c.out(i)));
    return out;
  });
  t.op("_amp_foreach_non_finite_check_and_unscale_", unscale);
  t.op("_amp_update_scale_", update_scale);
}

}  // namespace tpu::ops
