// Convolutions of 1, 2 and 3 spatial dimensions, transposed or not, and their backwards.
//
// Everything is one of three maps, each linear in both operands: `forward` (x, w -> y), `input_gradient`
// (y, w -> x) and `weight_gradient` (x, y -> w). A transposed convolution is input_gradient, and its backward
// the other two.
#include <algorithm>
#include <numeric>

#include "core/ops/contract.h"
#include "core/ops/conv_layout.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

struct Geometry {
  Dims stride, padding, dilation;
  int64_t groups;
  size_t spatial() const { return stride.size(); }
};

// Dims of one entry stand for every spatial dimension.
Geometry geometry(Call& c, size_t spatial) {
  const auto ints = [&](const char* name) {
    Dims d = c.ints(name);
    if (d.size() == 1) d.resize(spatial, d[0]);
    return d;
  };
  return {ints("stride"), ints("padding"), ints("dilation"), c.integer("groups")};
}

Value zeros(Value like, const Dims& dims) { return full(like.builder(), 0, Type{like.dtype(), dims}); }

bool empty(Value x, Value y, const Dims& result) {
  return x.elements() == 0 || y.elements() == 0 || hlo::product(result) == 0;
}

// The size of y for x and w.
Dims output_size(Value x, Value w, const Geometry& g) {
  Dims out;
  for (size_t i = 0; i < g.spatial(); i++) {
    const int64_t room = x.size(2 + i) + 2 * g.padding[i] - g.dilation[i] * (w.size(2 + i) - 1) - 1;
    out.push_back(room / g.stride[i] + 1);
  }
  return out;
}

// x [N, C, in...], w [O, C/g, k...] -> [N, O, out...] of the given spatial sizes.
Value forward(Call& c, Value x, Value w, const Geometry& g, const Dims& out) {
  Dims result{x.size(0), w.size(0)};
  result.insert(result.end(), out.begin(), out.end());
  if (empty(x, w, result)) return zeros(x, result);
  SpatialWindow win;
  const Dims natural = output_size(x, w, g);
  for (size_t i = 0; i < g.spatial(); i++) {
    // A transposed convolution's output padding may leave room for windows that are not wanted.
    const int64_t surplus = (natural[i] - out[i]) * g.stride[i];
    win.padding.push_back({g.padding[i], g.padding[i] - surplus});
  }
  win.stride = g.stride, win.kernel_dilation = g.dilation, win.input_dilation = Dims(g.spatial(), 1);
  return convolve(c, x, w, win, g.groups);
}

// y [N, O, out...], w [O, C/g, k...] -> [N, C, in...]: the gradient of x, or the transposed convolution of y.
Value input_gradient(Call& c, Value y, Value w, const Geometry& g, const Dims& in) {
  const int64_t per_group = w.size(1), outs = w.size(0) / std::max<int64_t>(g.groups, 1);
  Dims result{y.size(0), per_group * g.groups};
  result.insert(result.end(), in.begin(), in.end());
  if (empty(y, w, result)) return zeros(y, result);
  SpatialWindow win;
  Dims flipped;
  for (size_t i = 0; i < g.spatial(); i++) {
    const int64_t reach = g.dilation[i] * (w.size(2 + i) - 1), low = reach - g.padding[i];
    const int64_t extent = (y.size(2 + i) - 1) * g.stride[i] + 1;
    win.padding.push_back({low, in[i] - extent - low + reach});
    if (w.size(2 + i) > 1) flipped.push_back(2 + i);
  }
  win.stride = Dims(g.spatial(), 1), win.kernel_dilation = g.dilation, win.input_dilation = g.stride;
  // [g O', C', k] -> [g C', O', k]
  Dims split = w.dims(), merged = w.dims();
  split[0] = outs, split.insert(split.begin(), g.groups);
  merged[0] = per_group * g.groups, merged[1] = outs;
  w = reshape(swap_dims(reshape(reverse(w, flipped), split), 1, 2), merged);
  return convolve(c, y, w, win, g.groups);
}

// x [N, C, in...], y [N, O, out...] -> [O, C/g, k...]: the gradient of w.
Value weight_gradient(Call& c, Value x, Value y, const Geometry& g, const Dims& kernel) {
  Dims result{y.size(1), x.size(1) / std::max<int64_t>(g.groups, 1)};
  result.insert(result.end(), kernel.begin(), kernel.end());
  if (empty(x, y, result)) return zeros(x, result);
  SpatialWindow win;
  for (size_t i = 0; i < g.spatial(); i++) {
    const int64_t reach = g.dilation[i] * (kernel[i] - 1), extent = (y.size(2 + i) - 1) * g.stride[i] + 1;
    win.padding.push_back({g.padding[i], reach + extent - x.size(2 + i) - g.padding[i]});
  }
  // The window steps by the dilation and its taps, the gradient's positions, are a stride apart.
  win.stride = g.dilation, win.kernel_dilation = g.stride, win.input_dilation = Dims(g.spatial(), 1);
  return correlate(c, x, y, win, g.groups);
}

Dims spatial_of(Value x) { return Dims(x.dims().begin() + 2, x.dims().end()); }

// The size of a transposed convolution's result.
Dims transposed_size(Value x, Value w, const Geometry& g, const Dims& output_padding) {
  Dims out;
  for (size_t i = 0; i < g.spatial(); i++)
    out.push_back((x.size(2 + i) - 1) * g.stride[i] - 2 * g.padding[i] + g.dilation[i] * (w.size(2 + i) - 1) +
                  output_padding[output_padding.size() == 1 ? 0 : i] + 1);
  return out;
}

Results convolution(Call& c) {
  Value x = c.tensor("input");
  const DType kept = x.dtype(), t = conv_type(c, kept);
  x = convert(x, t);
  Value w = c.tensor("weight", t);
  const Geometry g = geometry(c, w.rank() - 2);
  Value y = c.flag("transposed")
                ? input_gradient(c, x, w, g, transposed_size(x, w, g, c.ints("output_padding")))
                : forward(c, x, w, g, output_size(x, w, g));
  if (c.has("bias")) {
    Dims dims(y.rank(), 1);
    dims[1] = y.size(1);
    y = y + reshape(c.tensor("bias", t), dims);
  }
  return convert(y, kept);
}

Results convolution_backward(Call& c) {
  Value grad = c.tensor("grad_output");
  const DType kept = grad.dtype(), t = conv_type(c, kept);
  grad = convert(grad, t);
  Value x = c.tensor("input", t), w = c.tensor("weight", t);
  const Geometry g = geometry(c, w.rank() - 2);
  const bool transposed = c.flag("transposed");
  const std::vector<bool> wanted = c.flags("output_mask");
  Values out(3);
  if (wanted[0])
    out[0] =
        transposed ? forward(c, grad, w, g, spatial_of(x)) : input_gradient(c, grad, w, g, spatial_of(x));
  if (wanted[1])
    out[1] = transposed ? weight_gradient(c, grad, x, g, spatial_of(w))
                        : weight_gradient(c, x, grad, g, spatial_of(w));
  if (wanted[2]) {
    Dims dims(grad.rank() - 1);
    std::iota(dims.begin(), dims.end(), 1);
    dims[0] = 0;
    out[2] = fast_sum(c, convert(grad, compute_type(kept)), dims);
  }
  for (Value& v : out)
    if (v) v = convert(v, kept);
  return out;
}

}  // namespace

void conv(Table& t) {
  t.op("convolution_overrideable", convolution, {.infer = true});
  t.op("convolution_backward_overrideable", convolution_backward, {.infer = true});
  // Time first: self [T, N, C], weight [k, C, O]; stride 1.
  t.op("conv_tbc",
       [](Call& c) -> Results {
         Value x = c.tensor("self");
         const DType kept = x.dtype(), t = conv_type(c, kept);
         Value w = transpose(c.tensor("weight", t), {2, 1, 0});
         x = transpose(convert(x, t), {1, 2, 0});
         const Geometry g{{1}, {c.integer("pad")}, {1}, 1};
         Value y = transpose(forward(c, x, w, g, output_size(x, w, g)), {2, 0, 1});
         return convert(y + c.tensor("bias", t), kept);
       },
       {.infer = true});
}

}  // namespace tpu::ops
