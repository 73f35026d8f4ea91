// Error functions, gamma functions and the rest of torch.special.
#include <cmath>

#include "core/ops/bessel.h"
#include "core/ops/gamma.h"
#include "core/ops/math.h"
#include "core/ops/orthogonal.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

// Derivatives of samples; a part of the special family.
void gamma_gradients(Table& t);

namespace {

// Chebyshev coefficients, computed from the functions themselves with 40 digits.
/// (1 + 2 x) erfcx(x) in (x - 3.75) / (x + 3.75), x >= 0.
constexpr double kErfcx[] = {
    1.17757893456740175,     -4.59005458064647733e-3, -8.42491333665179156e-2,  5.92099399981918905e-2,
    -2.66586684353057523e-2, 9.07499767070526509e-3,  -2.41316354041760819e-3,  4.90775836525808632e-4,
    -6.91697330250120637e-5, 4.13902798607301017e-6,  7.74038306619849067e-7,   -2.18864010492343957e-7,
    1.07649994656709104e-8,  4.5219598112182869e-9,   -7.75440020883135111e-10, -6.31808834088668449e-11,
    2.8687950109306699e-11,  1.94558685457773472e-13, -9.65469674843343891e-13, 3.25254814814873984e-14,
    3.34781194828680539e-14, -1.8645628804193131e-15, -1.25079505306886471e-15, 7.41823525662404346e-17,
    5.06814890479611132e-17};

/// -ndtri(exp(-s^2 / 2)) in s, s in [2, 6].
constexpr double kNormalNear[] = {
    3.36244741840392332,      2.20990687163344395,     -4.04360292107994599e-2,  8.30955424838722312e-3,
    -1.77352316723394829e-3,  3.88830950888391986e-4,  -8.70918968417634259e-5,  1.98647877076191429e-5,
    -4.60332897056965224e-6,  1.08168223326261354e-6,  -2.57281431146800484e-7,  6.18452391715029162e-8,
    -1.50027927325814512e-8,  3.6682755342170971e-9,   -9.03046085601650695e-10, 2.23626684141773984e-10,
    -5.56641803688365536e-11, 1.39185650219268178e-11, -3.49424216061325054e-12, 8.80362811790537715e-13,
    -2.225155594250994e-13,   5.6404368951041081e-14,  -1.43351318319504238e-14, 3.65195886790829299e-15,
    -9.32388564572818668e-16, 2.38526883038696337e-16, -6.11334112732282232e-17, 1.56949570382688716e-17};

/// -s - ndtri(exp(-s^2 / 2)) in 6 / s, s in [6, 40].
constexpr double kNormalFar[] = {
    -0.302365580019795935,   -0.170744102570099075,    1.36072007325702586e-2,  -2.0869136737395577e-3,
    4.53518276424463976e-4,  -1.1820970428946935e-4,   3.43475194217764145e-5,  -1.07284735397574539e-5,
    3.52715024387134192e-6,  -1.20453917135960452e-6,  4.23594765116698675e-7,  -1.52475949126062989e-7,
    5.59361236199443575e-8,  -2.08460303428538693e-8,  7.87269558925999448e-9,  -3.00715100626502373e-9,
    1.1599824572714601e-9,   -4.51306571591619197e-10, 1.76918080294848356e-10, -6.98207076968546962e-11,
    2.77202919101816351e-11, -1.10649621204927196e-11, 4.43828971166712477e-12, -1.78813758933009205e-12,
    7.23331392114629326e-13, -2.93682157951582315e-13, 1.19644370779782584e-13, -4.88952959979028724e-14,
    2.00401256881908505e-14, -8.23572367849899965e-15, 3.39304726473479519e-15, -1.40117342732698812e-15,
    5.79884968151864244e-16, -2.40480649114926344e-16, 9.99200295823345204e-17, -4.1591992488841253e-17,
    1.73422934091919419e-17, -7.24271882287520914e-18, 3.02940295461129442e-18, -1.26893049239647623e-18};

Value erfc(Value x) { return apply<"chlo.erfc">(x); }

// erfcx: exp(x^2) erfc(x)
Value scaled_erfc(Value x) {
  Value size = abs(x);
  Value y = chebyshev_series((size - 3.75) / (size + 3.75), -1, 1, kErfcx) / (1.0 + 2.0 * size);
  y = select(equal(size, like(x, INFINITY)), full_like(x, 0), y);
  return select(x < 0.0, 2.0 * exp(x * x) - y, y);
}

// log of the normal distribution function
Value log_ndtr(Value x) {
  Value t = x * M_SQRT1_2;
  Value low = log(scaled_erfc(-minimum(t, like(t, 0))) * 0.5) - t * t;
  return select(x < -1.0, low, log1p(erfc(t) * -0.5));
}

// The inverse of the normal distribution function: the tails in s = sqrt(-2 log p).
Value ndtri(Value p) {
  Value upper = p > 0.5, tail = select(upper, 1.0 - p, p);
  Value s = sqrt(log(tail) * -2);
  Value near_s = minimum(maximum(s, like(s, 2)), like(s, 6)), far_s = maximum(s, like(s, 6));
  Value y = select(s <= 6.0, chebyshev_series(near_s, 2, 6, kNormalNear),
                   chebyshev_series(6.0 / far_s, 0.15, 1, kNormalFar) + far_s);
  y = select(upper, y, -y);
  Value center = apply<"chlo.erf_inv">(2.0 * p - 1.0) * M_SQRT2;
  y = select(s < 2.0, center, y);
  Value infinity = full_like(p, INFINITY);
  y = select(equal(p, like(p, 0)), -infinity, select(equal(p, like(p, 1)), infinity, y));
  return select((p >= 0.0) & (p <= 1.0), y, full_like(p, NAN));
}

// entr: -x log(x), 0 at 0, -inf below
Value entropy(Value x) {
  Value y = select(x > 0.0, -x * log(x), full_like(x, -INFINITY));
  y = select(equal(x, like(x, 0)), full_like(x, 0), y);
  return select(is_nan(x), x, y);
}

// lgamma: near its zeros at 1 and 2 an f32 has too few digits, and f64 is cheap where there is a unit for it.
Results log_gamma(Call& c) {
  const bool wide = c.lowering.platform == Platform::Cpu;
  return apply<"chlo.lgamma">(c.tensor("self", wide ? DType::F64 : c.compute_dtype()));
}

// polygamma(n, x): (-1)^(n + 1) n! zeta(n + 1, x)
Results polygamma(Call& c) {
  const auto n = static_cast<double>(c.integer("n"));
  Value x = c.tensor("self", c.compute_dtype());
  if (n == 0) return digamma(x);
  const double factor = std::tgamma(n + 1) * (std::fmod(n, 2) == 1 ? 1 : -1);
  if (n > 1) return hurwitz_zeta(full_like(x, n + 1), x) * factor;
  // By reflection below 1/2, where the terms of zeta's sum would be as many as |x|.
  Value low = x < 0.5;
  Value y = hurwitz_zeta(full_like(x, 2), select(low, 1.0 - x, x));
  Value wave = M_PI / sin(x * M_PI);
  y = select(low, wave * wave - y, y);
  return select(equal(x, like(x, INFINITY)), full_like(x, 0), y);
}

// A function of floats; integers take the result's type.
template <Value (*f)(Value, Value)>
Results of_floats(Call& c) {
  return f(c.tensor("self", c.compute_dtype()), c.tensor("other", c.compute_dtype()));
}

template <Polynomial kind>
Results polynomial_of(Call& c) {
  return orthogonal(kind, c.tensor("x", c.compute_dtype()), c.tensor("n", c.compute_dtype()));
}
// Over [0, 1] instead of [-1, 1].
template <Polynomial kind>
Results shifted_polynomial_of(Call& c) {
  return orthogonal(kind, 2.0 * c.tensor("x", c.compute_dtype()) - 1.0, c.tensor("n", c.compute_dtype()));
}
std::string each_form(const std::string& name) {
  return name + " " + name + ".x_scalar " + name + ".n_scalar";
}

}  // namespace

void special(Table& t) {
  gamma_gradients(t);
  t.unary<hlo::erf>("erf");
  t.unary<erfc>("erfc");
  t.unary<apply<"chlo.erf_inv">>("erfinv");
  t.unary<scaled_erfc>("special_erfcx");
  t.unary<log_ndtr>("special_log_ndtr");
  t.unary<ndtri>("special_ndtri");
  t.unary<entropy>("special_entr");

  t.op("lgamma", log_gamma);
  t.unary<digamma>("digamma");
  t.op("polygamma", polygamma);
  t.op("special_zeta special_zeta.self_scalar special_zeta.other_scalar", of_floats<hurwitz_zeta>);
  t.op("igamma", of_floats<igamma>);
  t.op("igammac", of_floats<igammac>);

  t.unary<bessel_i0>("i0 special_modified_bessel_i0");
  t.unary<bessel_i0e>("special_i0e");
  t.unary<bessel_i1>("special_i1 special_modified_bessel_i1");
  t.unary<bessel_i1e>("special_i1e");
  t.unary<bessel_k0>("special_modified_bessel_k0");
  t.unary<bessel_k1>("special_modified_bessel_k1");
  t.unary<bessel_j0>("special_bessel_j0");
  t.unary<bessel_j1>("special_bessel_j1");
  t.unary<bessel_y0>("special_bessel_y0");
  t.unary<bessel_y1>("special_bessel_y1");
  // These name their argument x.
  t.op("special_scaled_modified_bessel_k0",
       [](Call& c) -> Results { return bessel_k0e(c.tensor("x", c.compute_dtype())); });
  t.op("special_scaled_modified_bessel_k1",
       [](Call& c) -> Results { return bessel_k1e(c.tensor("x", c.compute_dtype())); });
  t.op("special_spherical_bessel_j0",
       [](Call& c) -> Results { return spherical_bessel_j0(c.tensor("x", c.compute_dtype())); });
  t.op("special_airy_ai", [](Call& c) -> Results { return airy_ai(c.tensor("x", c.compute_dtype())); });

  using enum Polynomial;
  t.op(each_form("special_chebyshev_polynomial_t"), polynomial_of<ChebyshevT>);
  t.op(each_form("special_chebyshev_polynomial_u"), polynomial_of<ChebyshevU>);
  t.op(each_form("special_chebyshev_polynomial_v"), polynomial_of<ChebyshevV>);
  t.op(each_form("special_chebyshev_polynomial_w"), polynomial_of<ChebyshevW>);
  t.op(each_form("special_shifted_chebyshev_polynomial_t"), shifted_polynomial_of<ChebyshevT>);
  t.op(each_form("special_shifted_chebyshev_polynomial_u"), shifted_polynomial_of<ChebyshevU>);
  t.op(each_form("special_shifted_chebyshev_polynomial_v"), shifted_polynomial_of<ChebyshevV>);
  t.op(each_form("special_shifted_chebyshev_polynomial_w"), shifted_polynomial_of<ChebyshevW>);
  t.op(each_form("special_hermite_polynomial_h"), polynomial_of<HermiteH>);
  t.op(each_form("special_hermite_polynomial_he"), polynomial_of<HermiteHe>);
  t.op(each_form("special_laguerre_polynomial_l"), polynomial_of<Laguerre>);
  t.op(each_form("special_legendre_polynomial_p"), polynomial_of<Legendre>);
}

}  // namespace tpu::ops
