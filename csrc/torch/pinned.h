// Host memory that is called pinned.
#pragma once

#include <c10/core/Allocator.h>

namespace tpu::torch_shim {

c10::Allocator* pinned_allocator();
/// True for an address inside a block of this allocator.
bool is_pinned(const void* address);

}  // namespace tpu::torch_shim
