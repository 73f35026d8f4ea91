// Builds a small module, compiles it with the plugin, runs it and brings the results back as numbers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/fixture.h"
#include "core/hlo/functions.h"

namespace tpu::testing {

using Numbers = std::vector<std::complex<double>>;

/// Dense row-major data on the host.
struct Array {
  DType dtype;
  hlo::Dims dims;
  std::vector<char> bytes;

  template <typename T>
  std::vector<T> as() const {
    std::vector<T> out(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
};

template <typename T>
Array raw(DType dtype, const hlo::Dims& dims, const std::vector<T>& values) {
  Array out{dtype, dims, std::vector<char>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
  return out;
}

namespace detail {

template <typename T, typename Stored = T>
Array cast(DType dtype, const hlo::Dims& dims, const Numbers& values) {
  std::vector<Stored> out;
  for (const auto& v : values) out.push_back(static_cast<Stored>(static_cast<T>(v.real())));
  return raw(dtype, dims, out);
}

template <typename T>
Numbers widen(const Array& a) {
  Numbers out;
  for (T v : a.as<T>()) out.emplace_back(static_cast<double>(v));
  return out;
}

}  // namespace detail

/// The numbers in the given type; they must be exact in bf16 (its low half is cut off).
inline Array array(DType dtype, const hlo::Dims& dims, const Numbers& v) {
  using namespace detail;
  switch (dtype) {
    case DType::Bool:
      return cast<bool, char>(dtype, dims, v);
    case DType::S8:
      return cast<int8_t>(dtype, dims, v);
    case DType::S16:
      return cast<int16_t>(dtype, dims, v);
    case DType::S32:
      return cast<int32_t>(dtype, dims, v);
    case DType::S64:
      return cast<int64_t>(dtype, dims, v);
    case DType::U8:
      return cast<uint8_t>(dtype, dims, v);
    case DType::U16:
      return cast<uint16_t>(dtype, dims, v);
    case DType::U32:
      return cast<uint32_t>(dtype, dims, v);
    case DType::U64:
      return cast<uint64_t>(dtype, dims, v);
    case DType::F16:
      return cast<_Float16>(dtype, dims, v);
    case DType::F32:
      return cast<float>(dtype, dims, v);
    case DType::F64:
      return cast<double>(dtype, dims, v);
    case DType::C64:
      return raw(dtype, dims, std::vector<std::complex<float>>(v.begin(), v.end()));
    case DType::C128:
      return raw(dtype, dims, v);
    case DType::BF16: {
      std::vector<uint16_t> halves;
      for (const auto& x : v) {
        const float f = static_cast<float>(x.real());
        uint32_t bits;
        std::memcpy(&bits, &f, 4);
        halves.push_back(static_cast<uint16_t>(bits >> 16));
      }
      return raw(dtype, dims, halves);
    }
    default:
      throw std::runtime_error("array: not a type of these tests");
  }
}

inline Numbers numbers(const Array& a) {
  using namespace detail;
  switch (a.dtype) {
    case DType::Bool:
    case DType::U8:
      return widen<uint8_t>(a);
    case DType::S8:
      return widen<int8_t>(a);
    case DType::S16:
      return widen<int16_t>(a);
    case DType::S32:
      return widen<int32_t>(a);
    case DType::S64:
      return widen<int64_t>(a);
    case DType::U16:
      return widen<uint16_t>(a);
    case DType::U32:
      return widen<uint32_t>(a);
    case DType::U64:
      return widen<uint64_t>(a);
    case DType::F16:
      return widen<_Float16>(a);
    case DType::F32:
      return widen<float>(a);
    case DType::F64:
      return widen<double>(a);
    case DType::C128:
      return a.as<std::complex<double>>();
    case DType::C64: {
      const auto narrow = a.as<std::complex<float>>();
      return Numbers(narrow.begin(), narrow.end());
    }
    case DType::BF16: {
      Numbers out;
      for (uint16_t half : a.as<uint16_t>()) {
        const uint32_t bits = static_cast<uint32_t>(half) << 16;
        float f;
        std::memcpy(&f, &bits, 4);
        out.emplace_back(f);
      }
      return out;
    }
    default:
      throw std::runtime_error("numbers: not a type of these tests");
  }
}

/// Runs a module on device 0, compiled as the runtime does; its results in order.
inline std::vector<Array> execute(const std::string& module, const std::vector<Array>& inputs) {
  pjrt::CompileOptions options;
  options.overrides["xla_cpu_enable_fast_min_max"] = false;
  const auto program = client()->compile(module, options);
  std::vector<std::unique_ptr<pjrt::Buffer>> owned;
  std::vector<pjrt::Buffer*> arguments;
  for (const Array& a : inputs) {
    owned.push_back(client()->upload(a.bytes.empty() ? nullptr : a.bytes.data(), a.dtype, a.dims, 0));
    arguments.push_back(owned.back().get());
  }
  std::vector<Array> out;
  for (const auto& buffer : run(*program, arguments))
    out.push_back({buffer->dtype(), buffer->dims(), download<char>(*buffer)});
  return out;
}

using Body = std::function<hlo::Values(hlo::Builder&, const hlo::Values&)>;

/// The text of a module with these parameters.
inline std::string write_module(const std::vector<hlo::Type>& parameters, const Body& body,
                                hlo::Precision precision = hlo::Precision::Highest) {
  hlo::Builder b(precision);
  hlo::Values values;
  for (const hlo::Type& t : parameters) values.push_back(b.parameter(t));
  return b.finish(body(b, values));
}

/// The results of `body` over the inputs.
inline std::vector<Array> evaluate(const std::vector<Array>& inputs, const Body& body,
                                   hlo::Precision precision = hlo::Precision::Highest) {
  std::vector<hlo::Type> types;
  for (const Array& a : inputs) types.push_back({a.dtype, a.dims});
  return execute(write_module(types, body, precision), inputs);
}

inline bool same_number(double got, double want, double tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || tolerance == 0) return got == want;
  return std::fabs(got - want) <= tolerance * std::max(1.0, std::fabs(want));
}

/// Equal numbers within a tolerance (relative above 1, absolute below); NaN equals NaN.
inline void expect_numbers(const Array& got, const Numbers& want, double tolerance = 0,
                           const std::string& what = "") {
  const Numbers have = numbers(got);
  ASSERT_EQ(have.size(), want.size()) << what << " has dimensions " << hlo::str(got.dims);
  for (size_t i = 0; i < want.size(); i++)
    EXPECT_TRUE(same_number(have[i].real(), want[i].real(), tolerance) &&
                same_number(have[i].imag(), want[i].imag(), tolerance))
        << what << " element " << i << " is " << have[i] << ", expected " << want[i];
}

/// The same, with the type.
inline void expect_array(const Array& got, DType dtype, const hlo::Dims& dims, const Numbers& want,
                         double tolerance = 0, const std::string& what = "") {
  EXPECT_EQ(name(got.dtype), name(dtype)) << what;
  EXPECT_EQ(got.dims, dims) << what;
  expect_numbers(got, want, tolerance, what);
}

}  // namespace tpu::testing
