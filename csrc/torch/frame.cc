#include "torch/frame.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>

#include <cstring>

#include "core/base/env.h"
#include "core/runtime/runtime.h"
#include "torch/convert.h"
#include "torch/storage.h"

namespace tpu::torch_shim {
namespace {

// A storage nobody wrote to yet takes the form of the first tensor that is used on it.
void shape_fresh_cell(Cell& cell, const at::Tensor& t) {
  const DType dtype = to_core(t.scalar_type());
  const hlo::Dims sizes = dims_of(t.sizes()), strides = dims_of(t.strides());
  const int64_t elements = static_cast<int64_t>(t.storage().nbytes()) / size_of(dtype);
  if (t.storage_offset() == 0 && hlo::product(sizes) == elements && view::is_dense(sizes, strides)) {
    cell.type = {dtype, {}};
    for (int64_t d : view::memory_order(sizes, strides)) cell.type.dims.push_back(sizes[d]);
  } else if (cell.type.dtype != dtype || cell.type.elements() != elements) {
    cell.type = {dtype, {elements}};
  }
}

bool same(c10::IntArrayRef a, const hlo::Dims& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(int64_t)) == 0;
}

// A single int counts as a list of one.
c10::ArrayRef<c10::IValue> as_list(const c10::IValue& v) {
  if (v.isInt()) return {&v, 1};
  return v.toListRef();
}

int64_t integer_of(const c10::IValue& v) {
  if (v.isInt()) return v.toInt();
  if (v.isBool()) return v.toBool();
  return v.toSymInt().guard_int(__FILE__, __LINE__);
}

enum Tag : char {
  None = 'N',
  Whole = 'W',
  View = 'V',
  Undefined = 'U',
  Runtime = 'R',
  Fixed = 'F',
  List = 'L',
  Value = 'I'
};

}  // namespace

graph::Settings current_settings() {
  static const bool bounds = env::get("TORCH_TPU_BOUNDS_CHECK") != "off";
  graph::Settings s;
  s.bounds_checks = bounds;
  s.platform = runtime::Runtime::get().platform();
  switch (at::globalContext().float32MatmulPrecision()) {
    case at::Float32MatmulPrecision::HIGHEST:
      s.precision = hlo::Precision::Highest;
      break;
    case at::Float32MatmulPrecision::HIGH:
      s.precision = hlo::Precision::High;
      break;
    default:
      s.precision = hlo::Precision::Medium;
  }
  return s;
}

void Frame::add_tensor(const OpPlan& plan, const at::Tensor& t, const Argument& argument) {
  if (!t.defined()) {
    key += Tag::Undefined;
    return;
  }
  if (!t.is_privateuseone()) {
    TORCH_CHECK(t.is_cpu() && t.dim() == 0 && !argument.written,
                "Expected all tensors to be on the same device, but found at least two devices, tpu",
                device >= 0 ? ":" + std::to_string(device) : "", " and ", t.device(), "! (argument ",
                argument.name, " of ", plan.name, "; move it with .to(\"tpu\"))");
    add_number(t.item(), argument, plan);
    // add_number saw a Python number; a tensor keeps its dtype unless it stands for one.
    auto& number = std::get<ops::Number>(numbers_.back());
    number.wrapped = t.unsafeGetTensorImpl()->is_wrapped_number();
    if (!number.wrapped) number.dtype = to_core(t.scalar_type());
    put(static_cast<char>(number.wrapped));
    put(number.dtype);
    return;
  }
  if (device < 0) device = t.device().index();
  TORCH_CHECK(device == t.device().index(),
              "Expected all tensors to be on the same device, but found at least two devices, tpu:", device,
              " and ", t.device(), "! (argument ", argument.name, " of ", plan.name, ")");
  TORCH_CHECK(t.layout() == c10::kStrided, plan.name, ": the tpu device has no ", t.layout(),
              " tensors; use .to_dense()");
  Cell* cell = cell_of(t);
  int index = 0;
  while (index < static_cast<int>(cells.size()) && cells[index] != cell) index++;
  if (index == static_cast<int>(cells.size())) cells.push_back(cell);
  inputs_.push_back({&t, index});

  const auto sizes = t.sizes();
  const DType dtype = to_core(t.scalar_type());
  const auto whole = [&] {
    return cell->type.dtype == dtype && t.is_contiguous() && t.storage_offset() == 0 &&
           same(sizes, cell->type.dims);
  };
  bool is_whole = whole();
  if (!is_whole && !cell->array) {
    shape_fresh_cell(*cell, t);
    is_whole = whole();
  }
  key += is_whole ? Tag::Whole : Tag::View;
  put(static_cast<uint32_t>(index << 1 | (cell->array ? 0 : 1)));
  put(dtype);
  put(static_cast<uint8_t>(sizes.size()));
  put(sizes.data(), sizes.size() * sizeof(int64_t));
  if (is_whole) return;
  put(t.strides().data(), sizes.size() * sizeof(int64_t));
  put(t.storage_offset());
  put(cell->type.dtype);
  put(static_cast<uint8_t>(cell->type.dims.size()));
  put(cell->type.dims.data(), cell->type.dims.size() * sizeof(int64_t));
}

void Frame::add_number(const c10::IValue& v, const Argument& argument, const OpPlan& plan) {
  using Kind = runtime::ScalarValue::Kind;
  runtime::ScalarValue value;
  ops::Number number;
  if (v.isBool()) {
    number.dtype = DType::Bool;
    value.kind = Kind::Int;
    value.integer = v.toBool();
  } else if (v.isInt()) {
    number.dtype = DType::S64;
    value.kind = Kind::Int;
    value.integer = v.toInt();
  } else if (v.isComplexDouble()) {
    number.dtype = DType::C128;
    value.kind = Kind::Complex;
    value.re = v.toComplexDouble().real(), value.im = v.toComplexDouble().imag();
  } else if (v.isDouble()) {
    value.re = v.toDouble();
  } else {
    const c10::Scalar s = v.toScalar();  // a symbolic number with a value
    if (s.isIntegral(true)) {
      number.dtype = DType::S64, value.kind = Kind::Int, value.integer = s.toLong();
    } else {
      value.re = s.toDouble();
    }
  }
  const double real = value.kind == Kind::Int ? static_cast<double>(value.integer) : value.re;
  const bool fixed = argument.fixed && (!plan.entry->fixed_when || plan.entry->fixed_when(real));
  key += fixed ? Tag::Fixed : Tag::Runtime;
  put(number.dtype);
  if (fixed) {
    put(value.integer);
    put(value.re);
    put(value.im);
    number.value = {real, value.im};
    number.integer = value.kind == Kind::Int ? value.integer : static_cast<int64_t>(value.re);
  } else {
    number.slot = static_cast<int>(scalars.size());
    scalars.push_back(value);
  }
  numbers_.emplace_back(number);
}

void Frame::read(const OpPlan& plan, const c10::Stack& stack) {
  key.clear(), cells.clear(), scalars.clear(), inputs_.clear(), numbers_.clear();
  device = -1;
  generator.reset();
  put(plan.id);
  const graph::Settings settings = current_settings();
  put(static_cast<uint8_t>(static_cast<int>(settings.precision) | settings.bounds_checks << 2));
  put(static_cast<int8_t>(c10::get_default_dtype_as_scalartype()));
  const c10::IValue* args = stack.data() + stack.size() - plan.arguments.size();
  for (size_t i = 0; i < plan.arguments.size(); i++) {
    const Argument& a = plan.arguments[i];
    const c10::IValue& v = args[i];
    if (v.isNone()) {
      key += Tag::None;
      continue;
    }
    switch (a.kind) {
      case Kind::Tensor:
        add_tensor(plan, v.toTensor(), a);
        break;
      case Kind::TensorList: {
        const auto list = v.toListRef();
        key += Tag::List;
        put(static_cast<uint32_t>(list.size()));
        for (const c10::IValue& e : list) {
          if (e.isNone())
            key += Tag::None;
          else
            add_tensor(plan, e.toTensor(), a);
        }
        break;
      }
      case Kind::Scalar:
      case Kind::Float:
        add_number(v, a, plan);
        break;
      case Kind::ScalarList: {
        const auto list = v.toListRef();
        key += Tag::List;
        put(static_cast<uint32_t>(list.size()));
        for (const c10::IValue& e : list) add_number(e, a, plan);
        break;
      }
      case Kind::Int:
      case Kind::DType:
      case Kind::Ignored:
        key += Tag::Value;
        put(integer_of(v));
        break;
      case Kind::Bool:
        key += Tag::Value;
        put(static_cast<int64_t>(v.toBool()));
        break;
      case Kind::IntList: {
        const auto list = as_list(v);
        key += Tag::List;
        put(static_cast<uint32_t>(list.size()));
        for (const c10::IValue& e : list) put(integer_of(e));
        break;
      }
      case Kind::BoolList: {
        const auto list = v.toListRef();
        key += Tag::List;
        put(static_cast<uint32_t>(list.size()));
        for (const c10::IValue& e : list) put(static_cast<uint8_t>(e.toBool()));
        break;
      }
      case Kind::FloatList: {
        const auto list = v.toListRef();
        key += Tag::List;
        put(static_cast<uint32_t>(list.size()));
        for (const c10::IValue& e : list) put(e.isInt() ? static_cast<double>(e.toInt()) : e.toDouble());
        break;
      }
      case Kind::Str: {
        const auto s = v.toStringView();
        key += Tag::List;
        put(static_cast<uint32_t>(s.size()));
        put(s.data(), s.size());
        break;
      }
      case Kind::Device:
        if (device < 0 && v.toDevice().is_privateuseone()) device = v.toDevice().index();
        break;
      case Kind::Generator:
        generator = v.toGenerator();
        break;
    }
  }
}

void Frame::bind(graph::Graph& g) const {
  for (const Cell* c : cells) {
    g.cells.push_back(c->type);
    g.fresh.push_back(!c->array);
  }
  for (const Input& input : inputs_) g.inputs.push_back({input.cell, layout_of(*input.tensor)});
}

graph::Graph Frame::graph(const OpPlan& plan, const c10::Stack& stack, const std::vector<hlo::Type>& results,
                          const std::vector<hlo::Dims>& orders) const {
  graph::Graph g;
  bind(g);
  graph::Node node;
  node.op = plan.entry;
  node.names = plan.names;
  node.results = results;
  int next_input = 0;
  size_t next_number = 0;
  const auto tensor = [&](const c10::IValue& e) -> ops::Arg {
    if (e.isNone() || !e.toTensor().defined()) return std::monostate();
    if (!e.toTensor().is_privateuseone()) return numbers_[next_number++];
    return ops::Ref{next_input++};
  };
  // For each argument its first input, so that targets can be found.
  std::vector<std::pair<int, int>> inputs_of;
  const c10::IValue* args = stack.data() + stack.size() - plan.arguments.size();
  for (size_t i = 0; i < plan.arguments.size(); i++) {
    const Argument& a = plan.arguments[i];
    const c10::IValue& v = args[i];
    const int first = next_input;
    ops::Arg arg;
    if (!v.isNone()) {
      switch (a.kind) {
        case Kind::Tensor:
          arg = tensor(v);
          break;
        case Kind::TensorList: {
          std::vector<ops::Ref> refs;
          for (const c10::IValue& e : v.toListRef()) {
            const ops::Arg one = tensor(e);
            TORCH_CHECK(!std::holds_alternative<ops::Number>(one), plan.name, ": argument ", a.name,
                        " holds a CPU tensor; move it with .to(\"tpu\")");
            refs.push_back(std::holds_alternative<ops::Ref>(one) ? std::get<ops::Ref>(one) : ops::Ref{-1});
          }
          arg = std::move(refs);
          break;
        }
        case Kind::Scalar:
        case Kind::Float:
          arg = numbers_[next_number++];
          break;
        case Kind::ScalarList: {
          std::vector<ops::Number> list;
          for (size_t k = 0; k < v.toListRef().size(); k++)
            list.push_back(std::get<ops::Number>(numbers_[next_number++]));
          arg = std::move(list);
          break;
        }
        case Kind::Int:
        case Kind::Ignored:
          arg = integer_of(v);
          break;
        case Kind::DType:
          arg = to_core(static_cast<c10::ScalarType>(v.toInt()));
          break;
        case Kind::Bool:
          arg = v.toBool();
          break;
        case Kind::IntList: {
          std::vector<int64_t> list;
          for (const c10::IValue& e : as_list(v)) list.push_back(integer_of(e));
          arg = std::move(list);
          break;
        }
        case Kind::BoolList: {
          std::vector<bool> list;
          for (const c10::IValue& e : v.toListRef()) list.push_back(e.toBool());
          arg = std::move(list);
          break;
        }
        case Kind::FloatList: {
          std::vector<double> list;
          for (const c10::IValue& e : v.toListRef())
            list.push_back(e.isInt() ? static_cast<double>(e.toInt()) : e.toDouble());
          arg = std::move(list);
          break;
        }
        case Kind::Str:
          arg = std::string(v.toStringView());
          break;
        case Kind::Device:
        case Kind::Generator:
          break;
      }
    }
    inputs_of.emplace_back(first, next_input);
    if (!a.is_out) node.args.push_back(std::move(arg));
  }

  int value = static_cast<int>(g.inputs.size());
  const auto write_to = [&](int argument) {
    for (int k = inputs_of[argument].first; k < inputs_of[argument].second; k++)
      g.writes.push_back({value++, k});
  };
  if (plan.targets.empty()) {
    for (size_t i = 0; i < orders.size(); i++, value++)
      if (i >= results.size() || !graph::is_undefined(results[i])) g.outputs.push_back({value, orders[i]});
  } else {
    for (int t : plan.targets) write_to(t);
  }
  for (int t : plan.extra_targets) write_to(t);
  node.num_results = value - static_cast<int>(g.inputs.size());
  g.nodes.push_back(std::move(node));
  return g;
}

}  // namespace tpu::torch_shim
