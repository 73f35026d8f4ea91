// Average pooling with a fixed window, and its backward.
#include <algorithm>

#include "core/ops/pool.h"

namespace tpu::ops {

using namespace hlo;

namespace {

struct Windows {
  Dims size, stride, padding, in, out;  // of the pooled dimensions
  int n() const { return static_cast<int>(size.size()); }
  int64_t start(int d, int64_t i) const { return i * stride[d] - padding[d]; }
};

Windows windows(Call& c, const Dims& in, const Dims& out, int n) {
  const auto ints = [&](const char* name) {
    Dims d = c.ints(name);
    if (d.size() == 1) d.resize(n, d[0]);
    return d;
  };
  Windows w{ints("kernel_size"), ints("stride"), ints("padding"), {}, {}};
  if (w.stride.empty()) w.stride = w.size;
  w.in.assign(in.end() - n, in.end());
  w.out.assign(out.end() - n, out.end());
  return w;
}

// What each window's sum is divided by: an outer product of counts, [1, out...].
Value divisor(Call& c, const Windows& w, DType t) {
  if (c.has("divisor_override")) return c.b.constant(static_cast<double>(c.integer("divisor_override")), t);
  const bool padding_counts = c.flag("count_include_pad");
  Value total;
  for (int d = 0; d < w.n(); d++) {
    std::vector<double> counts;
    for (int64_t i = 0; i < w.out[d]; i++) {
      const int64_t from = w.start(d, i), to = std::min(from + w.size[d], w.in[d] + w.padding[d]);
      counts.push_back(static_cast<double>(
          padding_counts ? to - from : std::min(to, w.in[d]) - std::max<int64_t>(from, 0)));
    }
    Dims dims(w.n() + 1, 1);
    dims[d + 1] = w.out[d];
    const bool even = std::all_of(counts.begin(), counts.end(), [&](double v) { return v == counts[0]; });
    Value v = even && !counts.empty() ? c.b.constant(counts[0], t) : reshape(reals(c.b, counts, t), dims);
    total = total ? total * v : v;
  }
  return total;
}

// Each window's elements along one dimension.
Taps sums(const Windows& w, int d) {
  Taps t{w.in[d], {}};
  for (int64_t i = 0; i < w.out[d]; i++) {
    t.rows.emplace_back();
    for (int64_t k = std::max<int64_t>(w.start(d, i), 0); k < std::min(w.start(d, i) + w.size[d], w.in[d]);
         k++)
      t.rows.back().push_back({k, 1});
  }
  return t;
}

// Integers are divided as integers.
DType wide(Call& c) { return c.compute_dtype(); }

Results forward(Call& c, int n) {
  const DType t = wide(c);
  Value x = planes(c.tensor("self", t), n);
  if (c.out().elements() == 0) return full(c.b, 0, c.out());
  const Windows w = windows(c, x.dims(), c.out().dims, n);
  Window win{{1}, {1}, {}, {}, {{0, 0}}};
  for (int d = 0; d < n; d++) {
    const int64_t end = w.start(d, w.out[d] - 1) + w.size[d];
    win.size.push_back(w.size[d]), win.stride.push_back(w.stride[d]);
    win.padding.push_back({w.padding[d], end - w.in[d]});
  }
  Value sum = reduce_window(x, like(x, 0), win, add);
  return reshape(sum / divisor(c, w, t), c.out().dims);
}

// Each element's share of every window it is in: the same window moved over the spread-out gradient.
Results backward(Call& c, int n) {
  const DType t = wide(c);
  Value grad = planes(c.tensor("grad_output", t), n);
  if (grad.elements() == 0) return full(c.b, 0, c.out());
  const Windows w = windows(c, c.out().dims, grad.dims(), n);
  Value share = grad / divisor(c, w, t);
  if (is_float(t) && c.lowering.platform == Platform::Cpu) {  // its windows over spread-out operands are slow
    for (int d = 0; d < n; d++) share = apply(c, share, d + 1, sums(w, d).transposed());
    return reshape(share, c.out().dims);
  }
  Window win{{1}, {1}, {1}, {}, {{0, 0}}};
  for (int d = 0; d < n; d++) {
    const int64_t low = w.size[d] - 1 - w.padding[d], extent = (w.out[d] - 1) * w.stride[d] + 1;
    win.size.push_back(w.size[d]), win.stride.push_back(1), win.base_dilation.push_back(w.stride[d]);
    win.padding.push_back({low, w.in[d] + w.size[d] - 1 - extent - low});
  }
  return reshape(reduce_window(share, like(share, 0), win, add), c.out().dims);
}

}  // namespace

void average_pool(Table& t) {
  t.op("avg_pool2d", [](Call& c) { return forward(c, 2); });
  t.op("avg_pool3d", [](Call& c) { return forward(c, 3); });
  t.op("avg_pool2d_backward", [](Call& c) { return backward(c, 2); });
  t.op("avg_pool3d_backward", [](Call& c) { return backward(c, 3); });
}

}  // namespace tpu::ops
