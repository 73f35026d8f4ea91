// Views that reinterpret a storage's bytes as another dtype (view(dtype), view_as_real, view_as_complex).
// Both types are taken apart into units, the narrower of the two; an element of k > 1 units gets one more,
// innermost dimension of size k.
#pragma once

#include "core/view/recipe.h"

namespace tpu::view {

/// The type both can be taken apart into.
DType common_unit(DType a, DType b);
/// [dims] of any type to [dims, k] of the unit (or [dims] when one unit makes one element).
hlo::Value to_units(hlo::Value x, DType unit);
/// The inverse.
hlo::Value from_units(hlo::Value x, DType dtype);
/// The layout in units: of cell and tensor alike.
Layout in_units(const Layout& layout, DType unit);

}  // namespace tpu::view
