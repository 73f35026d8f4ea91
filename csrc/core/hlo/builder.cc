#include "core/hlo/builder.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/base/error.h"

namespace tpu::hlo {
namespace {

// MLIR spells non-finite floats as the bits in hex, of exactly the type's width.
std::string float_literal(double v, DType dtype) {
  if (std::isfinite(v)) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17e", v);
    return text;
  }
  const int kind = std::isnan(v) ? 2 : v > 0 ? 0 : 1;
  switch (dtype) {
    case DType::F16:
      return std::array{"0x7C00", "0xFC00", "0x7E00"}[kind];
    case DType::BF16:
      return std::array{"0x7F80", "0xFF80", "0x7FC0"}[kind];
    case DType::F64:
    case DType::C128:
      return std::array{"0x7FF0000000000000", "0xFFF0000000000000", "0x7FF8000000000000"}[kind];
    case DType::F8E4M3:
      return "0x7F";
    case DType::F8E5M2:
      return std::array{"0x7C", "0xFC", "0x7F"}[kind];
    default:
      return std::array{"0x7F800000", "0xFF800000", "0x7FC00000"}[kind];
  }
}

// A finite double outside the narrower type's range must become infinity here: MLIR would reject the
// literal's overflow.
double round_to(double v, DType dtype) {
  if (!std::isfinite(v)) return v;
  switch (dtype) {
    case DType::F16:
      return std::fabs(v) >= 65520.0 ? std::copysign(INFINITY, v) : v;
    case DType::BF16:
      return std::fabs(v) >= 3.3961775292304957e38 ? std::copysign(INFINITY, v) : v;
    case DType::F32:
    case DType::C64:
      return static_cast<float>(v);
    case DType::F8E4M3:  // has no infinity
      return std::fabs(v) > 464.0 ? NAN : v;
    case DType::F8E5M2:
      return std::fabs(v) >= 61440.0 ? std::copysign(INFINITY, v) : v;
    default:
      return v;
  }
}

}  // namespace

const Type& Value::type() const { return builder_->type(id_); }

Value Builder::define(const Type& type) {
  types_.push_back(type);
  return Value(this, static_cast<int>(types_.size()) - 1);
}

Value Builder::parameter(const Type& type) {
  Value v = define(type);
  parameters_.push_back(v.id());
  return v;
}

Value Builder::splat(const std::string& literal, DType dtype, const Dims& dims) {
  const Type type{dtype, dims};
  const std::string line = text("\"stablehlo.constant\"() {value = dense<", type.elements() ? literal : "",
                                "> : ", type.str(), "} : () -> ", type.str());
  if (depth_ == 0) {
    auto [at, fresh] = constants_.try_emplace(line, 0);
    if (!fresh) return Value(this, at->second);
    Value v = define(type);
    at->second = v.id();
    body_ += text("  %", v.id(), " = ", line, "\n");
    return v;
  }
  Value v = define(type);
  body_ += text("  %", v.id(), " = ", line, "\n");
  return v;
}

Value Builder::constant(double value, DType dtype, const Dims& dims) {
  if (is_complex(dtype)) return constant(std::complex<double>(value), dtype, dims);
  if (is_float(dtype)) return splat(float_literal(round_to(value, dtype), dtype), dtype, dims);
  if (dtype == DType::Bool) return constant(value != 0 ? 1 : 0, dtype, dims);
  if (value >= 0x1p63 && value < 0x1p64)  // of the integers only u64 has these
    return constant(static_cast<int64_t>(static_cast<uint64_t>(value)), dtype, dims);
  // Beyond that C++ leaves the result open; the CPU gives the smallest integer.
  const bool fits = value >= -0x1p63 && value < 0x1p63;
  return constant(fits ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min(), dtype, dims);
}

Value Builder::constant(int64_t value, DType dtype, const Dims& dims) {
  if (is_complex(dtype) || is_float(dtype)) return constant(static_cast<double>(value), dtype, dims);
  if (dtype == DType::Bool) return splat(value ? "true" : "false", dtype, dims);
  if (is_unsigned_int(dtype)) {
    const int bits = 8 * size_of(dtype);
    const uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
    return splat(std::to_string(static_cast<uint64_t>(value) & mask), dtype, dims);
  }
  const int shift = 64 - 8 * size_of(dtype);
  const int64_t wrapped = static_cast<int64_t>(static_cast<uint64_t>(value) << shift) >> shift;
  return splat(std::to_string(wrapped), dtype, dims);
}

Value Builder::constant(std::complex<double> value, DType dtype, const Dims& dims) {
  const auto part = [&](double v) { return float_literal(round_to(v, dtype), dtype); };
  return splat(text("(", part(value.real()), ", ", part(value.imag()), ")"), dtype, dims);
}

Value Builder::constants(const std::vector<int64_t>& values, DType dtype) {
  const Type type{dtype, {static_cast<int64_t>(values.size())}};
  std::string list;
  for (size_t i = 0; i < values.size(); i++) list += (i ? ", " : "") + std::to_string(values[i]);
  return emit("stablehlo.constant", {}, type,
              text("value = dense<", values.empty() ? "" : "[" + list + "]", "> : ", type.str()));
}

Value Builder::emit(std::string_view op, const Values& operands, const Type& result,
                    const std::string& attributes) {
  return emit(op, operands, std::vector<Type>{result}, attributes)[0];
}

Values Builder::emit(std::string_view op, const Values& operands, const std::vector<Type>& results,
                     const std::string& attributes, const std::vector<Region>& regions) {
  // Regions are written first, into a buffer of their own, so that values inside number before the result.
  std::string region_text;
  for (const Region& region : regions) {
    std::string outer;
    outer.swap(body_);
    depth_++;
    Values arguments;
    std::string header;
    for (const Type& t : region.arguments) {
      arguments.push_back(define(t));
      header += text(header.empty() ? "" : ", ", "%", arguments.back().id(), ": ", t.str());
    }
    const Values yielded = region.body(arguments);
    std::string ids, kinds;
    for (const Value& v : yielded) {
      ids += text(ids.empty() ? "" : ", ", "%", v.id());
      kinds += text(kinds.empty() ? "" : ", ", v.type().str());
    }
    depth_--;
    region_text += text(region_text.empty() ? "" : ", ", "{\n^bb0", header.empty() ? "" : "(" + header + ")",
                        ":\n", body_, "  \"stablehlo.return\"(", ids, ") : (", kinds, ") -> ()\n}");
    body_.swap(outer);
  }
  Values out;
  std::string names, kinds, operand_ids, operand_kinds;
  for (const Type& t : results) {
    out.push_back(define(t));
    kinds += text(kinds.empty() ? "" : ", ", t.str());
  }
  for (const Value& v : out) names += text(names.empty() ? "" : ", ", "%", v.id());
  for (const Value& v : operands) {
    if (!v) throw Error(Code::Internal, std::string(op), "an operand is missing");
    operand_ids += text(operand_ids.empty() ? "" : ", ", "%", v.id());
    operand_kinds += text(operand_kinds.empty() ? "" : ", ", v.type().str());
  }
  body_ += text("  ", names, names.empty() ? "" : " = ", "\"", op, "\"(", operand_ids, ")",
                region_text.empty() ? "" : " (" + region_text + ")",
                attributes.empty() ? "" : " {" + attributes + "}", " : (", operand_kinds, ") -> ",
                results.size() == 1 ? kinds : "(" + kinds + ")", "\n");
  return out;
}

std::string Builder::finish(const Values& outputs, const std::vector<int>& alias) const {
  std::string arguments, ids, kinds;
  for (size_t i = 0; i < parameters_.size(); i++) {
    arguments += text(i ? ", " : "", "%", parameters_[i], ": ", types_[parameters_[i]].str());
    if (i < alias.size() && alias[i] >= 0) arguments += text(" {tf.aliasing_output = ", alias[i], " : i32}");
  }
  for (const Value& v : outputs) {
    ids += text(ids.empty() ? "" : ", ", "%", v.id());
    kinds += text(kinds.empty() ? "" : ", ", v.type().str());
  }
  return text("module @program {\nfunc.func public @main(", arguments, ") -> (", kinds, ") {\n", body_,
              "  \"func.return\"(", ids, ") : (", kinds, ") -> ()\n}\n}\n");
}

}  // namespace tpu::hlo
