// A device array with its memory accounted for, and the cell that a storage holds it in.
#pragma once

#include <memory>

#include "core/hlo/type.h"
#include "core/pjrt/buffer.h"

namespace tpu::runtime {

class Device;

/// A PJRT buffer counted in its device's memory statistics. Shared: by the cell that holds it and by events
/// in flight.
class Array {
 public:
  Array(std::unique_ptr<pjrt::Buffer> buffer, Device& device);
  ~Array();
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  pjrt::Buffer& buffer() const { return *buffer_; }
  Device& device() const { return device_; }

 private:
  std::unique_ptr<pjrt::Buffer> buffer_;
  Device& device_;
  int64_t bytes_;
};

using ArrayPtr = std::shared_ptr<Array>;

/// What a storage points to. A write swaps `array`, so every view of the storage follows. Before the first
/// write there is no array: `type` then says how the storage was asked for, and memory is taken when it is
/// needed.
struct Cell {
  int device;
  hlo::Type type;  // of the array, or of the array to come
  ArrayPtr array;

  /// The array; made of zeros when nothing was written yet.
  const ArrayPtr& materialize();
};

}  // namespace tpu::runtime
