// An immutable array on a device, owned. Computed asynchronously: reading waits.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/pjrt/client.h"
#include "core/pjrt/event.h"

namespace tpu::pjrt {

class Buffer {
 public:
  Buffer(std::shared_ptr<Client> client, PJRT_Buffer* buffer, DType dtype, Dims dims, int device);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  PJRT_Buffer* raw() const { return buffer_; }
  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int device() const { return device_; }
  int64_t elements() const;
  /// Logical bytes (elements x element size), not the padded size on the device.
  int64_t bytes() const { return elements() * size_of(dtype_); }

  /// Copies everything, dense row-major, to `host` (bytes() long) and waits. An error of the computation that
  /// made the buffer is thrown here.
  void download(void* host) const;
  /// An event that fires when the buffer has its value.
  Event ready() const;
  /// Waits for the value and throws the error of its computation, if any.
  void wait() const;
  /// The address of the data where the device's memory is host memory and the layout is dense row-major
  /// (XLA's CPU device), else nullptr. Does not wait.
  const void* host_address() const;
  /// A copy on another device of the same client.
  std::unique_ptr<Buffer> copy_to(int device) const;

 private:
  std::shared_ptr<Client> client_;
  PJRT_Buffer* buffer_;
  DType dtype_;
  Dims dims_;
  int device_;
};

}  // namespace tpu::pjrt
