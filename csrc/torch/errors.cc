#include "torch/errors.h"

namespace tpu::torch_shim {

void rethrow(const Error& e) {
  const char* what = e.what();
  switch (e.code) {
    case Code::Index:
      TORCH_CHECK_INDEX(false, what);
    case Code::Value:
      TORCH_CHECK_VALUE(false, what);
    case Code::Type:
      TORCH_CHECK_TYPE(false, what);
    case Code::Unimplemented:
      TORCH_CHECK_NOT_IMPLEMENTED(false, what);
    case Code::OutOfMemory:
      TORCH_CHECK_WITH(OutOfMemoryError, false, what);
    default:
      TORCH_CHECK(false, what);
  }
}

}  // namespace tpu::torch_shim
