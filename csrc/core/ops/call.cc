#include "core/ops/call.h"

#include <algorithm>

namespace tpu::ops {

using namespace hlo;

const Arg& Call::arg(std::string_view name) const {
  for (size_t i = 0; i < names_.size(); i++)
    if (names_[i] == name) return args_[i];
  throw Error(Code::Internal, op_, text("its schema has no argument ", name));
}

void Call::wrong(std::string_view name, const char* wanted) const {
  throw Error(Code::Internal, op_, text("argument ", name, " is not ", wanted));
}

bool Call::has(std::string_view name) const {
  for (size_t i = 0; i < names_.size(); i++)
    if (names_[i] == name) return !std::holds_alternative<std::monostate>(args_[i]);
  return false;
}

Value Call::value_of(const Arg& arg, std::string_view name, std::optional<DType> as) const {
  if (const Ref* ref = std::get_if<Ref>(&arg)) {
    const bool known = ref->value >= 0 && ref->value < static_cast<int>(values_.size());
    const Value v = known ? values_[ref->value] : Value();
    if (v.id() < 0) wrong(name, "a tensor that has a value");
    return as ? convert(v, *as) : v;
  }
  if (const Number* n = std::get_if<Number>(&arg)) {
    const DType t = as.value_or(n->dtype);
    if (n->slot >= 0) return lowering.scalar(n->slot, t);
    if (is_complex(n->dtype)) return convert(b.constant(n->value, n->dtype), t);
    if (is_float(n->dtype))
      return t == DType::Bool || is_int(t) ? convert(b.constant(n->value.real(), n->dtype), t)
                                           : b.constant(n->value.real(), t);
    return t == DType::Bool ? b.constant(n->integer != 0 ? 1 : 0, t) : b.constant(n->integer, t);
  }
  if (const int64_t* i = std::get_if<int64_t>(&arg)) return b.constant(*i, as.value_or(DType::S64));
  if (const bool* f = std::get_if<bool>(&arg)) return b.constant(*f ? 1 : 0, as.value_or(DType::Bool));
  wrong(name, "a tensor or a number");
}

Value Call::tensor(std::string_view name, std::optional<DType> as) const {
  return value_of(arg(name), name, as);
}

std::optional<Value> Call::maybe(std::string_view name, std::optional<DType> as) const {
  if (!has(name)) return std::nullopt;
  return tensor(name, as);
}

Values Call::tensors(std::string_view name, std::optional<DType> as) const {
  const auto* refs = std::get_if<std::vector<Ref>>(&arg(name));
  if (!refs) wrong(name, "a list of tensors");
  Values out;
  for (Ref r : *refs) out.push_back(value_of(r, name, as));
  return out;
}

std::vector<std::optional<Value>> Call::maybe_tensors(std::string_view name) const {
  const auto* refs = std::get_if<std::vector<Ref>>(&arg(name));
  if (!refs) wrong(name, "a list of tensors");
  std::vector<std::optional<Value>> out;
  for (Ref r : *refs) out.push_back(r.value < 0 ? std::nullopt : std::optional<Value>(values_.at(r.value)));
  return out;
}

Value Call::scalar(std::string_view name, DType dtype) const { return value_of(arg(name), name, dtype); }

Values Call::scalars(std::string_view name, DType dtype) const {
  Values out;
  if (const auto* list = std::get_if<std::vector<Number>>(&arg(name))) {
    for (const Number& n : *list) out.push_back(value_of(n, name, dtype));
    return out;
  }
  if (const auto* list = std::get_if<std::vector<double>>(&arg(name))) {
    for (double v : *list) out.push_back(b.constant(v, dtype));
    return out;
  }
  wrong(name, "a list of numbers");
}

double Call::number(std::string_view name) const {
  const Arg& a = arg(name);
  if (const Number* n = std::get_if<Number>(&a)) {
    if (n->slot >= 0)
      throw Error(Code::Internal, op_, text("argument ", name, " is read as a constant but is not fixed"));
    return is_float(n->dtype) || is_complex(n->dtype) ? n->value.real() : static_cast<double>(n->integer);
  }
  if (const int64_t* i = std::get_if<int64_t>(&a)) return static_cast<double>(*i);
  if (const bool* f = std::get_if<bool>(&a)) return *f;
  wrong(name, "a number");
}

bool Call::is_fixed(std::string_view name) const {
  const Arg& a = arg(name);
  const Number* n = std::get_if<Number>(&a);
  return n ? n->slot < 0 : !std::holds_alternative<Ref>(a);
}

std::vector<double> Call::numbers(std::string_view name) const {
  const Arg& a = arg(name);
  if (std::holds_alternative<std::monostate>(a)) return {};
  if (const auto* list = std::get_if<std::vector<double>>(&a)) return *list;
  wrong(name, "a list of numbers");
}

int64_t Call::integer(std::string_view name) const {
  const Arg& a = arg(name);
  if (const int64_t* i = std::get_if<int64_t>(&a)) return *i;
  if (const bool* f = std::get_if<bool>(&a)) return *f;
  if (const Number* n = std::get_if<Number>(&a); n && n->slot < 0) return n->integer;
  wrong(name, "an integer");
}

bool Call::flag(std::string_view name) const {
  const Arg& a = arg(name);
  if (const bool* f = std::get_if<bool>(&a)) return *f;
  if (const int64_t* i = std::get_if<int64_t>(&a)) return *i != 0;
  wrong(name, "a bool");
}

std::string Call::str(std::string_view name) const {
  const auto* s = std::get_if<std::string>(&arg(name));
  if (!s) wrong(name, "a string");
  return *s;
}

Dims Call::ints(std::string_view name) const {
  const Arg& a = arg(name);
  if (std::holds_alternative<std::monostate>(a)) return {};
  if (const auto* list = std::get_if<std::vector<int64_t>>(&a)) return *list;
  if (const int64_t* i = std::get_if<int64_t>(&a)) return {*i};
  wrong(name, "a list of integers");
}

std::vector<bool> Call::flags(std::string_view name) const {
  const auto* list = std::get_if<std::vector<bool>>(&arg(name));
  if (!list) wrong(name, "a list of bools");
  return *list;
}

DType Call::dtype(std::string_view name, DType fallback) const {
  const Arg& a = arg(name);
  if (std::holds_alternative<std::monostate>(a)) return fallback;
  if (const DType* t = std::get_if<DType>(&a)) return *t;
  wrong(name, "a dtype");
}

DType Call::dtype_of(std::string_view name) const {
  const Arg& a = arg(name);
  if (const Ref* ref = std::get_if<Ref>(&a)) return values_.at(ref->value).dtype();
  if (const Number* n = std::get_if<Number>(&a)) return n->dtype;
  if (std::holds_alternative<int64_t>(a)) return DType::S64;
  if (std::holds_alternative<bool>(a)) return DType::Bool;
  wrong(name, "a tensor or a number");
}

DType Call::promoted(std::initializer_list<std::string_view> names) const {
  // The three classes of torch.result_type: tensors with dimensions, 0-d tensors, Python numbers.
  std::optional<DType> kinds[3];
  for (std::string_view name : names) {
    if (!has(name)) continue;
    const Arg& a = arg(name);
    int kind = 2;
    DType t = dtype_of(name);
    if (const Ref* ref = std::get_if<Ref>(&a)) {
      kind = values_.at(ref->value).rank() > 0 ? 0 : 1;
    } else if (const Number* n = std::get_if<Number>(&a)) {
      if (!n->wrapped) kind = 1;
      if (n->wrapped && t == DType::F64) t = DType::F32;  // the default dtype of a Python float
      if (n->wrapped && t == DType::C128) t = DType::C64;
    }
    kinds[kind] = kinds[kind] ? promote(*kinds[kind], t) : t;
  }
  const auto combine = [](std::optional<DType> high, std::optional<DType> low) -> std::optional<DType> {
    if (!high) return low;
    if (!low || is_complex(*high)) return high;
    if (is_float(*high)) return is_complex(*low) ? complex_of(*high) : *high;
    if (*high == DType::Bool || is_float(*low) || is_complex(*low)) return promote(*high, *low);
    return high;
  };
  return combine(combine(kinds[0], kinds[1]), kinds[2]).value();
}

Dims Call::dims(std::string_view name, int rank) const {
  Dims out = has(name) ? ints(name) : Dims{};
  if (out.empty())
    for (int i = 0; i < rank; i++) out.push_back(i);
  if (rank == 0) return {};
  for (int64_t& d : out) d = wrap(d, rank);
  std::sort(out.begin(), out.end());
  return out;
}

Value Call::index(Value index, int64_t dim, int64_t size, bool negative, Code code) const {
  if (!is_int(index.dtype()) || size_of(index.dtype()) < 4) index = convert(index, DType::S64);
  if (negative) {
    // Where moving up does not help the index stays as it came, so that the report names what the user wrote.
    Value moved = index + b.constant(size, index.dtype());
    index = select((index < like(index, 0)) & (moved >= like(index, 0)), moved, index);
  }
  lowering.check(op_, index, dim, size, code);
  Value zero = like(index, 0), last = b.constant(std::max<int64_t>(size - 1, 0), index.dtype());
  return minimum(maximum(index, zero), last);
}

void Call::require(Value holds, const std::string& message, Code code) const {
  lowering.require(op_, holds, message, code);
}

}  // namespace tpu::ops
