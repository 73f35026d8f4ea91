// Up- and downsampling by interpolation: separable, one sparse map a dimension; the backward is the
// transposed map.
#include "core/ops/resample.h"

#include <algorithm>
#include <cmath>

#include "core/ops/taps.h"

namespace tpu::ops {

using namespace hlo;

namespace {

enum class Kind { Nearest, NearestExact, Linear, Cubic, LinearAntialias, CubicAntialias, Lanczos };

// Positions are computed in the type the CPU uses (float but for doubles), so that they round alike.
template <typename Real>
struct Interpolation {
  Kind kind;
  int64_t in, out;
  bool align;
  std::optional<double> factor;  // as the caller gave it

  Real ratio() const {
    if (align && kind != Kind::Nearest && kind != Kind::NearestExact)
      return out > 1 ? static_cast<Real>(in - 1) / static_cast<Real>(out - 1) : Real(0);
    if (factor && *factor > 0) return static_cast<Real>(1.0 / *factor);
    return static_cast<Real>(in) / static_cast<Real>(out);
  }

  Real source(Real scale, int64_t i) const {
    if (align) return scale * static_cast<Real>(i);
    const Real at = scale * (static_cast<Real>(i) + Real(0.5)) - Real(0.5);
    return kind == Kind::Linear && at < 0 ? Real(0) : at;
  }

  static Real cubic(Real x, Real a) {
    x = std::abs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
  }

  // The kernel an antialiased row is weighted with, and its half width.
  Real support() const { return kind == Kind::LinearAntialias ? 1 : kind == Kind::CubicAntialias ? 2 : 3; }
  Real filter(Real x) const {
    if (kind == Kind::LinearAntialias) return std::abs(x) < 1 ? 1 - std::abs(x) : Real(0);
    if (kind == Kind::CubicAntialias) return cubic(x, Real(-0.5));
    if (std::abs(x) >= 3) return 0;
    const auto sinc = [](Real v) { return v == 0 ? Real(1) : std::sin(Real(M_PI) * v) / (Real(M_PI) * v); };
    return sinc(x) * sinc(x / 3);
  }

  using Row = std::vector<std::pair<int64_t, double>>;

  Row smooth_row(Real scale, int64_t i) const {
    const Real stretch = std::max(scale, Real(1)), reach = support() * stretch;
    const Real centre = scale * (static_cast<Real>(i) + Real(0.5));
    const int64_t from = std::max<int64_t>(static_cast<int64_t>(centre - reach + Real(0.5)), 0);
    const int64_t to = std::min<int64_t>(static_cast<int64_t>(centre + reach + Real(0.5)), in);
    std::vector<Real> weights;
    Real total = 0;
    for (int64_t k = from; k < to; k++) {
      weights.push_back(filter((static_cast<Real>(k) - centre + Real(0.5)) / stretch));
      total += weights.back();
    }
    Row row;
    for (int64_t k = from; k < to; k++)
      row.push_back({k, total != 0 ? weights[k - from] / total : weights[k - from]});
    return row;
  }

  Row row(Real scale, int64_t i) const {
    const auto nearest = [&](Real at) {
      return Row{{std::min(static_cast<int64_t>(std::floor(at)), in - 1), 1}};
    };
    if (kind == Kind::Nearest) return nearest(static_cast<Real>(i) * scale);
    if (kind == Kind::NearestExact) return nearest((static_cast<Real>(i) + Real(0.5)) * scale);
    if (kind != Kind::Linear && kind != Kind::Cubic) return smooth_row(scale, i);
    const Real at = source(scale, i);
    const int64_t base = std::min(static_cast<int64_t>(std::floor(at)), in - 1);
    const Real f = std::clamp(at - static_cast<Real>(base), Real(0), Real(1));
    if (kind == Kind::Linear) return {{base, Real(1) - f}, {std::min(base + 1, in - 1), f}};
    Row r;
    for (int64_t k = -1; k <= 2; k++)
      r.push_back({std::clamp<int64_t>(base + k, 0, in - 1), cubic(static_cast<Real>(k) - f, Real(-0.75))});
    return r;
  }

  Taps taps() const {
    Taps t{in, {}};
    const Real scale = ratio();
    for (int64_t i = 0; i < out; i++) t.rows.push_back(row(scale, i));
    return t;
  }
};

Taps taps(Kind kind, int64_t in, int64_t out, bool align, std::optional<double> factor, DType t) {
  if (t == DType::F64) return Interpolation<double>{kind, in, out, align, factor}.taps();
  return Interpolation<float>{kind, in, out, align, factor}.taps();
}

// The scale factors of the resampled dimensions, first to last.
std::vector<std::optional<double>> factors(Call& c, int n) {
  static const char* names[] = {"scales_d", "scales_h", "scales_w"};
  std::vector<std::optional<double>> out;
  for (int d = 0; d < n; d++) {
    const char* name = n == 1 ? "scales" : names[3 - n + d];
    out.push_back(c.has(name) ? std::optional(c.number(name)) : std::nullopt);
  }
  return out;
}

bool aligned(Call& c, Kind kind) {
  return kind != Kind::Nearest && kind != Kind::NearestExact && c.flag("align_corners");
}

template <Kind kind, int n>
Results forward(Call& c) {
  const DType kept = c.out_dtype();
  const bool exact = kind == Kind::Nearest || kind == Kind::NearestExact;
  if (c.out().elements() == 0) return full(c.b, 0, c.out());
  Value x = c.tensor("self");
  const DType t = exact ? x.dtype() : is_float(x.dtype()) ? compute_type(x.dtype()) : DType::F32;
  x = convert(x, t);
  const auto scales = factors(c, n);
  // The last dimension first: it is the one that is contiguous, and the order matters where integers (bytes)
  // are rounded after each.
  for (int d = n - 1; d >= 0; d--) {
    x = apply(c, x, 2 + d, taps(kind, x.size(2 + d), c.out().dims[2 + d], aligned(c, kind), scales[d], t));
    if (!is_float(kept) && !exact) x = minimum(maximum(floor(x + 0.5), like(x, 0)), like(x, 255));
  }
  return x;
}

template <Kind kind, int n>
Results backward(Call& c) {
  Value grad = c.tensor("grad_output", c.compute_dtype());
  if (grad.elements() == 0) return full(c.b, 0, c.out());
  const auto scales = factors(c, n);
  for (int d = n - 1; d >= 0; d--)
    grad = apply(c, grad, 2 + d,
                 taps(kind, c.out().dims[2 + d], grad.size(2 + d), aligned(c, kind), scales[d], grad.dtype())
                     .transposed());
  return grad;
}

template <Kind kind, int n>
void add(Table& t, const char* name) {
  const Options scales{.fixed = {"scales", "scales_d", "scales_h", "scales_w"}};
  t.op(name, forward<kind, n>, scales);
  t.op(std::string(name) + "_backward", backward<kind, n>, scales);
}

}  // namespace

void resample(Table& t) {
  grid_sampler(t);
  unfold(t);
  add<Kind::Nearest, 1>(t, "upsample_nearest1d");
  add<Kind::Nearest, 2>(t, "upsample_nearest2d");
  add<Kind::Nearest, 3>(t, "upsample_nearest3d");
  add<Kind::NearestExact, 1>(t, "_upsample_nearest_exact1d");
  add<Kind::NearestExact, 2>(t, "_upsample_nearest_exact2d");
  add<Kind::NearestExact, 3>(t, "_upsample_nearest_exact3d");
  add<Kind::Linear, 1>(t, "upsample_linear1d");
  add<Kind::Linear, 2>(t, "upsample_bilinear2d");
  add<Kind::Linear, 3>(t, "upsample_trilinear3d");
  add<Kind::Cubic, 2>(t, "upsample_bicubic2d");
  add<Kind::LinearAntialias, 2>(t, "_upsample_bilinear2d_aa");
  add<Kind::CubicAntialias, 2>(t, "_upsample_bicubic2d_aa");
  add<Kind::Lanczos, 2>(t, "_upsample_lanczos2d_aa");
}

}  // namespace tpu::ops
