// A compiled program that is not loaded on a device: what it needs, what it costs, and its bytes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/pjrt/client.h"

namespace tpu::pjrt {

/// Device memory of one run, by the compiler's account. Peak is the most that is live at once, arguments and
/// results included and code excluded; 0 from a plugin that does not tell.
struct ProgramStats {
  int64_t code_bytes = 0, argument_bytes = 0, output_bytes = 0, alias_bytes = 0, temp_bytes = 0,
          peak_bytes = 0;
};

class Compiled {
 public:
  /// Takes ownership of `program`.
  Compiled(const Plugin& plugin, PJRT_Executable* program);
  ~Compiled();
  Compiled(Compiled&& other) noexcept;
  Compiled& operator=(Compiled&&) = delete;

  struct Output {
    DType dtype;
    Dims dims;
  };
  int num_outputs() const;
  /// nullopt when the plugin cannot tell.
  std::optional<std::vector<Output>> outputs() const;
  /// Bytes that Client::deserialize loads again.
  std::string serialize() const;
  /// nullopt when the plugin gives none.
  std::optional<ProgramStats> stats() const;
  /// The compiler's estimates by XLA's names ("flops", "bytes accessed", "optimal_seconds"); empty when the
  /// plugin gives none.
  std::map<std::string, double> cost() const;
  /// nullopt when the plugin gives none.
  std::optional<std::string> fingerprint() const;

 private:
  const Plugin* plugin_;  // never unloaded
  PJRT_Executable* program_;
};

}  // namespace tpu::pjrt
