// Plain operators (operators/generic.h): any ONNX node of the table becomes a kPlain node, or a constant when all it needs is constant.
#pragma once

#include "sluice/kernels/plain.h"
#include "src/importer/fold.h"
#include "src/importer/lowering.h"

namespace sluice::importer {

/// Makes a node for each output that is used, by the operator's line of the table; refuses in the operator's words.
void lower_plain(NodeContext& c, const kernels::PlainOperator& op);

/// One result of an operator over values that are there already, for lowerings that are made of several operators. `arguments` are as the
/// operator's list says, one list an argument; absent inputs are invalid ids. `whole`: it is the ONNX node's result of that number, so that
/// a bound stated for it counts.
ValueId add_plain(NodeContext& c, std::string_view op, std::vector<ValueId> inputs, std::vector<std::vector<std::int64_t>> arguments = {},
                  int result = 0, bool whole = false);

/// A real argument as it is stored.
std::int64_t real_bits(double value) noexcept;

}  // namespace sluice::importer
