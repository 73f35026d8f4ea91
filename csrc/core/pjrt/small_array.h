// An array whose length is known when it is made and which lives on the stack up to N elements: call
// arguments.
#pragma once

#include <cstddef>
#include <memory>

namespace tpu::pjrt {

template <typename T, size_t N>
class SmallArray {
 public:
  explicit SmallArray(size_t size) : size_(size) {
    if (size > N) heap_ = std::make_unique<T[]>(size);
  }
  T* data() { return heap_ ? heap_.get() : stack_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data()[i]; }

 private:
  size_t size_;
  T stack_[N];  // left uninitialised: the caller fills the first `size` elements
  std::unique_ptr<T[]> heap_;
};

}  // namespace tpu::pjrt
