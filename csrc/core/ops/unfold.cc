// Rearrangements of image elements: im2col, col2im, pixel and channel shuffles.
#include <algorithm>

#include "core/ops/resample.h"
#include "core/ops/taps.h"

namespace tpu::ops {

using namespace hlo;

namespace {

// Kernel offset and window number, in this order, to the element; padding has no taps.
Taps patches(int64_t in, int64_t size, int64_t dilation, int64_t padding, int64_t stride) {
  Taps t{in, {}};
  const int64_t count = (in + 2 * padding - dilation * (size - 1) - 1) / stride + 1;
  for (int64_t k = 0; k < size; k++)
    for (int64_t i = 0; i < count; i++) {
      const int64_t at = i * stride - padding + k * dilation;
      t.rows.emplace_back();
      if (at >= 0 && at < in) t.rows.back().push_back({at, 1});
    }
  return t;
}

Taps patches(Call& c, int d, int64_t in) {
  const auto at = [&](const char* name) {
    const Dims v = c.ints(name);
    return v[v.size() == 1 ? 0 : d];
  };
  return patches(in, at("kernel_size"), at("dilation"), at("padding"), at("stride"));
}

int64_t kernel(Call& c, int d) {
  const Dims v = c.ints("kernel_size");
  return v[v.size() == 1 ? 0 : d];
}

// [N, C, H, W] -> [N, C kh kw, L]
Results im2col(Call& c) {
  Value x = c.tensor("self");
  if (x.rank() == 3) x = unsqueeze(x, 0);
  if (c.out().elements() == 0) return full(c.b, 0, c.out());
  const int64_t n = x.size(0), channels = x.size(1), kh = kernel(c, 0), kw = kernel(c, 1);
  x = apply(c, apply(c, x, 3, patches(c, 1, x.size(3))), 2, patches(c, 0, x.size(2)));
  x = reshape(x, {n, channels, kh, x.size(2) / kh, kw, x.size(3) / kw});
  return reshape(transpose(x, {0, 1, 2, 4, 3, 5}), c.out().dims);
}

// [N, C kh kw, L] -> [N, C, H, W], adding up what overlaps.
Results col2im(Call& c) {
  Value x = c.tensor("self", c.compute_dtype());
  if (x.rank() == 2) x = unsqueeze(x, 0);
  if (x.elements() == 0 || c.out().elements() == 0) return full(c.b, 0, c.out());
  const Dims size = c.ints("output_size");
  const Taps h = patches(c, 0, size[0]), w = patches(c, 1, size[1 % size.size()]);
  const int64_t n = x.size(0), kh = kernel(c, 0), kw = kernel(c, 1), channels = x.size(1) / (kh * kw);
  x = transpose(reshape(x, {n, channels, kh, kw, h.out() / kh, w.out() / kw}), {0, 1, 2, 4, 3, 5});
  x = reshape(x, {n, channels, h.out(), w.out()});
  x = apply(c, apply(c, x, 2, h.transposed()), 3, w.transposed());
  return reshape(x, c.out().dims);
}

Dims leading(Value x, int kept) { return Dims(x.dims().begin(), x.dims().end() - kept); }

Value rearrange(Value x, Dims lead, const Dims& split, const Dims& order, const Dims& result) {
  Dims dims = lead, permutation;
  dims.insert(dims.end(), split.begin(), split.end());
  const int64_t shift = static_cast<int64_t>(lead.size());
  for (int64_t i = 0; i < shift; i++) permutation.push_back(i);
  for (int64_t i : order) permutation.push_back(shift + i);
  return reshape(transpose(reshape(x, dims), permutation), result);
}

}  // namespace

void unfold(Table& t) {
  t.op("im2col", im2col);
  t.op("col2im", col2im);
  // [.., C r r, H, W] -> [.., C, H r, W r]
  t.op("pixel_shuffle", [](Call& c) -> Results {
    Value x = c.tensor("self");
    const int64_t r = c.integer("upscale_factor");
    return rearrange(x, leading(x, 3), {x.size(-3) / (r * r), r, r, x.size(-2), x.size(-1)}, {0, 3, 1, 4, 2},
                     c.out().dims);
  });
  t.op("pixel_unshuffle", [](Call& c) -> Results {
    Value x = c.tensor("self");
    const int64_t r = c.integer("downscale_factor");
    return rearrange(x, leading(x, 3), {x.size(-3), x.size(-2) / r, r, x.size(-1) / r, r}, {0, 2, 4, 1, 3},
                     c.out().dims);
  });
  // [N, g C', ...] -> [N, C' g, ...]
  t.op("channel_shuffle", [](Call& c) -> Results {
    Value x = c.tensor("self");
    const int64_t groups = c.integer("groups"), n = x.size(0), channels = x.size(1);
    const int64_t rest = hlo::product(std::span(x.dims()).subspan(2));
    return rearrange(x, {n}, {groups, channels / groups, rest}, {1, 0, 2}, c.out().dims);
  });
}

}  // namespace tpu::ops
