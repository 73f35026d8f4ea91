// A compiled and loaded program.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/pjrt/buffer.h"
#include "core/pjrt/event.h"

namespace tpu::pjrt {

struct ProgramStats {
  int64_t code_bytes = 0, argument_bytes = 0, output_bytes = 0, alias_bytes = 0, temp_bytes = 0;
};

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
  /// Bytes that Client::deserialize loads again.
  std::string serialize() const;
  /// Compiler's memory figures; nullopt when the plugin gives none.
  std::optional<ProgramStats> stats() const;
  /// Hash of the program, as the plugin gives it ("" when it gives none).
  std::string fingerprint() const;

 private:
  struct Output {
    DType dtype;
    Dims dims;
  };
  void describe();
  void destroy() noexcept;

  std::shared_ptr<Client> client_;
  PJRT_LoadedExecutable* executable_;
  PJRT_Executable* program_ = nullptr;
  size_t num_outputs_ = 0;
  std::vector<Output> outputs_;  // empty when the plugin cannot tell before a run
};

}  // namespace tpu::pjrt
