#include <algorithm>

#include "core/graph/graph.h"

namespace tpu::graph {

using namespace hlo;

namespace {

void mark(const ops::Arg& arg, std::vector<bool>& used) {
  const auto one = [&used](ops::Ref r) {
    if (r.value >= 0 && r.value < static_cast<int>(used.size())) used[r.value] = true;
  };
  if (const auto* ref = std::get_if<ops::Ref>(&arg)) one(*ref);
  if (const auto* refs = std::get_if<std::vector<ops::Ref>>(&arg))
    for (ops::Ref r : *refs) one(r);
}

// Which cells' old contents matter.
std::vector<bool> cells_read(const Graph& g) {
  std::vector<bool> used(g.inputs.size());
  for (const Node& n : g.nodes)
    for (const ops::Arg& a : n.args) mark(a, used);
  for (const Output& o : g.outputs) mark(ops::Ref{o.value}, used);
  for (const Write& w : g.writes) {
    mark(ops::Ref{w.value}, used);
    if (!view::covers(g.inputs[w.input].layout)) used[w.input] = true;
  }
  std::vector<bool> read(g.cells.size());
  for (size_t i = 0; i < g.inputs.size(); i++)
    if (used[i]) read[g.inputs[i].cell] = true;
  return read;
}

void run(const Node& node, ops::Lowering& lowering, Values& values) {
  ops::Call call(lowering, node.op->name, *node.names, node.args, values, node.results);
  ops::Results results = node.op->lower(call);
  if (static_cast<int>(results.size()) < node.num_results)
    throw Error(Code::Internal, node.op->name,
                text("its lowering gave ", results.size(), " results, its schema has ", node.num_results));
  for (int i = 0; i < node.num_results; i++) {
    Value v = results[i];
    if (!node.op->infer && i < static_cast<int>(node.results.size())) {
      const Type& wanted = node.results[i];
      if (is_undefined(wanted)) {
        values.emplace_back();
        continue;
      }
      if (v.id() < 0) {  // a gradient nobody asked for, although Meta gives it a type
        values.emplace_back();
        continue;
      }
      if (v.dims() != wanted.dims)
        throw Error(Code::Internal, node.op->name,
                    text("its lowering gave ", v.type().str(), ", PyTorch expects ", wanted.str()));
      v = convert(v, wanted.dtype);
    }
    values.push_back(v);
  }
}

}  // namespace

Lowered lower(const Graph& g, const Settings& settings) {
  ops::Lowering lowering(settings.precision, settings.platform, settings.bounds_checks);
  Lowered out;
  Values cells(g.cells.size());
  std::vector<int> parameter(g.cells.size(), -1);
  const std::vector<bool> read = cells_read(g);
  for (size_t k = 0; k < g.cells.size(); k++) {
    if (!read[k]) continue;
    if (k < g.fresh.size() && g.fresh[k]) {
      cells[k] = full(lowering.b, 0, g.cells[k]);
      continue;
    }
    parameter[k] = static_cast<int>(out.cells.size());
    out.cells.push_back(static_cast<int>(k));
    cells[k] = lowering.b.parameter(g.cells[k]);
  }
  Values values;
  for (const Input& input : g.inputs)
    values.push_back(cells[input.cell] ? view::read(cells[input.cell], input.layout) : Value());
  for (const Node& node : g.nodes) run(node, lowering, values);

  Values results;
  for (const Output& o : g.outputs) {
    Value v = values.at(o.value);
    if (v.id() < 0) {
      out.logical.push_back(undefined());
      continue;
    }
    out.logical.push_back(v.type());
    if (!o.order.empty()) v = transpose(v, o.order);
    out.outputs.push_back(v.type());
    results.push_back(v);
  }
  std::vector<bool> touched(g.cells.size());
  for (const Write& w : g.writes) {
    const Input& input = g.inputs[w.input];
    Value v = values.at(w.value);
    if (v.id() < 0) continue;  // the operator leaves this argument as it is
    if (v.dims() != input.layout.sizes)
      throw Error(Code::InvalidArgument, g.nodes.empty() ? "" : g.nodes.back().op->name,
                  text("output with shape ", str(input.layout.sizes), " doesn't match the result's shape ",
                       str(v.dims())));
    v = convert(v, input.layout.dtype);
    const bool whole = view::covers(input.layout);
    Value base = cells[input.cell];
    if (base.id() < 0) base = whole ? full(lowering.b, 0, g.cells[input.cell]) : Value();
    cells[input.cell] = view::write(base, v, input.layout);
    touched[input.cell] = true;
  }
  std::vector<int> alias(lowering.b.parameters().size(), -1);
  for (size_t k = 0; k < g.cells.size(); k++) {
    if (!touched[k]) continue;
    out.written.push_back(static_cast<int>(k));
    out.donated.push_back(parameter[k]);
    if (parameter[k] >= 0) alias[parameter[k]] = static_cast<int>(results.size());
    results.push_back(cells[k]);
  }
  if (!lowering.parameters().checks.empty()) results.push_back(lowering.faults());
  out.extra = lowering.parameters();
  out.module = lowering.b.finish(results, alias);
  return out;
}

}  // namespace tpu::graph
