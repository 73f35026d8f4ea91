#include "torch/engine.h"

#include <ATen/native/Resize.h>

#include <map>
#include <mutex>

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/cache/lru.h"
#include "core/runtime/runtime.h"
#include "torch/checks.h"
#include "torch/convert.h"
#include "torch/device.h"
#include "torch/errors.h"
#include "torch/formats.h"
#include "torch/frame.h"
#include "torch/generator.h"
#include "torch/meta.h"
#include "torch/storage.h"

namespace tpu::torch_shim {
namespace {

/// A program of one operator and the tensors its new arrays become.
struct Entry {
  std::shared_ptr<const runtime::Program> program;  // nullptr: these arguments have no decomposition
  std::vector<Expected> results;  // of new tensors, in order; none for an operator that only writes
};

cache::Lru<Entry>& programs() {
  static auto* lru = new cache::Lru<Entry>(static_cast<size_t>(env::get_int("TORCH_TPU_CACHE_ENTRIES")));
  return *lru;
}

/// Frames are reused: their buffers stay warm. Calls nest (a Meta kernel may come back here), so there is a
/// stack of them.
class FrameLease {
 public:
  FrameLease() {
    if (depth == frames.size()) frames.push_back(std::make_unique<Frame>());
    frame_ = frames[depth++].get();
  }
  ~FrameLease() { depth--; }
  Frame& operator*() const { return *frame_; }

 private:
  static thread_local std::vector<std::unique_ptr<Frame>> frames;
  static thread_local size_t depth;
  Frame* frame_;
};
thread_local std::vector<std::unique_ptr<Frame>> FrameLease::frames;
thread_local size_t FrameLease::depth = 0;

std::string signature(const OpPlan& plan, const c10::Stack& stack) {
  std::string out = plan.name + "(";
  const size_t base = stack.size() - plan.arguments.size();
  for (size_t i = 0; i < plan.arguments.size(); i++) {
    const c10::IValue& v = stack[base + i];
    if (i) out += ", ";
    if (v.isTensor() && v.toTensor().defined())
      out += text(plan.arguments[i].name, ": ", v.toTensor().scalar_type(), hlo::str(v.toTensor().sizes()));
    else if (v.isTensorList())
      out += text(plan.arguments[i].name, ": ", v.toListRef().size(), " tensors");
    else
      out += plan.arguments[i].name;
  }
  return out + ")";
}

// The overload's own Meta kernel has checked its arguments: out tensors take the form it gave them.
bool take_forms(const OpPlan& plan, const c10::Stack& stack, const std::vector<Expected>& forms,
                const std::optional<std::vector<Expected>>& results) {
  bool resized = false;
  size_t next = 0;
  const size_t base = stack.size() - plan.arguments.size();
  for (int target : plan.targets) {
    for (const at::Tensor& t : tensors_of(stack[base + target])) {
      const Expected& form = forms.at(next);
      const Expected* result = results && next < results->size() ? &results->at(next) : nullptr;
      next++;
      // Some Meta kernels of in-place operators written in Python do not look at the dtype.
      if (result && result->dtype != c10::ScalarType::Undefined && t.defined() &&
          !plan.arguments[target].is_out)
        TORCH_CHECK(c10::canCast(result->dtype, t.scalar_type()), "result type ", result->dtype,
                    " can't be cast to the desired output type ", t.scalar_type());
      if (!t.defined() || !plan.arguments[target].is_out || t.sizes() == c10::IntArrayRef(form.sizes))
        continue;
      t.resize_(form.sizes);
      if (!form.contiguous) t.unsafeGetTensorImpl()->set_sizes_and_strides(form.sizes, form.strides);
      resized = true;
    }
  }
  return resized;
}

// Checks the results, where they are known, against the tensors they are written to. Returns true when an out
// tensor was resized: the call's key is stale.
bool fit_targets(const OpPlan& plan, const c10::Stack& stack,
                 const std::optional<std::vector<Expected>>& results) {
  if (const auto forms = run_writing_meta(plan, stack)) return take_forms(plan, stack, *forms, results);
  if (!results) return false;
  const std::vector<Expected>& expected = *results;
  bool resized = false;
  size_t next = 0;
  const size_t base = stack.size() - plan.arguments.size();
  for (int target : plan.targets) {
    for (const at::Tensor& t : tensors_of(stack[base + target])) {
      if (next >= expected.size()) return resized;
      const Expected& e = expected[next++];
      if (e.dtype == c10::ScalarType::Undefined || !t.defined()) continue;
      TORCH_CHECK(c10::canCast(e.dtype, t.scalar_type()), "result type ", e.dtype,
                  " can't be cast to the desired output type ", t.scalar_type());
      if (t.sizes() == c10::IntArrayRef(e.sizes)) continue;
      TORCH_CHECK(plan.arguments[target].is_out, "output with shape ", t.sizes(),
                  " doesn't match the broadcast shape ", c10::IntArrayRef(e.sizes));
      at::native::resize_output(t, e.sizes);
      resized = true;
    }
  }
  return resized;
}

void restride(Expected& e, c10::MemoryFormat format) {
  if (format == c10::MemoryFormat::ChannelsLast) e.strides = c10::get_channels_last_strides_2d(e.sizes);
  if (format == c10::MemoryFormat::ChannelsLast3d) e.strides = c10::get_channels_last_strides_3d(e.sizes);
  if (format == c10::MemoryFormat::Contiguous) e.strides = hlo::row_major(e.sizes);
  e.contiguous = e.strides == hlo::row_major(e.sizes);
}

// The dimensions of a tensor of this format in the order of its memory, outermost first.
hlo::Dims order_of(c10::MemoryFormat format) {
  if (format == c10::MemoryFormat::ChannelsLast) return {0, 2, 3, 1};
  if (format == c10::MemoryFormat::ChannelsLast3d) return {0, 2, 3, 4, 1};
  return {};
}

std::shared_ptr<Entry> miss(const OpPlan& plan, c10::Stack& stack, Frame& frame) {
  static auto& misses = counter("memory_misses");
  misses++;
  if (plan.trace) {
    const std::shared_ptr<const Body> body = plan.trace(plan, stack);
    if (!body) return std::make_shared<Entry>();
    graph::Graph graph = body->graph;
    frame.bind(graph);
    auto entry = std::make_shared<Entry>();
    entry->program = runtime::Runtime::get().compile(graph, current_settings(), signature(plan, stack));
    entry->results = body->results;
    return entry;
  }
  check_overlaps(plan, stack);
  std::optional<std::vector<Expected>> expected;
  if (plan.functional && !plan.entry->infer) expected = run_meta(plan, stack);
  if (!plan.targets.empty() && fit_targets(plan, stack, expected)) frame.read(plan, stack);

  std::optional<c10::MemoryFormat> format;
  if (plan.targets.empty()) format = promised_format(plan, stack);
  if (format && expected) restride(expected->front(), *format);

  std::vector<hlo::Type> types;
  std::vector<hlo::Dims> orders;
  if (expected) {
    for (const Expected& e : *expected) {
      const bool defined = e.dtype != c10::ScalarType::Undefined;
      types.push_back(defined ? hlo::Type{to_core(e.dtype), e.sizes} : graph::undefined());
      orders.push_back(e.contiguous ? hlo::Dims{} : view::memory_order(e.sizes, e.strides));
    }
  } else if (plan.targets.empty()) {
    orders.resize(plan.returns.size());
    if (format) orders[0] = order_of(*format);
  } else {
    const size_t base = stack.size() - plan.arguments.size();
    for (int target : plan.targets)
      for (const at::Tensor& t : tensors_of(stack[base + target]))
        types.push_back({to_core(t.scalar_type()), dims_of(t.sizes())});
  }
  auto entry = std::make_shared<Entry>();
  const graph::Graph graph = frame.graph(plan, stack, types, orders);
  entry->program = runtime::Runtime::get().compile(graph, current_settings(), signature(plan, stack));
  if (!plan.targets.empty()) return entry;
  if (expected) entry->results = std::move(*expected);
  size_t next = 0;
  const auto& logical = entry->program->plan.logical;
  if (!expected) {
    for (const hlo::Type& t : logical)
      entry->results.push_back({to_torch(t.dtype), t.dims, hlo::row_major(t.dims), true});
    if (format) restride(entry->results.front(), *format);
  }
  for (Expected& e : entry->results)
    if (e.dtype != c10::ScalarType::Undefined && graph::is_undefined(logical.at(next++))) e = Expected();
  return entry;
}

void push_returns(const OpPlan& plan, c10::Stack* stack, const Entry& entry, std::vector<at::Tensor>& fresh) {
  size_t next = 0;
  const size_t count = plan.arguments.size(), base = stack->size() - count;
  if (plan.returns.size() == 1 && plan.returns[0].argument < 0 && !plan.returns[0].list) {
    stack->resize(base);
    stack->emplace_back(std::move(fresh[0]));
    return;
  }
  std::vector<c10::IValue> out;
  for (const Return& r : plan.returns) {
    if (r.argument >= 0) {
      out.push_back((*stack)[base + r.argument]);
    } else if (r.list) {
      out.emplace_back(std::vector<at::Tensor>(fresh.begin() + static_cast<int64_t>(next), fresh.end()));
      next = fresh.size();
    } else {
      if (const auto number = entry.results.at(next).number)
        out.emplace_back(*number);
      else
        out.emplace_back(std::move(fresh.at(next)));
      next++;
    }
  }
  stack->resize(base);
  for (c10::IValue& v : out) stack->push_back(std::move(v));
}

}  // namespace

bool run(const OpPlan& plan, c10::Stack* stack) {
  return guarded([&] {
    static auto& hits = counter("memory_hits");
    if (plan.prepare) plan.prepare(plan, *stack);
    FrameLease lease;
    Frame& frame = *lease;
    frame.read(plan, *stack);
    std::shared_ptr<Entry> entry = programs().find(frame.key);
    if (entry) {
      hits.fetch_add(1, std::memory_order_relaxed);
    } else {
      entry = miss(plan, *stack, frame);
      entry = programs().insert(frame.key, entry);
    }
    if (!entry->program) return false;
    runtime::Runtime& rt = runtime::Runtime::get();
    const int index = frame.device < 0 ? resolve_device(-1) : frame.device;
    runtime::Device& device = rt.device(index);
    runtime::Generator* generator =
        entry->program->uses_random() ? &generator_of(frame.generator, index) : nullptr;
    thread_local std::vector<runtime::ArrayPtr> arrays;
    entry->program->launch(device, frame.cells, frame.scalars, generator, arrays);

    std::vector<at::Tensor> fresh;
    fresh.reserve(entry->results.size());
    size_t next = 0;
    for (const Expected& e : entry->results) {
      if (e.dtype == c10::ScalarType::Undefined)
        fresh.emplace_back();
      else if (e.contiguous)
        fresh.push_back(new_tensor(index, e.dtype, e.sizes, std::move(arrays[next++])));
      else
        fresh.push_back(new_tensor(index, e.dtype, e.sizes, e.strides, std::move(arrays[next++])));
    }
    arrays.clear();
    push_returns(plan, stack, *entry, fresh);
    return true;
  });
}

std::vector<at::Tensor> run_internal(const std::string& entry, const std::vector<std::string>& signature,
                                     std::vector<c10::IValue> arguments, int results) {
  static std::mutex mutex;
  static auto* plans = new std::map<std::string, std::unique_ptr<OpPlan>>;
  const OpPlan* plan;
  {
    std::lock_guard lock(mutex);
    auto& slot = (*plans)[entry];
    if (!slot) {
      const ops::Op* op = ops::Table::get().find(entry);
      if (!op) throw Error(Code::Internal, entry, "no such entry in the operator table");
      slot = internal_plan(*op, signature, arguments, results);
    }
    plan = slot.get();
  }
  c10::Stack stack(std::move(arguments));
  run(*plan, &stack);
  std::vector<at::Tensor> out;
  for (c10::IValue& v : stack) out.push_back(v.toTensor());
  return out;
}

int64_t clear_programs() {
  const auto n = static_cast<int64_t>(programs().size());
  programs().clear();
  if (runtime::Runtime::started()) runtime::Runtime::get().forget_programs();
  return n;
}

}  // namespace tpu::torch_shim
