// The few fields of xla.CompileOptionsProto the core sets, in protobuf's wire format, so that no protobuf
// library is needed.
#include <bit>
#include <cstring>
#include <string_view>

#include "core/base/error.h"
#include "core/pjrt/client.h"

namespace tpu::pjrt {
namespace {

class Message {
 public:
  void integer(int field, int64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(static_cast<uint64_t>(value));
  }
  void number(int field, double value) {
    varint(static_cast<uint64_t>(field) << 3 | 1);
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(bits >> shift);
  }
  void bytes(int field, std::string_view value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const Message& value) { bytes(field, value.bytes_); }
  const std::string& text() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// xla.DeviceAssignmentProto: one list of replicas for each partition.
Message assignment(const CompileOptions& options) {
  const int replicas = options.num_replicas, partitions = options.num_partitions;
  if (options.device_ids.size() != static_cast<size_t>(replicas) * partitions)
    throw Error(Code::InvalidArgument, "compile",
                text("a program for ", replicas, " replicas x ", partitions, " partitions needs ",
                     replicas * partitions, " device ids, got ", options.device_ids.size()));
  Message all;
  all.integer(1, replicas);
  all.integer(2, partitions);
  for (int partition = 0; partition < partitions; ++partition) {
    Message ids;
    for (int replica = 0; replica < replicas; ++replica)
      ids.integer(1, options.device_ids[replica * partitions + partition]);
    all.message(3, ids);
  }
  return all;
}

// xla.OptionOverrideProto. Presence counts in a oneof, so zero and false are written too.
Message override_of(const Option& option) {
  Message value;
  if (const auto* integer = std::get_if<int64_t>(&option)) value.integer(3, *integer);
  if (const auto* flag = std::get_if<bool>(&option)) value.integer(2, *flag);
  if (const auto* number = std::get_if<float>(&option)) value.number(4, *number);
  if (const auto* string = std::get_if<std::string>(&option)) value.bytes(1, *string);
  return value;
}

}  // namespace

std::string CompileOptions::serialize() const {
  const bool many = num_replicas * num_partitions > 1;
  if (many && portable)
    throw Error(Code::InvalidArgument, "compile", "a program for several devices cannot be portable");
  Message build;  // xla.ExecutableBuildOptionsProto
  build.integer(4, num_replicas);
  build.integer(5, num_partitions);
  if (num_partitions > 1) build.integer(6, true);
  if (!portable && !device_ids.empty()) build.message(9, assignment(*this));

  Message all;
  all.message(3, build);
  if (portable) all.integer(4, true);
  for (const auto& [name, option] : overrides) {
    Message entry;
    entry.bytes(1, name);
    entry.message(2, override_of(option));
    all.message(7, entry);
  }
  return all.text();
}

}  // namespace tpu::pjrt
