// StableHLO operations as functions of Values, so that a lowering reads like the maths. Names follow the
// StableHLO spec.
#pragma once

#include <optional>
#include <utility>

#include "core/hlo/builder.h"

namespace tpu::hlo {

// ---- element-wise, one operand (result has the operand's type)
Value abs(Value x);  // real result for a complex operand
Value negate(Value x);
Value exp(Value x);
Value expm1(Value x);
Value log(Value x);
Value log1p(Value x);
Value sqrt(Value x);
Value rsqrt(Value x);
Value cbrt(Value x);
Value sin(Value x);
Value cos(Value x);
Value tan(Value x);
Value tanh(Value x);
Value logistic(Value x);
Value erf(Value x);  // real floats
Value floor(Value x);
Value ceil(Value x);
Value round_even(Value x);
Value sign(Value x);
Value logical_not(Value x);  // bitwise not for integers
Value popcount(Value x);
Value count_leading_zeros(Value x);
Value is_finite(Value x);  // bool
Value is_nan(Value x);     // bool; false for integers
Value real(Value x);
Value imag(Value x);

// ---- element-wise, two operands of one dtype; shapes broadcast as NumPy's. Error(Internal) when dtypes
// differ.
Value add(Value x, Value y);
Value subtract(Value x, Value y);
Value multiply(Value x, Value y);
Value divide(Value x, Value y);     // integers: truncating
Value remainder(Value x, Value y);  // sign of the dividend (C's %)
Value maximum(Value x, Value y);    // NaN wins
Value minimum(Value x, Value y);
Value power(Value x, Value y);
Value atan2(Value y, Value x);
Value logical_and(Value x, Value y);  // bitwise for integers
Value logical_or(Value x, Value y);
Value logical_xor(Value x, Value y);
Value shift_left(Value x, Value y);
Value shift_right_arithmetic(Value x, Value y);
Value shift_right_logical(Value x, Value y);
Value complex(Value re, Value im);

enum class Compare { EQ, NE, LT, LE, GT, GE };
/// Bool result. Floats compare with NaN unordered (NE true, others false).
Value compare(Value x, Value y, Compare direction);
/// condition ? x : y, all broadcast together; x and y have one dtype.
Value select(Value condition, Value x, Value y);

inline Value operator+(Value x, Value y) { return add(x, y); }
inline Value operator-(Value x, Value y) { return subtract(x, y); }
inline Value operator*(Value x, Value y) { return multiply(x, y); }
inline Value operator/(Value x, Value y) { return divide(x, y); }
inline Value operator-(Value x) { return negate(x); }
inline Value operator!(Value x) { return logical_not(x); }
inline Value operator&(Value x, Value y) { return logical_and(x, y); }
inline Value operator|(Value x, Value y) { return logical_or(x, y); }
inline Value operator^(Value x, Value y) { return logical_xor(x, y); }
inline Value operator<(Value x, Value y) { return compare(x, y, Compare::LT); }
inline Value operator<=(Value x, Value y) { return compare(x, y, Compare::LE); }
inline Value operator>(Value x, Value y) { return compare(x, y, Compare::GT); }
inline Value operator>=(Value x, Value y) { return compare(x, y, Compare::GE); }
inline Value equal(Value x, Value y) { return compare(x, y, Compare::EQ); }
inline Value not_equal(Value x, Value y) { return compare(x, y, Compare::NE); }

/// A scalar constant of x's dtype.
Value like(Value x, double value);
inline Value operator+(Value x, double c) { return add(x, like(x, c)); }
inline Value operator-(Value x, double c) { return subtract(x, like(x, c)); }
inline Value operator*(Value x, double c) { return multiply(x, like(x, c)); }
inline Value operator/(Value x, double c) { return divide(x, like(x, c)); }
inline Value operator+(double c, Value x) { return add(like(x, c), x); }
inline Value operator-(double c, Value x) { return subtract(like(x, c), x); }
inline Value operator*(double c, Value x) { return multiply(like(x, c), x); }
inline Value operator/(double c, Value x) { return divide(like(x, c), x); }
inline Value operator<(Value x, double c) { return compare(x, like(x, c), Compare::LT); }
inline Value operator<=(Value x, double c) { return compare(x, like(x, c), Compare::LE); }
inline Value operator>(Value x, double c) { return compare(x, like(x, c), Compare::GT); }
inline Value operator>=(Value x, double c) { return compare(x, like(x, c), Compare::GE); }

// ---- types
/// PyTorch's conversion: float to integer truncates, anything to bool is "not zero", complex to real drops
/// the imaginary part.
Value convert(Value x, DType dtype);
/// Same bits, other dtype of the same size.
Value bitcast(Value x, DType dtype);

// ---- shape
Value reshape(Value x, const Dims& dims);
/// Operand dimension i becomes result dimension `map[i]`.
Value broadcast_in_dim(Value x, const Dims& dims, const Dims& map);
/// NumPy broadcasting (dimensions align at the end). Error(Internal) when it does not fit.
Value broadcast_to(Value x, const Dims& dims);
/// The common NumPy shape of two.
Dims broadcast_dims(const Dims& a, const Dims& b);
Value transpose(Value x, const Dims& permutation);
/// Swaps two dimensions (negative counts from the end).
Value swap_dims(Value x, int a, int b);
Value unsqueeze(Value x, int dim);
Value squeeze(Value x, int dim);
Value slice(Value x, const Dims& start, const Dims& limit, const Dims& step = {});
/// One dimension only: x[..., start:limit:step, ...].
Value slice_dim(Value x, int dim, int64_t start, int64_t limit, int64_t step = 1);
/// Negative low/high crop.
Value pad(Value x, Value fill, const Dims& low, const Dims& high, const Dims& interior = {});
Value concatenate(const Values& xs, int dim);
Value reverse(Value x, const Dims& dims);
/// 0, 1, 2, ... along `dim`.
Value iota(Builder& b, DType dtype, const Dims& dims, int dim);
Value dynamic_slice(Value x, const Values& start, const Dims& sizes);
Value dynamic_update_slice(Value x, Value update, const Values& start);
/// A tensor of the type with every element equal.
Value full(Builder& b, double value, const Type& type);
Value full_like(Value x, double value);

// ---- indexing, in the forms lowerings need; indices are clamped by the caller where they may be out of
// range
struct GatherDims {
  Dims offset_dims, collapsed_slice_dims, operand_batching_dims, indices_batching_dims, start_index_map;
  int64_t index_vector_dim = 0;
};
Value gather(Value x, Value indices, const GatherDims& d, const Dims& slice_sizes, const Dims& result,
             bool sorted = false);
struct ScatterDims {
  Dims update_window_dims, inserted_window_dims, input_batching_dims, indices_batching_dims,
      scatter_dims_to_operand_dims;
  int64_t index_vector_dim = 0;
};
using Combine = std::function<Value(Value, Value)>;
/// `combine(old, update)`; nullptr replaces. Indices that are out of range are dropped.
Value scatter(Value x, Value indices, Value updates, const ScatterDims& d, const Combine& combine,
              bool unique = false, bool sorted = false);
/// x[index] along dim 0 of a 1-d index: rows(x, i)[k] = x[i[k]].
Value take_rows(Value x, Value index);
/// torch.gather's maths: out[i][j] = x[index[i][j]][j] for dim 0; index in range, same rank.
Value take_along_dim(Value x, Value index, int dim);

// ---- reductions (dims are removed)
using Reducer = std::function<Value(Value, Value)>;
Value reduce(Value x, Value init, const Dims& dims, const Reducer& body);
Value reduce_sum(Value x, const Dims& dims);
Value reduce_prod(Value x, const Dims& dims);
Value reduce_max(Value x, const Dims& dims);  // NaN wins; lowest value of the type for nothing
Value reduce_min(Value x, const Dims& dims);
Value reduce_and(Value x, const Dims& dims);
Value reduce_or(Value x, const Dims& dims);
/// Several operands reduced together.
Values reduce(const Values& xs, const Values& inits, const Dims& dims,
              const std::function<Values(const Values& left, const Values& right)>& body);
struct Window {
  Dims size, stride, base_dilation, dilation;
  std::vector<std::pair<int64_t, int64_t>> padding;
};
Value reduce_window(Value x, Value init, const Window& w, const Reducer& body);
Values reduce_window(const Values& xs, const Values& inits, const Window& w,
                     const std::function<Values(const Values& left, const Values& right)>& body);
/// Index (in `index_type`) of the largest (smallest) element along dim; the first of equals, the first NaN.
/// Also its value.
std::pair<Value, Value> arg_reduce(Value x, int dim, bool largest, DType index_type);
/// Lowest and highest value of a type (infinities for floats).
Value lowest(Builder& b, DType dtype);
Value highest(Builder& b, DType dtype);

// ---- contraction
/// Batch and contracting dimensions by index; result is batch, then the rest of x, then the rest of y.
/// `result` dtype may be wider than the operands' (accumulation type). Honours the builder's precision.
Value dot_general(Value x, Value y, const Dims& x_batch, const Dims& y_batch, const Dims& x_contract,
                  const Dims& y_contract, std::optional<DType> result = {});
struct ConvDims {  // positions of each role in the operand's dimensions
  int64_t input_batch, input_feature, kernel_input, kernel_output, output_batch, output_feature;
  Dims input_spatial, kernel_spatial, output_spatial;
};
struct ConvWindow {
  Dims stride, input_dilation, kernel_dilation;
  std::vector<std::pair<int64_t, int64_t>> padding;
  std::vector<bool> reverse;
};
Value convolution(Value x, Value kernel, const ConvDims& d, const ConvWindow& w, int64_t feature_groups = 1,
                  int64_t batch_groups = 1);

// ---- sorting, control flow, linear algebra
/// Sorts all operands along dim by `less(left, right)` over the elements (left[i], right[i] of operand i).
Values sort(const Values& xs, int dim, bool stable,
            const std::function<Value(const Values& left, const Values& right)>& less);
Values while_loop(const Values& init, const std::function<Value(const Values&)>& condition,
                  const std::function<Values(const Values&)>& body);
Value cholesky(Value x, bool lower);
/// Solves op(a) x = b (left) or x op(a) = b.
Value triangular_solve(Value a, Value b, bool left, bool lower, bool unit_diagonal, bool transpose,
                       bool conjugate);
enum class Fft { FFT, IFFT, RFFT, IRFFT };
Value fft(Value x, Fft kind, const Dims& lengths);
Value custom_call(Builder& b, const std::string& target, const Values& operands, const Type& result,
                  const std::string& attributes = "");
Values custom_call(Builder& b, const std::string& target, const Values& operands,
                   const std::vector<Type>& results, const std::string& attributes = "");
Value optimization_barrier(Value x);

}  // namespace tpu::hlo
