// Max pooling with a fixed window, and its backward. Indices count elements of the input plane.
#include <algorithm>

#include "core/ops/pool.h"

namespace tpu::ops {

using namespace hlo;

namespace {

struct Windows {
  Dims size, stride, padding, dilation, in, out;
};

Windows windows(Call& c, const Dims& in, const Dims& out, int n) {
  const auto ints = [&](const char* name) {
    Dims d = c.ints(name);
    if (d.size() == 1) d.resize(n, d[0]);
    return d;
  };
  Windows w{ints("kernel_size"), ints("stride"), ints("padding"), ints("dilation"), {}, {}};
  if (w.stride.empty()) w.stride = w.size;
  w.in.assign(in.end() - n, in.end());
  w.out.assign(out.end() - n, out.end());
  return w;
}

// [1, in...]: the number of each element in its plane.
Value positions(Builder& b, const Dims& in) {
  Dims dims{1};
  dims.insert(dims.end(), in.begin(), in.end());
  return reshape(iota(b, DType::S32, {hlo::product(in)}, 0), dims);
}

Results forward(Call& c, int n) {
  Value self = c.tensor("self"), x = planes(self, n);
  if (c.out(0).elements() == 0) return {full(c.b, 0, c.out(0)), full(c.b, 0, c.out(1))};
  if (c.lowering.platform == Platform::Cpu) x = convert(x, compute_type(x.dtype()));
  const Windows w = windows(c, x.dims(), c.out(0).dims, n);
  Window win{{1}, {1}, {}, {1}, {{0, 0}}};
  for (int d = 0; d < n; d++) {
    const int64_t end = (w.out[d] - 1) * w.stride[d] - w.padding[d] + (w.size[d] - 1) * w.dilation[d] + 1;
    win.size.push_back(w.size[d]), win.stride.push_back(w.stride[d]), win.dilation.push_back(w.dilation[d]);
    win.padding.push_back({w.padding[d], end - w.in[d]});
  }
  Value at = broadcast_to(positions(c.b, w.in), x.dims());
  Values out = reduce_window({x, at}, {lowest(c.b, x.dtype()), highest(c.b, DType::S32)}, win, larger);
  return {reshape(out[0], c.out(0).dims), reshape(convert(out[1], DType::S64), c.out(1).dims)};
}

// Few enough windows over each element: a term for each of them, which fuses into one loop. Else a scatter.
constexpr int64_t kTerms = 32;

// x along dimension `dim` such that result i is x[i' / stride - back], i' = i + padding; zeros (or `fill`)
// outside.
Value covering(Value x, Value fill, int dim, int64_t in, int64_t stride, int64_t padding, int64_t back) {
  const int64_t first = padding / stride, last = (in - 1 + padding) / stride;  // window numbers before `back`
  Dims low(x.rank(), 0), high(x.rank(), 0);
  low[dim] = back - first, high[dim] = last - back - (x.size(dim) - 1);
  x = hlo::pad(x, fill, low, high);
  if (stride == 1) return x;
  Dims spread = x.dims(), merged = x.dims(), map;
  spread.insert(spread.begin() + dim + 1, stride);
  merged[dim] *= stride;
  for (int i = 0; i < x.rank(); i++) map.push_back(i <= dim ? i : i + 1);
  x = reshape(broadcast_in_dim(x, spread, map), merged);
  return slice_dim(x, dim, padding - first * stride, padding - first * stride + in);
}

Value gather_gradient(Value grad, Value index, const Windows& w) {
  Builder& b = grad.builder();
  const int n = static_cast<int>(w.in.size());
  Dims reach;
  for (int d = 0; d < n; d++) reach.push_back((w.size[d] + w.stride[d] - 1) / w.stride[d]);
  Value at = positions(b, w.in), none = b.constant(-1, DType::S32), zero = like(grad, 0), sum;
  for (int64_t term = 0; term < hlo::product(reach); term++) {
    Value g = grad, i = index;
    int64_t rest = term;
    for (int d = 0; d < n; d++) {
      const int64_t back = rest % reach[d];
      rest /= reach[d];
      g = covering(g, zero, d + 1, w.in[d], w.stride[d], w.padding[d], back);
      i = covering(i, none, d + 1, w.in[d], w.stride[d], w.padding[d], back);
    }
    Value part = select(equal(i, broadcast_to(at, i.dims())), g, full_like(g, 0));
    sum = sum ? sum + part : part;
  }
  return sum;
}

Results backward(Call& c, int n) {
  const DType t = c.compute_dtype();
  Value grad = planes(c.tensor("grad_output", t), n), index = planes(c.tensor("indices", DType::S32), n);
  if (grad.elements() == 0) return full(c.b, 0, c.out());
  const Windows w = windows(c, c.out().dims, grad.dims(), n);
  int64_t terms = 1;
  bool dense = true;
  for (int d = 0; d < n; d++) {
    terms *= (w.size[d] + w.stride[d] - 1) / w.stride[d];
    dense &= w.dilation[d] == 1;
  }
  if (dense && terms <= kTerms) return reshape(gather_gradient(grad, index, w), c.out().dims);
  const int64_t size = hlo::product(w.in), count = hlo::product(w.out);
  const Dims flat{grad.size(0), count};
  return reshape(scatter_planes(reshape(grad, flat), reshape(index, flat), size), c.out().dims);
}

}  // namespace

void fixed_pool(Table& t) {
  t.op("max_pool2d_with_indices", [](Call& c) { return forward(c, 2); });
  t.op("max_pool3d_with_indices", [](Call& c) { return forward(c, 3); });
  t.op("max_pool2d_with_indices_backward", [](Call& c) { return backward(c, 2); });
  t.op("max_pool3d_with_indices_backward", [](Call& c) { return backward(c, 3); });
}

}  // namespace tpu::ops
