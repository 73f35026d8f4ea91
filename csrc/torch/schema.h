// What the engine must know of an operator's schema, worked out once when it is registered.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace tpu::torch_shim {

enum class Kind : uint8_t {
  Tensor,
  TensorList,
  Scalar,
  ScalarList,
  Int,
  Bool,
  Float,
  IntList,
  BoolList,
  FloatList,
  Str,
  DType,
  Device,
  Generator,
  Ignored,  // layout, memory format, pin_memory: no part of the maths, but part of the key
};

struct Argument {
  Kind kind;
  std::string name;
  bool written = false;  // the schema (or the entry) says that the call changes it
  bool is_out = false;   // an out= argument: not seen by the lowering
  bool fixed = false;    // a number whose value is part of the key
};

/// One return of the schema: an argument that was written (argument >= 0), or the next new result (all of
/// them for a list).
struct Return {
  int argument = -1;
  bool list = false;
};

struct OpPlan;

/// What PyTorch says a result will be.
struct Expected {
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // Undefined: the result is no tensor
  std::vector<int64_t> sizes, strides;
  bool contiguous = true;
  std::optional<int64_t> number =
      std::nullopt;  // a result that is an integer, known without running anything
};

/// A captured program: its inputs are the tensors of a call, in order of appearance; cells and layouts are
/// filled in at the call.
struct Body {
  graph::Graph graph;
  std::vector<Expected> results;
};

/// One overload as the engine runs it.
struct OpPlan {
  std::string name;                // of this overload, for messages
  const ops::Op* entry = nullptr;  // shared by the functional overload and its in-place and out= siblings
  /// Gives the program of a call when there is no entry: a captured graph, or a decomposition traced for
  /// these arguments.
  std::function<std::shared_ptr<const Body>(const OpPlan&, const c10::Stack&)> trace;
  std::vector<Argument> arguments;
  std::shared_ptr<const std::vector<std::string>> names;  // of the arguments the lowering sees
  /// For each result of the lowering the argument it is written to; empty when all results are new tensors. A
  /// list argument takes as many results as it has tensors.
  std::vector<int> targets;
  std::vector<int>
      extra_targets;  // arguments written besides the schema's results (Option::writes), after them
  std::vector<Return> returns;
  /// The overload whose Meta kernel gives the results' types; nullopt: they are the written tensors' own.
  std::optional<c10::OperatorHandle> functional;
  uint32_t id = 0;
  /// Runs before the key is made and may change the arguments: gives an out tensor its size, turns masks into
  /// indices.
  void (*prepare)(const OpPlan& plan, c10::Stack& stack) = nullptr;
  /// Runs the call instead of the engine's run(), which it calls.
  void (*around)(const OpPlan& plan, c10::Stack* stack) = nullptr;

  /// Position of an argument counted from the stack's end, for `prepare`.
  c10::IValue& argument(c10::Stack& stack, const char* name) const;
};

/// The plan for an overload. `functional` is the overload the entry is named after when that writes no
/// argument.
std::unique_ptr<OpPlan> make_plan(const c10::FunctionSchema& schema, const ops::Op& entry,
                                  std::optional<c10::OperatorHandle> functional);

/// The plan for an operator without an entry: every number is part of the key.
std::unique_ptr<OpPlan> traced_plan(const c10::FunctionSchema& schema);
/// The plan for a captured graph, called with one list of tensors.
std::unique_ptr<OpPlan> captured_plan(std::string name, std::shared_ptr<const Body> body);

/// The plan for an entry that is no ATen operator: kinds are taken from these arguments, written ones end
/// with "!".
std::unique_ptr<OpPlan> internal_plan(const ops::Op& entry, const std::vector<std::string>& signature,
                                      const std::vector<c10::IValue>& arguments, int results);

}  // namespace tpu::torch_shim
