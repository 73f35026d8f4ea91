#include "torch/meta.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_strided.h>

#include "core/base/log.h"
#include "torch/cpp_meta.h"
#include "torch/python_error.h"
#include "torch/storage.h"

namespace tpu::torch_shim {
namespace {

at::Tensor to_meta(const at::Tensor& t) {
  if (!t.defined() || !t.is_privateuseone()) return t;
  return at::empty_strided(t.sizes(), t.strides(), t.options().device(c10::kMeta));
}

c10::IValue to_meta(const c10::IValue& v) {
  if (v.isTensor()) return to_meta(v.toTensor());
  if (v.isTensorList()) {
    c10::List<at::Tensor> out;
    for (const c10::IValue& e : v.toListRef()) out.push_back(to_meta(e.toTensor()));
    return out;
  }
  if (v.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> out;
    for (const c10::IValue& e : v.toListRef())
      out.push_back(e.isNone() ? std::nullopt : std::optional<at::Tensor>(to_meta(e.toTensor())));
    return out;
  }
  if (v.isDevice()) return c10::Device(c10::kMeta);
  if (v.isGenerator()) return c10::IValue();
  return v;
}

void append(std::vector<Expected>& out, const at::Tensor& t) {
  Expected e;
  if (t.defined()) {
    e.dtype = t.scalar_type();
    e.sizes = t.sizes().vec();
    // A result whose strides leave gaps or overlap (an expanded one) is stored dense.
    e.contiguous = t.is_contiguous() || !view::is_dense(e.sizes, t.strides().vec());
    e.strides = e.contiguous ? hlo::row_major(e.sizes) : t.strides().vec();
  }
  out.push_back(std::move(e));
}

void append(std::vector<Expected>& out, const c10::IValue& v) {
  if (v.isTensor()) {
    append(out, v.toTensor());
  } else if (v.isTensorList()) {
    for (const c10::IValue& e : v.toListRef()) append(out, e.toTensor());
  } else {
    out.emplace_back();
    if (v.isInt()) out.back().number = v.toInt();
  }
}

bool has_meta(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::Meta) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

void call_meta(const c10::OperatorHandle& op, c10::Stack& meta) {
  at::AutoDispatchBelowADInplaceOrView below;
  const c10::DispatchKeySet key(c10::DispatchKey::Meta);
  if (const c10::KernelFunction* kernel = cpp_meta(op.operator_name()))
    return kernel->callBoxed(op, key, &meta);
  log("dispatch", c10::toString(op.operator_name()) + ": asking PyTorch's Meta kernel, maybe a Python one");
  try {
    op.redispatchBoxed(key, &meta);
  } catch (const c10::Error&) {
    throw;
  } catch (const std::exception& e) {
    // Meta kernels in Python assert what kernels in C++ check.
    const auto assertion = assertion_text(e);
    if (!assertion) throw;
    TORCH_CHECK(false, *assertion);
  }
}

}  // namespace

std::optional<std::vector<Expected>> run_meta(const OpPlan& plan, const c10::Stack& stack) {
  const c10::OperatorHandle& op = *plan.functional;
  if (!has_meta(op)) return std::nullopt;
  c10::Stack meta;
  const size_t base = stack.size() - plan.arguments.size();
  for (size_t i = 0; i < plan.arguments.size(); i++)
    if (!plan.arguments[i].is_out) meta.push_back(to_meta(stack[base + i]));
  call_meta(op, meta);
  std::vector<Expected> out;
  for (const c10::IValue& v : meta) append(out, v);
  return out;
}

std::optional<std::vector<Expected>> run_writing_meta(const OpPlan& plan, const c10::Stack& stack) {
  if (!plan.writing || !has_meta(*plan.writing)) return std::nullopt;
  c10::Stack arguments;
  const size_t base = stack.size() - plan.arguments.size();
  for (size_t i = 0; i < plan.arguments.size(); i++) arguments.push_back(to_meta(stack[base + i]));
  c10::Stack meta = arguments;
  call_meta(*plan.writing, meta);
  std::vector<Expected> out;
  for (const int target : plan.targets) append(out, arguments[target]);
  return out;
}

}  // namespace tpu::torch_shim
