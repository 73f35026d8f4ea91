#include <algorithm>

#include "core/base/error.h"
#include "core/hlo/functions.h"

namespace tpu::hlo {
namespace {

std::string precision_config(Builder& b) {
  static const char* names[] = {"HIGHEST", "HIGH", "DEFAULT"};
  const char* p = names[static_cast<int>(b.precision())];
  return text("precision_config = [#stablehlo<precision ", p, ">, #stablehlo<precision ", p, ">]");
}

std::string list(const Dims& dims) { return str(dims); }

std::string pairs(const std::vector<std::pair<int64_t, int64_t>>& values) {
  std::string out;
  for (auto [low, high] : values) out += text(out.empty() ? "" : ", ", "[", low, ", ", high, "]");
  return text("dense<", values.empty() ? "" : "[" + out + "]", "> : tensor<", values.size(), "x2xi64>");
}

// Dimension roles in StableHLO's compact spelling, e.g. [b, f, 0, 1].
std::string roles(int64_t first, const char* first_name, int64_t second, const char* second_name,
                  const Dims& spatial) {
  std::vector<std::string> names(spatial.size() + 2);
  names[first] = first_name, names[second] = second_name;
  for (size_t i = 0; i < spatial.size(); i++) names[spatial[i]] = std::to_string(i);
  std::string out;
  for (const std::string& n : names) out += (out.empty() ? "" : ", ") + n;
  return "[" + out + "]";
}

}  // namespace

Value dot_general(Value x, Value y, const Dims& x_batch, const Dims& y_batch, const Dims& x_contract,
                  const Dims& y_contract, std::optional<DType> result) {
  Dims dims;
  for (int64_t d : x_batch) dims.push_back(x.dims()[d]);
  const auto rest = [&dims](Value v, const Dims& batch, const Dims& contract) {
    for (int i = 0; i < v.rank(); i++)
      if (std::find(batch.begin(), batch.end(), i) == batch.end() &&
          std::find(contract.begin(), contract.end(), i) == contract.end())
        dims.push_back(v.dims()[i]);
  };
  rest(x, x_batch, x_contract);
  rest(y, y_batch, y_contract);
  return x.builder().emit(
      "stablehlo.dot_general", {x, y}, Type{result.value_or(x.dtype()), dims},
      text("dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = ", list(x_batch),
           ", rhs_batching_dimensions = ", list(y_batch), ", lhs_contracting_dimensions = ", list(x_contract),
           ", rhs_contracting_dimensions = ", list(y_contract), ">, ", precision_config(x.builder())));
}

Value convolution(Value x, Value kernel, const ConvDims& d, const ConvWindow& w, int64_t feature_groups,
                  int64_t batch_groups) {
  const size_t n = d.input_spatial.size();
  Dims dims(n + 2);
  dims[d.output_batch] = x.dims()[d.input_batch] / batch_groups;
  dims[d.output_feature] = kernel.dims()[d.kernel_output];
  std::string reverse;
  for (size_t i = 0; i < n; i++) {
    const int64_t in = x.dims()[d.input_spatial[i]], k = kernel.dims()[d.kernel_spatial[i]];
    const int64_t extent = in == 0 ? 0 : (in - 1) * w.input_dilation[i] + 1;
    const int64_t room =
        extent + w.padding[i].first + w.padding[i].second - ((k - 1) * w.kernel_dilation[i] + 1);
    dims[d.output_spatial[i]] = room < 0 ? 0 : room / w.stride[i] + 1;
    reverse += text(i ? ", " : "", !w.reverse.empty() && w.reverse[i] ? "true" : "false");
  }
  return x.builder().emit(
      "stablehlo.convolution", {x, kernel}, Type{x.dtype(), dims},
      text("window_strides = ", i64_array(w.stride), ", padding = ", pairs(w.padding), ", lhs_dilation = ",
           i64_array(w.input_dilation), ", rhs_dilation = ", i64_array(w.kernel_dilation),
           ", window_reversal = array<i1", n ? ": " : "", reverse, ">, dimension_numbers = #stablehlo.conv<",
           roles(d.input_batch, "b", d.input_feature, "f", d.input_spatial), "x",
           roles(d.kernel_output, "o", d.kernel_input, "i", d.kernel_spatial), "->",
           roles(d.output_batch, "b", d.output_feature, "f", d.output_spatial),
           ">, feature_group_count = ", feature_groups, " : i64, batch_group_count = ", batch_groups,
           " : i64, ", precision_config(x.builder())));
}

}  // namespace tpu::hlo
