#include "torch/schema.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <atomic>

#include "core/base/error.h"

namespace tpu::torch_shim {
namespace {

using c10::TypeKind;

Kind kind_of(const c10::Argument& a) {
  c10::TypePtr type = a.real_type();
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  switch (type->kind()) {
    case TypeKind::TensorType:
      return Kind::Tensor;
    case TypeKind::NumberType:
      return Kind::Scalar;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return Kind::Int;
    case TypeKind::BoolType:
    case TypeKind::SymBoolType:
      return Kind::Bool;
    case TypeKind::FloatType:
    case TypeKind::SymFloatType:
      return Kind::Float;
    case TypeKind::StringType:
      return Kind::Str;
    case TypeKind::ScalarTypeType:
      return Kind::DType;
    case TypeKind::DeviceObjType:
      return Kind::Device;
    case TypeKind::GeneratorType:
      return Kind::Generator;
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType:
      return Kind::Ignored;
    case TypeKind::ListType: {
      c10::TypePtr element = type->expect<c10::ListType>()->getElementType();
      if (auto optional = element->cast<c10::OptionalType>()) element = optional->getElementType();
      switch (element->kind()) {
        case TypeKind::TensorType:
          return Kind::TensorList;
        case TypeKind::NumberType:
          return Kind::ScalarList;
        case TypeKind::IntType:
        case TypeKind::SymIntType:
          return Kind::IntList;
        case TypeKind::BoolType:
          return Kind::BoolList;
        case TypeKind::FloatType:
          return Kind::FloatList;
        default:
          break;
      }
      break;
    }
    default:
      break;
  }
  throw Error(Code::Internal, a.name(), "the engine does not know arguments of type " + a.real_type()->str());
}

uint32_t next_id() {
  static std::atomic<uint32_t> ids{0};
  return ids++;
}

}  // namespace

bool same_arguments(const c10::FunctionSchema& sibling, const c10::FunctionSchema& functional) {
  size_t i = 0;
  for (const c10::Argument& a : sibling.arguments()) {
    if (a.is_out()) continue;
    if (i == functional.arguments().size()) return false;
    const c10::Argument& b = functional.arguments()[i++];
    if (a.name() != b.name() || *a.real_type() != *b.real_type()) return false;
  }
  return i == functional.arguments().size();
}

bool has_out(const c10::FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(),
                     [](const c10::Argument& a) { return a.is_out(); });
}

c10::IValue& OpPlan::argument(c10::Stack& stack, const char* wanted) const {
  for (size_t i = 0; i < arguments.size(); i++)
    if (arguments[i].name == wanted) return stack[stack.size() - arguments.size() + i];
  throw Error(Code::Internal, name, std::string("its schema has no argument ") + wanted);
}

namespace {

const ops::Op kNoEntry;

std::unique_ptr<OpPlan> plan_of(const c10::FunctionSchema& schema, const ops::Op& entry, bool all_fixed) {
  auto plan = std::make_unique<OpPlan>();
  plan->name = schema.name() + (schema.overload_name().empty() ? "" : "." + schema.overload_name());
  plan->entry = &entry;
  plan->id = next_id();
  auto names = std::make_shared<std::vector<std::string>>();
  for (const c10::Argument& a : schema.arguments()) {
    Argument out{kind_of(a), a.name()};
    out.written = a.alias_info() && a.alias_info()->isWrite();
    out.is_out = a.is_out();
    out.fixed = all_fixed || std::find(entry.fixed.begin(), entry.fixed.end(), a.name()) != entry.fixed.end();
    const int index = static_cast<int>(plan->arguments.size());
    if (out.written) plan->targets.push_back(index);
    if (std::find(entry.writes.begin(), entry.writes.end(), a.name()) != entry.writes.end()) {
      plan->extra_targets.push_back(index);
      out.written = true;
    }
    if (!out.is_out) names->push_back(a.name());
    plan->arguments.push_back(std::move(out));
  }
  plan->names = std::move(names);
  for (const c10::Argument& r : schema.returns()) {
    Return out{-1, r.real_type()->kind() == TypeKind::ListType};
    if (r.alias_info() && r.alias_info()->isWrite())
      for (size_t i = 0; i < schema.arguments().size(); i++) {
        const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
        if (alias && alias->beforeSets() == r.alias_info()->beforeSets()) out.argument = static_cast<int>(i);
      }
    plan->returns.push_back(out);
  }
  // New results beside written arguments (rrelu_with_noise): the lowering gives the results first.
  const bool fresh =
      std::any_of(plan->returns.begin(), plan->returns.end(), [](const Return& r) { return r.argument < 0; });
  if (fresh)
    plan->extra_targets.insert(plan->extra_targets.begin(), plan->targets.begin(), plan->targets.end());
  if (fresh) plan->targets.clear();
  return plan;
}

}  // namespace

std::unique_ptr<OpPlan> make_plan(const c10::FunctionSchema& schema, const ops::Op& entry,
                                  std::optional<c10::OperatorHandle> functional) {
  auto plan = plan_of(schema, entry, false);
  plan->functional = std::move(functional);
  return plan;
}

std::unique_ptr<OpPlan> traced_plan(const c10::FunctionSchema& schema) {
  return plan_of(schema, kNoEntry, true);
}

std::unique_ptr<OpPlan> captured_plan(std::string name, std::shared_ptr<const Body> body) {
  auto plan = std::make_unique<OpPlan>();
  plan->name = std::move(name);
  plan->entry = &kNoEntry;
  plan->id = next_id();
  plan->arguments.push_back({Kind::TensorList, "inputs"});
  plan->names = std::make_shared<const std::vector<std::string>>(1, "inputs");
  plan->returns.push_back({-1, true});
  plan->trace = [body = std::move(body)](const OpPlan&, const c10::Stack&) { return body; };
  return plan;
}

std::unique_ptr<OpPlan> internal_plan(const ops::Op& entry, const std::vector<std::string>& signature,
                                      const std::vector<c10::IValue>& arguments, int results) {
  auto plan = std::make_unique<OpPlan>();
  plan->name = entry.name;
  plan->entry = &entry;
  plan->id = next_id();
  auto names = std::make_shared<std::vector<std::string>>();
  for (size_t i = 0; i < signature.size(); i++) {
    const c10::IValue& v = arguments[i];
    Argument a{Kind::Tensor, signature[i]};
    if (v.isInt() || v.isDouble() || v.isComplexDouble()) a.kind = Kind::Scalar;
    if (v.isBool()) a.kind = Kind::Bool;
    if (v.isIntList()) a.kind = Kind::IntList;
    if (v.isTensorList()) a.kind = Kind::TensorList;
    if (a.name.back() == '!') {
      a.name.pop_back();
      a.written = true;
      plan->targets.push_back(static_cast<int>(i));
    }
    names->push_back(a.name);
    plan->arguments.push_back(std::move(a));
  }
  if (plan->targets.empty()) plan->returns.resize(static_cast<size_t>(results));
  plan->names = std::move(names);
  return plan;
}

}  // namespace tpu::torch_shim
