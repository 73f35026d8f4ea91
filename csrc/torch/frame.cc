#include "torch/frame.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
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

int Frame::index_of(Cell* cell) {
  constexpr size_t kFew = 16;  // as many are found faster one by one
  if (cells.size() < kFew) {
    const auto index = std::find(cells.begin(), cells.end(), cell) - cells.begin();
    if (index == std::ssize(cells)) cells.push_back(cell);
    return static_cast<int>(index);
  }
  if (index_.empty())
    for (size_t i = 0; i < cells.size(); i++) index_.emplace(cells[i], static_cast<int>(i));
  const auto [at, fresh] = index_.try_emplace(cell, static_cast<int>(cells.size()));
  if (fresh) cells.push_back(cell);
  return at->second;
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
  const int index = index_of(cell);
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

namespace {

// Hands an argument that is not None to the member of `visitor` that is named after what it holds.
template <class Visitor>
void visit(const Argument& a, const c10::IValue& v, Visitor&& visitor) {
  switch (a.kind) {
    case Kind::Tensor:
      return visitor.tensor(v);
    case Kind::TensorList:
      return visitor.tensors(v.toListRef());
    case Kind::Scalar:
    case Kind::Float:
      return visitor.number(v);
    case Kind::ScalarList:
      return visitor.numbers(v.toListRef());
    case Kind::Int:
    case Kind::Ignored:
      return visitor.integer(integer_of(v));
    case Kind::DType:
      return visitor.dtype(static_cast<c10::ScalarType>(integer_of(v)));
    case Kind::Bool:
      return visitor.flag(v.toBool());
    case Kind::IntList:
      return visitor.integers(as_list(v));
    case Kind::BoolList:
      return visitor.flags(v.toListRef());
    case Kind::FloatList:
      return visitor.floats(v.toListRef());
    case Kind::Str:
      return visitor.string(v.toStringView());
    case Kind::Device:
      return visitor.device(v.toDevice());
    case Kind::Generator:
      return visitor.generator(v.toGenerator());
  }
}

double float_of(const c10::IValue& v) { return v.isInt() ? static_cast<double>(v.toInt()) : v.toDouble(); }

}  // namespace

/// Writes the key of a call.
struct Frame::Reader {
  using List = c10::ArrayRef<c10::IValue>;
  Frame& f;
  const OpPlan& plan;
  const Argument& a;

  void tensor(const c10::IValue& v) {
    if (v.isNone())
      f.key += Tag::None;
    else
      f.add_tensor(plan, v.toTensor(), a);
  }
  void number(const c10::IValue& v) { f.add_number(v, a, plan); }
  void value(int64_t v) {
    f.key += Tag::Value;
    f.put(v);
  }
  void integer(int64_t v) { value(v); }
  void dtype(c10::ScalarType t) { value(static_cast<int64_t>(t)); }
  void flag(bool v) { value(v); }
  template <class Each>
  void list(List items, Each each) {
    f.key += Tag::List;
    f.put(static_cast<uint32_t>(items.size()));
    for (const c10::IValue& v : items) each(v);
  }
  void tensors(List items) {
    list(items, [&](const c10::IValue& v) { tensor(v); });
  }
  void numbers(List items) {
    list(items, [&](const c10::IValue& v) { number(v); });
  }
  void integers(List items) {
    list(items, [&](const c10::IValue& v) { f.put(integer_of(v)); });
  }
  void flags(List items) {
    list(items, [&](const c10::IValue& v) { f.put(static_cast<uint8_t>(v.toBool())); });
  }
  void floats(List items) {
    list(items, [&](const c10::IValue& v) { f.put(float_of(v)); });
  }
  void string(std::string_view s) {
    f.key += Tag::List;
    f.put(static_cast<uint32_t>(s.size()));
    f.put(s.data(), s.size());
  }
  void device(c10::Device d) {
    if (f.device < 0 && d.is_privateuseone()) f.device = d.index();
  }
  void generator(at::Generator g) { f.generator = std::move(g); }
};

void Frame::read(const OpPlan& plan, const c10::Stack& stack) {
  key.clear(), cells.clear(), scalars.clear(), inputs_.clear(), numbers_.clear(), index_.clear();
  device = -1;
  generator.reset();
  put(plan.id);
  const graph::Settings settings = current_settings();
  put(static_cast<uint8_t>(static_cast<int>(settings.precision) | settings.bounds_checks << 2));
  put(static_cast<int8_t>(c10::get_default_dtype_as_scalartype()));
  const c10::IValue* args = stack.data() + stack.size() - plan.arguments.size();
  for (size_t i = 0; i < plan.arguments.size(); i++) {
    if (args[i].isNone())
      key += Tag::None;
    else
      visit(plan.arguments[i], args[i], Reader{*this, plan, plan.arguments[i]});
  }
}

void Frame::bind(graph::Graph& g) const {
  for (const Cell* c : cells) {
    g.cells.push_back(c->type);
    g.fresh.push_back(!c->array);
  }
  for (const Input& input : inputs_) g.inputs.push_back({input.cell, layout_of(*input.tensor)});
}

/// Turns the arguments of a call into those of a graph's node, in the order they were read.
struct Frame::Builder {
  using List = c10::ArrayRef<c10::IValue>;
  const Frame& f;
  const OpPlan& plan;
  const Argument* a = nullptr;
  int next_input = 0;
  size_t next_number = 0;
  ops::Arg arg;

  ops::Arg one(const c10::IValue& v) {
    if (v.isNone() || !v.toTensor().defined()) return std::monostate();
    if (!v.toTensor().is_privateuseone()) return f.numbers_[next_number++];
    return ops::Ref{next_input++};
  }
  template <class T, class Of>
  static std::vector<T> list(List items, Of of) {
    std::vector<T> out;
    for (const c10::IValue& v : items) out.push_back(of(v));
    return out;
  }
  void tensor(const c10::IValue& v) { arg = one(v); }
  void tensors(List items) {
    arg = list<ops::Ref>(items, [&](const c10::IValue& v) {
      const ops::Arg each = one(v);
      TORCH_CHECK(!std::holds_alternative<ops::Number>(each), plan.name, ": argument ", a->name,
                  " holds a CPU tensor; move it with .to(\"tpu\")");
      return std::holds_alternative<ops::Ref>(each) ? std::get<ops::Ref>(each) : ops::Ref{-1};
    });
  }
  void number(const c10::IValue&) { arg = f.numbers_[next_number++]; }
  void numbers(List items) {
    arg = list<ops::Number>(
        items, [&](const c10::IValue&) { return std::get<ops::Number>(f.numbers_[next_number++]); });
  }
  void integer(int64_t v) { arg = v; }
  void dtype(c10::ScalarType t) { arg = to_core(t); }
  void flag(bool v) { arg = v; }
  void integers(List items) { arg = list<int64_t>(items, integer_of); }
  void flags(List items) {
    arg = list<bool>(items, [](const c10::IValue& v) { return v.toBool(); });
  }
  void floats(List items) { arg = list<double>(items, float_of); }
  void string(std::string_view s) { arg = std::string(s); }
  void device(c10::Device) {}
  void generator(const at::Generator&) {}
};

graph::Graph Frame::graph(const OpPlan& plan, const c10::Stack& stack, const std::vector<hlo::Type>& results,
                          const std::vector<hlo::Dims>& orders) const {
  graph::Graph g;
  bind(g);
  graph::Node node;
  node.op = plan.entry;
  node.names = plan.names;
  node.results = results;
  Builder builder{*this, plan};
  // For each argument its first input, so that targets can be found.
  std::vector<std::pair<int, int>> inputs_of;
  const c10::IValue* args = stack.data() + stack.size() - plan.arguments.size();
  for (size_t i = 0; i < plan.arguments.size(); i++) {
    const Argument& a = plan.arguments[i];
    const int first = builder.next_input;
    builder.a = &a;
    builder.arg = std::monostate();
    if (!args[i].isNone()) visit(a, args[i], builder);
    inputs_of.emplace_back(first, builder.next_input);
    if (!a.is_out) node.args.push_back(std::move(builder.arg));
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
