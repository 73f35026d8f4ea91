#include <algorithm>
#include <cmath>

#include "core/ops/indexing.h"
#include "core/ops/order.h"
#include "core/ops/scan.h"
#include "core/ops/table.h"

namespace tpu::ops {

using namespace hlo;

namespace {

enum Mode { kSum, kMean, kMax };

Value flat(Value x) { return reshape(x, {x.elements()}); }

// 1-d index of rows, checked.
Value rows(Call& c, Value index, int64_t count, Code code = Code::Index) {
  return c.index(flat(index), 0, count, false, code);
}

// zeros [count, width] with source[k] added to row index[k].
Value sum_rows(Call& c, Value index, Value source, int64_t count) {
  Value zeros = full(c.b, 0, {source.dtype(), {count, source.size(1)}});
  if (index.elements() == 0 || zeros.elements() == 0) return zeros;
  return write(zeros, {{0}, {index}}, source, add);
}

// How often each row is used: s32 [count].
Value uses(Call& c, Value index, int64_t count) {
  Value one = full(c.b, 1, {DType::S32, index.dims()});
  return squeeze(sum_rows(c, index, unsqueeze(one, 1), count), 1);
}

// Divides each gradient row by how often its index occurs.
Value by_frequency(Call& c, Value grad, Value index, int64_t count) {
  Value times = take_rows(uses(c, index, count), index);
  return grad / unsqueeze(convert(times, grad.dtype()), 1);
}

// embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
Results embedding_backward(Call& c) {
  const DType t = c.compute_dtype();
  const int64_t count = c.integer("num_weights"), padding = c.integer("padding_idx");
  Value index = rows(c, c.tensor("indices"), count);
  Value grad = reshape(c.tensor("grad_output", t), {index.elements(), c.out().dims[1]});
  if (index.elements() == 0) return full(c.b, 0, c.out());
  if (c.flag("scale_grad_by_freq")) grad = by_frequency(c, grad, index, count);
  if (padding >= 0) {
    Value counts = not_equal(index, c.b.constant(padding, index.dtype()));
    grad = select(unsqueeze(counts, 1), grad, like(grad, 0));
  }
  return sum_rows(c, index, grad, count);
}

// The indices of an embedding bag, cut into bags.
struct Bags {
  Value index;    // [n], in range
  Value starts;   // [count] position_type(n): where each bag begins
  Value bag;      // [n]: the bag of each
  Value counted;  // [n] bool: not padding
  int64_t n, count;

  // How many indices each bag has, padding included.
  Value lengths() const {
    Value all = starts.builder().constant(n, starts.dtype());
    return pad(slice(starts, {1}, {count}), all, {0}, {1}) - starts;
  }
};

Value counted(Call& c, Value index) {
  const int64_t padding = c.integer("padding_idx");
  return padding < 0 ? full(c.b, 1, {DType::Bool, index.dims()})
                     : not_equal(index, c.b.constant(padding, index.dtype()));
}

Bags bags(Call& c, int64_t rows_of_weight) {
  Value given = c.tensor("indices");
  Bags out;
  out.index = rows(c, given, rows_of_weight, Code::InvalidArgument);
  out.n = out.index.elements();
  Value offsets = c.tensor("offsets");
  const bool last = c.flag("include_last_offset");
  out.count = offsets.elements() - (last ? 1 : 0);
  Value most = c.b.constant(out.n, offsets.dtype());
  out.starts = convert(minimum(slice(offsets, {0}, {out.count}), most), position_type(out.n));
  out.bag = run_numbers(c, out.starts, out.n);
  out.counted = counted(c, out.index);
  return out;
}

// The sum of each bag's rows, [count, width]. Step by step, the k-th row of all bags at once: there are as
// many steps as the longest bag has rows, so a bag above the average length counts as several ones.
Value sum_bags(Call& c, const Bags& in, Value table, std::optional<Value> weights, DType t) {
  const int64_t n = in.n, count = in.count, width = table.size(1);
  const int64_t most = std::max<int64_t>((n + count - 1) / count, 8), parts = count + n / most;
  const DType p = in.starts.dtype();
  const auto number = [&](int64_t v) { return c.b.constant(v, p); };
  Value lengths = in.lengths();
  Value needed = maximum((lengths + number(most - 1)) / number(most), number(1));
  Value first = scan_along(needed, 0, add) - needed;  // of the parts of a bag
  Value bag = convert(run_numbers(c, first, parts), p);
  Value before = (iota(c.b, p, {parts}, 0) - take_rows(first, bag)) * number(most);
  Value start = take_rows(in.starts, bag) + before;
  Value length = minimum(take_rows(lengths, bag) - before, number(most));

  Values state{
      number(0), reduce_max(length, {0}), full(c.b, 0, {t, {parts, width}}), start, length, table, in.index,
      in.counted};
  if (weights) state.push_back(*weights);
  const Values sums = while_loop(
      state, [](const Values& v) { return v[0] < v[1]; },
      [n](const Values& v) -> Values {
        Value at = minimum(v[3] + v[0], v[0].builder().constant(n - 1, v[0].dtype()));
        Value row = convert(take_rows(v[5], take_rows(v[6], at)), v[2].dtype());
        if (v.size() > 8) row = row * unsqueeze(take_rows(v[8], at), 1);
        Value more = (v[0] < v[4]) & take_rows(v[7], at);
        Values next = v;
        next[0] = v[0] + like(v[0], 1), next[2] = v[2] + select(unsqueeze(more, 1), row, like(row, 0));
        return next;
      });
  return write(full(c.b, 0, {t, {count, width}}), {{0}, {bag}}, sums[2], add);
}

// _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
// include_last_offset, padding_idx) -> (output, offset2bag, bag_size, max_indices)
Results embedding_bag(Call& c) {
  const Value table = c.tensor("weight");
  const DType t = compute_type(table.dtype());
  const int64_t width = table.size(1), mode = c.integer("mode");
  const Bags in = bags(c, table.size(0));
  const int64_t n = in.n, count = in.count;
  const Places to{{0}, {maximum(in.bag, like(in.bag, 0))}};
  Value size = full(c.b, 0, {DType::S32, {count}}), output = full(c.b, 0, {t, {count, width}}), winner;
  if (n > 0 && count > 0) {
    size = c.integer("padding_idx") < 0 ? convert(in.lengths(), DType::S32)
                                        : write(size, to, convert(in.counted, DType::S32), add);
    if (mode != kMax) {
      output = sum_bags(c, in, table, c.maybe("per_sample_weights", t), t);
    } else {
      Value picked = convert(take_rows(table, in.index), t);
      Value keep = broadcast_to(unsqueeze(in.counted, 1), picked.dims());
      Value best = write(full(c.b, -INFINITY, output.type()), to,
                         select(keep, picked, like(picked, -INFINITY)), maximum);
      Value some = unsqueeze(size > 0.0, 1);
      output = select(some, best, like(best, 0));
      // The first index of the bag that has the largest value.
      Value place = broadcast_to(iota(c.b, DType::S64, {n, 1}, 0), {n, width});
      Value mine = take_rows(output, to.index[0]);
      Value hit = keep & (equal(picked, mine) | (is_nan(picked) & is_nan(mine)));
      Value none = c.b.constant(n, DType::S64);
      Value first = write(broadcast_to(none, {count, width}), to, select(hit, place, none), minimum);
      Value at = flat(minimum(first, c.b.constant(n - 1, DType::S64)));
      Value index = reshape(take_rows(convert(in.index, DType::S64), at), {count, width});
      winner = select(some, index, c.b.constant(-1, DType::S64));
    }
  }
  if (mode == kMean) output = output / unsqueeze(convert(maximum(size, like(size, 1)), t), 1);
  // The three tables of the backward, in the forms PyTorch's shapes ask for.
  const auto fit = [&c](Value x, int i) {
    const Type& want = c.out(i);
    if (x.dims() == want.dims) return x;
    if (x.rank() == want.rank() && x.rank() == 1)
      return pad(x, like(x, 0), {0}, {want.dims[0] - x.dims()[0]});
    return full(c.b, 0, {x.dtype(), want.dims});
  };
  if (mode != kMax || n == 0 || count == 0) winner = full(c.b, 0, {DType::S64, {count}});
  return {output, fit(in.bag, 1), fit(size, 2), fit(winner, 3)};
}

// _embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, maximum_indices, num_weights,
// scale_grad_by_freq, mode, per_sample_weights, padding_idx)
Results embedding_bag_backward(Call& c) {
  const DType t = c.compute_dtype();
  const int64_t count = c.integer("num_weights"), mode = c.integer("mode");
  Value grad = c.tensor("grad", t);
  const int64_t width = grad.size(1);
  if (grad.elements() == 0) return full(c.b, 0, c.out());
  if (mode == kMax) {
    // Each element of a bag's gradient goes to the row that gave the maximum.
    Value winner = convert(c.tensor("maximum_indices"), DType::S64);
    Value column = broadcast_to(iota(c.b, DType::S64, {1, width}, 1), winner.dims());
    Value some = winner >= 0.0;
    Value row = maximum(winner, like(winner, 0));
    return write(full(c.b, 0, {t, {count, width}}), {{0, 1}, {row, column}},
                 select(some, grad, like(grad, 0)), add);
  }
  Value index = rows(c, c.tensor("indices"), count);
  if (index.elements() == 0) return full(c.b, 0, c.out());
  Value bag = c.tensor("offset2bag");
  Value mine = take_rows(grad, bag);
  if (auto weights = c.maybe("per_sample_weights", t)) mine = mine * unsqueeze(*weights, 1);
  if (mode == kMean) {
    Value size = take_rows(c.tensor("bag_size"), bag);
    mine = mine / unsqueeze(convert(maximum(size, like(size, 1)), t), 1);
  }
  mine = select(unsqueeze(counted(c, index), 1), mine, like(mine, 0));
  if (c.flag("scale_grad_by_freq")) mine = by_frequency(c, mine, index, count);
  return sum_rows(c, index, mine, count);
}

// d output / d per_sample_weights: grad[bag] . weight[index], for mode sum.
Results per_sample_weights_backward(Call& c) {
  const DType t = c.compute_dtype();
  Value grad = c.tensor("grad", t), table = c.tensor("weight", t);
  Value index = rows(c, c.tensor("indices"), table.size(0));
  if (index.elements() == 0) return full(c.b, 0, c.out());
  Value bag;
  if (c.tensor("offset2bag").elements() == index.elements()) {
    bag = c.tensor("offset2bag");
  } else {
    Value offsets = c.tensor("offsets");
    bag = run_numbers(c, offsets, index.elements());
  }
  Value out = reduce_sum(take_rows(grad, bag) * take_rows(table, index), {1});
  return select(counted(c, index), out, like(out, 0));
}

// embedding_renorm_(self, indices, max_norm, norm_type): rows used whose norm is above max_norm are scaled to
// it.
Results renorm(Call& c) {
  const DType own = c.dtype_of("self"), t = compute_type(own);
  Value self = c.tensor("self", t), index = rows(c, c.tensor("indices"), self.size(0));
  if (index.elements() == 0) return c.tensor("self");
  const double p = c.number("norm_type");
  Value size = abs(self), norm;
  if (p == 2)
    norm = sqrt(reduce_sum(self * self, {1}));
  else if (p == 1)
    norm = reduce_sum(size, {1});
  else if (std::isinf(p))
    norm = reduce_max(size, {1});
  else
    norm = power(reduce_sum(power(size, like(size, p)), {1}), like(size, 1 / p));
  Value limit = c.scalar("max_norm", t);
  Value used = uses(c, index, self.size(0)) > 0.0;
  Value scale = limit / (norm + 1e-7);
  return select(unsqueeze(used & (norm > limit), 1), self * unsqueeze(scale, 1), self);
}

}  // namespace

void embedding(Table& t) {
  // weight[indices]; padding_idx matters to the gradient only
  t.op("embedding", [](Call& c) -> Results {
    Value table = c.tensor("weight"), index = c.index(c.tensor("indices"), 0, table.size(0));
    return read(table, {{0}, {index}});
  });
  t.op("embedding_dense_backward", embedding_backward);
  t.op("_embedding_bag _embedding_bag_forward_only", embedding_bag);
  t.op("_embedding_bag_dense_backward", embedding_bag_backward);
  t.op("_embedding_bag_per_sample_weights_backward", per_sample_weights_backward);
  t.op("embedding_renorm_ embedding_renorm", renorm, {.fixed = {"norm_type"}});
}

}  // namespace tpu::ops
