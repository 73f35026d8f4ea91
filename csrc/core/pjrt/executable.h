// A compiled and loaded program.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/pjrt/buffer.h"
#include "core/pjrt/compiled.h"
#include "core/pjrt/event.h"

namespace tpu::pjrt {

class Executable {
 public:
  /// Takes ownership of `executable`, also when it throws.
  Executable(std::shared_ptr<Client> client, PJRT_LoadedExecutable* executable);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  /// Launches on one device of the client; returns before the work is done. Which arguments are donated was
  /// decided when the program was compiled (its aliasing attributes); a donated buffer must not be used
  /// again. Outputs are in program order.
  std::vector<std::unique_ptr<Buffer>> execute(std::span<Buffer* const> arguments, int device) const;
  /// The same without allocation: `outputs` is cleared and filled. `keep` lists argument indices that must
  /// NOT be donated although the program allows it. The event fires when the work is done and carries its
  /// error.
  Event execute(std::span<Buffer* const> arguments, int device, std::span<const int64_t> keep,
                std::vector<std::unique_ptr<Buffer>>& outputs) const;

  int num_outputs() const { return static_cast<int>(num_outputs_); }
  /// What was compiled: its bytes and figures.
  const Compiled& compiled() const { return *program_; }

 private:
  void describe();
  void destroy() noexcept;

  std::shared_ptr<Client> client_;
  PJRT_LoadedExecutable* executable_;
  std::optional<Compiled> program_;
  size_t num_outputs_ = 0;
  std::vector<Compiled::Output> outputs_;  // empty when the plugin cannot tell before a run
};

}  // namespace tpu::pjrt
