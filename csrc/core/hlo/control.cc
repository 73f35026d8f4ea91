#include "core/base/error.h"
#include "core/hlo/functions.h"

namespace tpu::hlo {

Values sort(const Values& xs, int dim, bool stable,
            const std::function<Value(const Values& left, const Values& right)>& less) {
  if (dim < 0) dim += xs[0].rank();
  std::vector<Type> results, pairs;
  for (const Value& x : xs) {
    results.push_back(x.type());
    pairs.insert(pairs.end(), 2, Type{x.dtype(), {}});  // left and right of each operand, in turn
  }
  Builder::Region body{pairs, [&less](const Values& a) {
                         Values left, right;
                         for (size_t i = 0; i < a.size(); i += 2)
                           left.push_back(a[i]), right.push_back(a[i + 1]);
                         return Values{less(left, right)};
                       }};
  return xs[0].builder().emit("stablehlo.sort", xs, results,
                              text("dimension = ", dim, " : i64, is_stable = ", stable ? "true" : "false"),
                              {body});
}

Values while_loop(const Values& init, const std::function<Value(const Values&)>& condition,
                  const std::function<Values(const Values&)>& body) {
  std::vector<Type> types;
  for (const Value& v : init) types.push_back(v.type());
  return init[0].builder().emit(
      "stablehlo.while", init, types, "",
      {{types, [&](const Values& a) { return Values{condition(a)}; }}, {types, body}});
}

Value cholesky(Value x, bool lower) {
  return x.builder().emit("stablehlo.cholesky", {x}, x.type(), text("lower = ", lower ? "true" : "false"));
}

Value triangular_solve(Value a, Value b, bool left, bool lower, bool unit_diagonal, bool transpose,
                       bool conjugate) {
  const char* how = conjugate ? "ADJOINT" : transpose ? "TRANSPOSE" : "NO_TRANSPOSE";
  return a.builder().emit(
      "stablehlo.triangular_solve", {a, b}, b.type(),
      text("left_side = ", left ? "true" : "false", ", lower = ", lower ? "true" : "false",
           ", unit_diagonal = ", unit_diagonal ? "true" : "false", ", transpose_a = #stablehlo<transpose ",
           how, ">"));
}

Value fft(Value x, Fft kind, const Dims& lengths) {
  static const char* names[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  Type result = x.type();
  if (kind == Fft::RFFT) {
    result.dtype = complex_of(x.dtype());
    result.dims.back() = lengths.back() / 2 + 1;
  } else if (kind == Fft::IRFFT) {
    result.dtype = real_of(x.dtype());
    result.dims.back() = lengths.back();
  }
  return x.builder().emit("stablehlo.fft", {x}, result,
                          text("fft_type = #stablehlo<fft_type ", names[static_cast<int>(kind)],
                               ">, fft_length = ", i64_array(lengths)));
}

Values custom_call(Builder& b, const std::string& target, const Values& operands,
                   const std::vector<Type>& results, const std::string& attributes) {
  return b.emit("stablehlo.custom_call", operands, results,
                text("call_target_name = \"", target, "\"", attributes.empty() ? "" : ", ", attributes));
}

Value custom_call(Builder& b, const std::string& target, const Values& operands, const Type& result,
                  const std::string& attributes) {
  return custom_call(b, target, operands, std::vector<Type>{result}, attributes)[0];
}

Value optimization_barrier(Value x) {
  return x.builder().emit("stablehlo.optimization_barrier", {x}, x.type());
}

}  // namespace tpu::hlo
