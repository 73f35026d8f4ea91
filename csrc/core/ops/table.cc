#include "core/ops/table.h"

#include "core/ops/families.h"

namespace tpu::ops {

const Table& Table::get() {
  static const Table* table = [] {
    auto* t = new Table;
    for (auto family :
         {activation, attention, ops::binary, conv,  creation, embedding, ops::fft, foreach,    index,
          loss,       matmul,    norm,        optim, pad,      pool,      quantize, random,     reduce,
          resample,   rnn,       scan,        shape, softmax,  sort,      special,  ops::unary, views})
      family(*t);
    return t;
  }();
  return *table;
}

const Op* Table::find(std::string_view name) const {
  auto at = ops_.find(name);
  return at == ops_.end() ? nullptr : &at->second;
}

void Table::op(std::string_view names, Lower lower, Options options) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    const std::string name(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
    if (name.empty()) continue;
    if (!ops_.try_emplace(name,
                          Op{name, lower, options.fixed, options.fixed_when, options.infer, options.writes})
             .second)
      throw Error(Code::Internal, name, "two entries in the operator table");
  }
}

}  // namespace tpu::ops
