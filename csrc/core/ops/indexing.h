// Reading and writing rows, elements and indexed places of a tensor: the index maths shared by the index,
// embedding and shape families. Indices here are in range already.
#pragma once

#include <optional>
#include <vector>

#include "core/ops/call.h"

namespace tpu::ops {

/// Places in a tensor that `x[i, :, j]` names: index values (integers, one shape) for some dimensions.
struct Places {
  std::vector<int> dims;  // the dimensions with an index
  Values index;           // their indices, all of one shape
  /// Shape of what they select from x: the index's shape stands where the first of adjacent indexed
  /// dimensions was, or in front when they are not adjacent.
  Dims shape(const Dims& x) const;
  /// Position of the index's shape in that.
  int front() const;
};

/// x at the places.
Value read(Value x, const Places& at);
/// x with the places replaced by (combined with) `values`, broadcast to at.shape(). nullptr replaces.
Value write(Value x, const Places& at, Value values, const hlo::Combine& combine);

/// One index for each element, torch.scatter's form: index and source of one shape, smaller than x in other
/// dimensions where it likes.
Value scatter_along(Value x, int dim, Value index, Value source, const hlo::Combine& combine);

/// For each of n positions the number of the run it lies in, -1 before the first: `starts` (1-d, of any
/// integer type, sorted) are where runs begin; a run that begins where the next one does is empty.
/// position_type(n).
Value run_numbers(Call& c, Value starts, int64_t n);

/// The combination for a reduction's name: sum, prod (multiply), amax, amin, mean (a sum; see reduce_places).
/// A sum of bools is their "or".
hlo::Combine combination(const std::string& name, DType dtype);
/// Its neutral element.
Value neutral(hlo::Builder& b, const std::string& name, DType dtype);

/// scatter_reduce and index_reduce: `put(x, source, combine)` scatters. Without `include_self` the touched
/// elements of x do not count. All in x's dtype.
Value reduce_places(Value x, Value source, const std::string& name, bool include_self,
                    const std::function<Value(Value, Value, const hlo::Combine&)>& put);

}  // namespace tpu::ops
