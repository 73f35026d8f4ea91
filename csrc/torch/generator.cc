#include "torch/generator.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <cstring>
#include <map>
#include <mutex>

#include "torch/device.h"
#include "torch/errors.h"

namespace tpu::torch_shim {
namespace {

using State = runtime::Generator::State;

class Generator final : public c10::GeneratorImpl {
 public:
  Generator(int device, std::shared_ptr<runtime::Generator> stream)
      : c10::GeneratorImpl({c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)},
                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        stream_(std::move(stream)) {}

  runtime::Generator& stream() const { return *stream_; }

  void set_current_seed(uint64_t seed) override { stream_->set_state({seed, 0}); }
  uint64_t current_seed() const override { return stream_->state().seed; }
  uint64_t seed() override {
    const uint64_t seed = c10::detail::getNonDeterministicRandom();
    set_current_seed(seed);
    return seed;
  }
  void set_offset(uint64_t offset) override { stream_->set_state({current_seed(), offset}); }
  uint64_t get_offset() const override { return stream_->state().offset; }

  /// A byte tensor: the seed, then the offset, 8 bytes each.
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor bytes(at::detail::empty_cpu({sizeof(State)}, c10::ScalarType::Byte));
    const State state = stream_->state();
    std::memcpy(bytes.mutable_data_ptr(), &state, sizeof state);
    return bytes.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& bytes) override {
    TORCH_CHECK_TYPE(bytes.device().is_cpu() && bytes.dtype() == caffe2::TypeMeta::Make<uint8_t>() &&
                         bytes.is_contiguous(),
                     "RNG state must be a torch.ByteTensor on the CPU");
    TORCH_CHECK(bytes.numel() == sizeof(State), "RNG state of a tpu generator has ", sizeof(State),
                " bytes (seed and offset), got ", bytes.numel());
    State state;
    std::memcpy(&state, bytes.data(), sizeof state);
    stream_->set_state(state);
  }
  /// Shares the state, as CUDA's does: a generator that is given it draws from the same numbers.
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override {
    return c10::make_intrusive<Generator>(device().index(), stream_);
  }
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& other) override {
    auto* same = dynamic_cast<Generator*>(other.get());
    TORCH_CHECK(same, "expected the state of a tpu generator");
    stream_ = same->stream_;
  }

 private:
  c10::GeneratorImpl* clone_impl() const override {
    auto stream = std::make_shared<runtime::Generator>();
    stream->set_state(stream_->state());
    return c10::make_intrusive<Generator>(device().index(), std::move(stream)).release();
  }

  std::shared_ptr<runtime::Generator> stream_;
};

}  // namespace

const at::Generator& default_generator(int device) {
  static std::mutex mutex;
  static auto* generators =
      new std::map<int, at::Generator>;  // never destroyed: Python may hold them at exit
  device = resolve_device(device);
  std::lock_guard lock(mutex);
  auto found = generators->find(device);
  if (found == generators->end()) {
    TORCH_CHECK(device < device_count(), "invalid device ordinal: tpu:", device, " does not exist");
    found = generators->emplace(device, new_generator(device)).first;
  }
  return found->second;
}

at::Generator new_generator(int device) {
  return at::make_generator<Generator>(resolve_device(device), std::make_shared<runtime::Generator>());
}

runtime::Generator& generator_of(const std::optional<at::Generator>& generator, int device) {
  const at::Generator& g = generator && generator->defined() ? *generator : default_generator(device);
  auto* ours = dynamic_cast<Generator*>(g.unsafeGetGeneratorImpl());
  TORCH_CHECK(ours, "Expected a 'tpu' device type for generator but found '", g.device().type(), "'");
  return ours->stream();
}

}  // namespace tpu::torch_shim
